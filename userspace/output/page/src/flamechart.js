// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// One flame graph, the root above: a row for each level, a box for each node. The node zoomed in on
// has the whole width, and so have those above it.

import { element } from "./dom.js";

const ROW = 22;
const NARROWEST = 1.5;
const NARROWEST_TEXT = 24;

// What has no name is never wide; a name of megabytes would make every layout slow.
const LONGEST_NAME = 2000;

// Of a path the last part.
function short(name) {
	return name.replace(/^[^(]*\/(?=[^/(]*\(\d+\): )/, "");
}

export class FlameChart {
	constructor(tree, describe, onCurrent) {
		this.tree = tree;
		this.describe = describe;
		this.onCurrent = onCurrent;
		this.zoomed = 0;
		this.current = 0;
		this.matches = null;
		this.boxes = new Map();
		this.node = element("div", {
			"class": "flame",
			"role": "tree",
			"aria-label": "Flame graph: arrow keys move, Enter zooms in, Escape shows all",
			"onkeydown": (event) => this.key(event),
		});
		new ResizeObserver(() => this.draw()).observe(this.node);
	}

	share(node) {
		const whole = this.tree.totals[this.zoomed];

		return whole > 0 ? this.tree.totals[node] / whole : 0;
	}

	box(node, left, width) {
		const above = node !== this.zoomed && this.tree.levels[node] < this.tree.levels[this.zoomed];
		const name = this.tree.name(node).slice(0, LONGEST_NAME);
		const where = this.tree.where(node).slice(0, LONGEST_NAME);
		const box = element("div", {
			"class": `box ${this.tree.kind(node)}`,
			"role": "treeitem",
			"tabindex": node === this.current ? "0" : "-1",
			"aria-level": String(this.tree.levels[node] + 1),
			"aria-label": `${name}, ${this.describe(node)}`,
			"title": [name, where, this.describe(node)].filter((line) => line).join("\n"),
			"data": { node: String(node) },
			"onclick": () => this.zoom(node),
			"onfocus": () => this.select(node),
			"onmouseenter": () => this.onCurrent(node),
		}, width >= NARROWEST_TEXT ? short(name) : "");

		box.classList.toggle("above", above);
		if (this.matches)
			box.classList.add(this.matches[this.tree.frameOf[node]] ? "match" : "other");
		box.style.left = `${left}px`;
		box.style.top = `${this.tree.levels[node] * ROW}px`;
		box.style.width = `${Math.max(width - 1, 1)}px`;
		this.boxes.set(node, box);
		return box;
	}

	draw() {
		const width = this.node.clientWidth;
		const scale = width / this.tree.totals[this.zoomed];
		const from = this.tree.starts[this.zoomed];
		const had = this.node.contains(document.activeElement);
		const path = this.tree.path(this.zoomed);
		let deepest = path.length;

		this.boxes.clear();
		const boxes = path.map((node) => this.box(node, 0, width));
		const waiting = [...this.tree.childrenOf[this.zoomed]];

		while (waiting.length && this.tree.totals[this.zoomed] > 0) {
			const node = waiting.pop();
			const wide = this.tree.totals[node] * scale;

			if (wide < NARROWEST)
				continue;
			boxes.push(this.box(node, (this.tree.starts[node] - from) * scale, wide));
			deepest = Math.max(deepest, this.tree.levels[node] + 1);
			for (const child of this.tree.childrenOf[node])
				waiting.push(child);
		}
		this.node.style.height = `${deepest * ROW}px`;
		this.node.replaceChildren(...boxes);
		if (!this.boxes.has(this.current))
			this.current = this.zoomed;
		this.boxes.get(this.current).tabIndex = 0;
		if (had)
			this.boxes.get(this.current).focus({ preventScroll: true });
	}

	measure(metric) {
		this.tree.measure(metric);
		if (!(this.tree.totals[this.zoomed] > 0))
			this.zoomed = 0;
		this.draw();
		this.onCurrent(this.current);
	}

	select(node) {
		const before = this.boxes.get(this.current);

		if (before)
			before.tabIndex = -1;
		this.current = node;
		this.boxes.get(node).tabIndex = 0;
		this.onCurrent(node);
	}

	zoom(node) {
		this.zoomed = node;
		this.current = node;
		this.draw();
		this.onCurrent(node);
	}

	search(matches) {
		this.matches = matches;
		this.draw();
	}

	// The next drawn sibling to one side, or the node itself.
	beside(node, step) {
		const siblings = node ? this.tree.childrenOf[this.tree.parents[node]] : [node];
		let at = siblings.indexOf(node) + step;

		while (at >= 0 && at < siblings.length && !this.boxes.has(siblings[at]))
			at += step;
		return siblings[at] ?? node;
	}

	target(key) {
		const at = this.current;

		switch (key) {
		case "ArrowUp":
			return Math.max(this.tree.parents[at], 0);
		case "ArrowDown":
			return this.tree.childrenOf[at].find((child) => this.boxes.has(child)) ?? at;
		case "ArrowLeft":
			return this.beside(at, -1);
		case "ArrowRight":
			return this.beside(at, 1);
		case "Home":
			return 0;
		default:
			return null;
		}
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		const target = this.target(event.key);

		if (target !== null)
			this.boxes.get(target)?.focus();
		else if (event.key === "Enter" || event.key === " ")
			this.zoom(this.current);
		else if (event.key === "Escape")
			this.zoom(0);
		else
			return;
		event.preventDefault();
	}
}
