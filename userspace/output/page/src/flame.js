// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// The page of the flame graphs: one graph, a choice of what it measures, and a search.

import { element } from "./dom.js";
import { FlameChart } from "./flamechart.js";
import { captured, fact, footer } from "./parts.js";
import { Tree } from "./tree.js";
import { formatBytes, formatCount, formatTime } from "./units.js";

const METRICS = {
	self_cpu_time_total: ["CPU time", "Own time of operators and CUDA calls on the CPU, under the stack at their begin."],
	self_cuda_time_total: ["GPU time", "Kernels, copies and memsets, under the line that launched them."],
	calls: ["Calls", "Calls of operators."],
	allocations: ["Allocations", "Allocations, freed since or not."],
	allocated_bytes: ["Allocated bytes", "All bytes allocated, freed since or not."],
	peak_bytes: ["Bytes at the peak", "What was held when a device's memory held most, under the line that allocated it; each device at its own peak."],
};

// Of a recording of samples: nothing in it was measured from begin to end.
const SAMPLED = {
	self_cpu_time_total: ["CPU time, estimated", "What samples of threads on a CPU stand for: an estimate."],
	samples: ["Samples", "Samples of threads on a CPU."],
	off_cpu_time_total: ["Waiting, estimated", "What samples of threads on no CPU stand for: an estimate."],
};

const KINDS = {
	python: "Python",
	native: "Native code",
	kernel: "Operating system",
	op: "Operator",
	call: "CUDA call",
	gpu: "On the GPU",
	mark: "Remark",
};

const WITHOUT_STACK = new Set(["[no stack]"]);
const NOT_WHOLE = new Set(["[truncated]", "[incomplete]"]);

function formatter(unit) {
	if (unit === "ns")
		return (value) => formatTime(value / 1e9, value / 1e9);
	return unit === "bytes" ? formatBytes : formatCount;
}

function percent(part, whole) {
	return whole > 0 ? `${((100 * part) / whole).toFixed(2)} %` : "0 %";
}

class Page {
	constructor(data) {
		this.data = data;
		this.metric = Math.max(data.metrics.findIndex(({ name }) => name === data.metric), 0);
		this.sampled = data.metrics.some(({ name }) => name === "samples");
		this.metrics = this.sampled ? { ...METRICS, ...SAMPLED } : METRICS;
		this.tree = new Tree(data);
		this.format = formatter(data.metrics[this.metric].unit);
		this.readout = element("output", { "class": "readout", "aria-live": "polite" });
		this.matched = element("output", { "class": "matched", "aria-live": "polite" });
		this.note = element("p", { class: "note about" });
		this.facts = element("dl", { class: "facts" });
		this.empty = element("p", { class: "empty" }, "Nothing of this was recorded.");
		this.chart = new FlameChart(this.tree, (node) => this.describe(node), (node) => this.show(node));
	}

	describe(node) {
		const { totals, ownOf } = this.tree;
		const text = `${this.format(totals[node])} (${percent(totals[node], totals[0])} of all)`;

		return ownOf[node] && ownOf[node] !== totals[node] ? `${text}, own ${this.format(ownOf[node])}` : text;
	}

	show(node) {
		this.readout.replaceChildren(
			element("bdi", { class: "name" }, this.tree.name(node)),
			` ${this.describe(node)}`,
		);
		this.readout.dataset.node = String(node);
	}

	addFacts() {
		const whole = this.tree.totals[0];
		const part = (names) => this.tree.sum((i) => this.tree.kind(i) === "mark" && names.has(this.tree.name(i))).total;

		this.facts.replaceChildren(
			fact("Total", this.format(whole)),
			fact("Stack truncated or incomplete", percent(part(NOT_WHOLE), whole)),
			fact("No stack", percent(part(WITHOUT_STACK), whole)),
		);
	}

	choose(metric) {
		this.metric = metric;
		this.format = formatter(this.data.metrics[metric].unit);
		this.chart.measure(metric);
		this.note.textContent = this.metrics[this.data.metrics[metric].name]?.[1] ?? "";
		this.empty.hidden = this.tree.totals[0] > 0;
		this.chart.node.hidden = !this.empty.hidden;
		this.addFacts();
		this.search(this.text ?? "");
	}

	search(text) {
		const wanted = text.trim().toLowerCase();

		this.text = text;
		if (!wanted) {
			this.matched.textContent = "";
			this.chart.search(null);
			return;
		}
		const matches = this.tree.frames.map(([name]) => name.toLowerCase().includes(wanted));
		const { total, nodes } = this.tree.sum((i) => matches[this.tree.frameOf[i]]);

		this.matched.textContent = `${percent(total, this.tree.totals[0])} matched, in ${formatCount(nodes)} ${nodes === 1 ? "box" : "boxes"}`;
		this.chart.search(matches);
	}

	controls() {
		const select = element("select", { "id": "metric", "onchange": () => this.choose(Number(select.value)) },
			...this.data.metrics.map(({ name }, i) => element("option", { value: String(i) }, this.metrics[name]?.[0] ?? name)));
		const search = element("input", {
			"id": "search",
			"type": "search",
			"placeholder": "part of a name",
			"oninput": () => this.search(search.value),
		});

		select.value = String(this.metric);
		return element(
			"div",
			{ class: "toolbar" },
			element("label", { for: "metric" }, "Show "),
			select,
			element("button", { type: "button", onclick: () => this.chart.zoom(0) }, "Show all"),
			element("label", { for: "search" }, "Search "),
			search,
			this.matched,
		);
	}

	legend() {
		const present = new Set(this.data.frames.map(([, kind]) => this.data.kinds[kind]));
		const names = this.sampled ? { ...KINDS, call: "What was waited for" } : KINDS;
		const entries = Object.entries(names).filter(([kind]) => present.has(kind));

		return element(
			"ul",
			{ "class": "legend", "aria-label": "Colours" },
			...entries.map(([kind, name]) => element("li", {}, element("span", { class: `box ${kind}` }), name)),
		);
	}

	limits() {
		const notes = [];

		if (this.data.left_out)
			notes.push(`${formatCount(this.data.left_out)} boxes of at most ${(100 * this.data.left_out_share).toPrecision(2)} % of the whole are joined as "[smaller ones]".`);
		if (this.data.shortened)
			notes.push(`There was no room for the whole stacks of ${formatCount(this.data.shortened)} samples.`);
		return notes.map((note) => element("p", { class: "note limit" }, note));
	}

	build(page) {
		page.append(
			element("header", {},
				element("h1", {}, "Flame graphs"),
				element("p", { class: "note" }, `${captured(this.data)} A box is as wide as what it and all below it took. [backward] stands between the line of a forward operator and what its backward took.`)),
			this.controls(),
			this.note,
			this.facts,
			...this.limits(),
			this.legend(),
			this.readout,
			this.empty,
			this.chart.node,
			footer(this.data),
		);
		this.choose(this.metric);
	}
}

const page = document.getElementById("page");

page.replaceChildren();
new Page(JSON.parse(document.getElementById("data").textContent)).build(page);
page.dataset.state = "ready";
