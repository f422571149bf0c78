// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// What each category of memory holds, one on top of the other. Each line is the sum of its category
// and all below it, filled down to zero; the highest is drawn first.

import uPlot from "uplot";

import { Chart, colour } from "./chart.js";
import { element } from "./dom.js";
import { formatBytes, formatTime } from "./units.js";

const LABELS = {
	PARAMETER: "parameters",
	OPTIMIZER_STATE: "optimizer state",
	INPUT: "inputs",
	TEMPORARY: "temporaries",
	ACTIVATION: "activations",
	GRADIENT: "gradients",
	AUTOGRAD_DETAIL: "autograd detail",
	Unknown: "unknown",
};

// As makeSeries(), of all categories: `bytes` is their sum, `stacks` the sums from the first to each.
function stack(categories, end) {
	const times = categories.times_us.map((time) => time / 1e6);
	const stacks = categories.bytes.map((bytes) => [...bytes]);

	for (let k = 1; k < stacks.length; k++)
		stacks[k] = stacks[k].map((bytes, i) => bytes + stacks[k - 1][i]);
	for (let i = 1; i < times.length; i++)
		times[i] = Math.max(times[i], times[i - 1]);
	times.push(Math.max(end, times.at(-1)));
	for (const sums of stacks)
		sums.push(sums.at(-1));
	return { times, stacks, bytes: stacks.at(-1) };
}

function legend(categories) {
	const most = categories.bytes.map((bytes) => bytes.reduce((a, b) => Math.max(a, b), 0));
	const items = categories.names.map((name, k) =>
		element(
			"li",
			{ data: { category: name } },
			element("span", { class: `swatch category-${k}` }),
			`${LABELS[name] ?? name}, at most ${formatBytes(most[k])}`,
		),
	);

	return element("ul", { class: "legend" }, ...items.filter((_, k) => most[k] > 0));
}

export class CategoryChart extends Chart {
	constructor(device, end, view) {
		const series = stack(device.categories, end);

		super({ ...device, peak: null }, series, view);
		this.names = device.categories.names;
		this.node.classList.add("categories");
		this.node.append(legend(device.categories));
	}

	data() {
		return [this.series.times, ...[...this.series.stacks].reverse()];
	}

	lines() {
		return this.names
			.map((name, k) => ({
				stroke: () => colour(`--category-${k}`),
				fill: () => colour(`--category-${k}`),
				width: 1,
				paths: uPlot.paths.stepped({ align: 1 }),
				points: { show: false },
			}))
			.reverse();
	}

	// From zero: what a part is of the whole is to be seen.
	byteRange(min, max) {
		return [0, super.byteRange(min, max)[1]];
	}

	said(time, i) {
		const at = formatTime(time, this.view.max - this.view.min);
		const parts = this.names.map((name, k) => {
			const bytes = this.series.stacks[k][i] - (k ? this.series.stacks[k - 1][i] : 0);

			return bytes ? `${LABELS[name] ?? name} ${formatBytes(bytes)}` : null;
		});

		return `${at}: ${parts.filter((part) => part !== null).join(", ") || "nothing"}`;
	}
}
