// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// One device's chart: the total over time, the peak as a mark with its label, zoom by dragging and
// by the wheel. The view decides what is shown; the chart only asks it.

import uPlot from "uplot";

import { element } from "./dom.js";
import { byteRange, indexAt } from "./series.js";
import { BYTE_STEPS, byteTicks, formatBytes, formatTime, timeTicks } from "./units.js";

const HINT = "Drag or use the wheel to zoom, double-click to see all again.";
const NARROW = 600;

export function colour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function isMove(type) {
	return type === "mousemove" || type === "mouseleave";
}

export class Chart {
	constructor(device, series, view) {
		this.series = series;
		this.view = view;
		this.peak = device.peak;
		this.line = device.device === "cpu" ? "--cpu" : "--gpu";
		this.readout = element("output", { class: "readout" }, HINT);
		this.plotted = element("div", { class: "plot" });
		this.node = element("div", { class: "chart" }, this.readout, this.plotted);
		this.mark = this.makeMark();
	}

	// The node has to be in the document: its width decides the chart's.
	draw() {
		this.plot = new uPlot(this.options(), this.data(), this.plotted);
		if (this.mark)
			this.plot.over.append(this.mark);
		this.plot.over.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
		new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.plotted);
		this.view.add(this);
	}

	data() {
		return [this.series.times, this.series.bytes];
	}

	// New colours after the system went from light to dark or back.
	recolour() {
		this.plot.redraw(false, true);
	}

	size() {
		const width = Math.max(this.plotted.clientWidth, 240);

		return { width, height: width < NARROW ? 220 : 300 };
	}

	options() {
		const axis = { stroke: () => colour("--muted"), font: "12px system-ui, sans-serif" };
		const grid = { stroke: () => colour("--grid"), width: 1 };

		return {
			...this.size(),
			legend: { show: false },
			cursor: {
				y: false,
				drag: { x: true, y: false, setScale: false },
				// Charts share where the pointer is; what it selects goes through the view.
				sync: { key: "time", filters: { pub: isMove } },
				dataIdx: (plot, i, closest, time) => indexAt(this.series, time),
				bind: { dblclick: () => () => this.view.reset() },
			},
			scales: {
				x: { time: false, auto: false, range: (plot, min, max) => [min, max] },
				y: { auto: false, range: (plot, min, max) => [min, max] },
			},
			series: [{}, ...this.lines()],
			axes: [
				{ ...axis, grid, ticks: grid, space: 80, values: this.ticks(timeTicks) },
				{ ...axis, grid, ticks: grid, size: 78, incrs: BYTE_STEPS, values: this.ticks(byteTicks) },
			],
			hooks: {
				ready: [(plot) => this.place(plot, this.view.min, this.view.max)],
				draw: [() => this.placeMark()],
				setSelect: [(plot) => this.selected(plot)],
				setCursor: [(plot) => this.read(plot)],
			},
		};
	}

	ticks(format) {
		return (plot, values, axis, space, step) => format(values, step);
	}

	lines() {
		return [this.lineOptions()];
	}

	lineOptions() {
		return {
			stroke: () => colour(this.line),
			fill: () => colour(`${this.line}-fill`),
			width: 1.5,
			paths: uPlot.paths.stepped({ align: 1 }),
			points: { show: false },
		};
	}

	show(min, max) {
		this.place(this.plot, min, max);
	}

	byteRange(min, max) {
		return byteRange(this.series, min, max);
	}

	place(plot, min, max) {
		const [low, high] = this.byteRange(min, max);

		plot.batch(() => {
			plot.setScale("x", { min, max });
			plot.setScale("y", { min: low, max: high });
		});
		Object.assign(this.node.dataset, { from: min, to: max });
	}

	wheel(event) {
		const left = event.clientX - this.plot.over.getBoundingClientRect().left;

		event.preventDefault();
		this.view.zoom(event.deltaY < 0 ? 0.75 : 1 / 0.75, this.plot.posToVal(left, "x"));
	}

	selected(plot) {
		const { left, width } = plot.select;

		if (width < 4)
			return;
		const from = plot.posToVal(left, "x");
		const to = plot.posToVal(left + width, "x");

		plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
		this.view.set(from, to);
	}

	read(plot) {
		const i = plot.cursor.idxs?.[1];

		if (plot.cursor.left < 0 || i === null || i === undefined) {
			this.readout.textContent = HINT;
			return;
		}
		this.readout.textContent = this.said(plot.posToVal(plot.cursor.left, "x"), i);
	}

	// What the pointer at this time, over this point, says.
	said(time, i) {
		const at = formatTime(time, this.view.max - this.view.min);

		return `${formatBytes(this.series.bytes[i])} at ${at}`;
	}

	makeMark() {
		if (!this.peak)
			return null;
		const { bytes, time_us } = this.peak;
		const at = formatTime(time_us / 1e6, this.view.end);

		return element(
			"div",
			{ class: "mark", data: { bytes, timeUs: time_us } },
			element("span", {}, `peak ${formatBytes(bytes)} at ${at}`),
		);
	}

	placeMark() {
		if (!this.mark || !this.plot)
			return;
		const time = this.peak.time_us / 1e6;
		const left = this.plot.valToPos(time, "x");
		const width = this.plot.over.clientWidth;

		this.mark.hidden = time < this.view.min || time > this.view.max;
		this.mark.style.left = `${left}px`;
		this.mark.style.top = `${this.plot.valToPos(this.peak.bytes, "y")}px`;
		this.placeLabel(left, width);
	}

	// Towards the middle of the chart, and never over its edge.
	placeLabel(left, width) {
		const label = this.mark.firstElementChild;
		const room = Math.max(width - label.offsetWidth, 0);
		const wanted = left > width / 2 ? left - 8 - label.offsetWidth : left + 8;

		label.style.left = `${Math.min(Math.max(wanted, 0), room) - left}px`;
	}
}
