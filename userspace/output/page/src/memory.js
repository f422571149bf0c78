// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// The memory timeline's page: reads the data it carries and builds everything from it.

import { Chart } from "./chart.js";
import { element } from "./dom.js";
import { captured, fact, footer } from "./parts.js";
import { makeSeries } from "./series.js";
import { allocationTable, peakTable } from "./tables.js";
import { formatBytes, formatCount, formatTime } from "./units.js";
import { View } from "./view.js";

// More charts than anyone can look at would only make the browser slow.
const CHARTS_AT_MOST = 64;

function processName(data, device) {
	const process = data.processes[device.process];

	if (!process)
		return "process not known";
	const rank = process.rank === null ? "" : `, rank ${process.rank}`;

	return `${process.comm ?? "?"} (pid ${process.pid}${rank})`;
}

function deviceFacts(data, device) {
	const duration = data.duration_us / 1e6;
	const peak = device.peak
		? `${formatBytes(device.peak.bytes)} at ${formatTime(device.peak.time_us / 1e6, duration)}`
		: "nothing allocated";

	return element(
		"dl",
		{ class: "facts" },
		fact("Peak", peak),
		fact("At the end", formatBytes(device.end_bytes)),
		fact("Allocations and frees", formatCount(device.events)),
	);
}

function thinnedNote(device) {
	if (device.thinned_us === null)
		return null;
	const stretch = formatTime(device.thinned_us / 1e6, device.thinned_us / 1e6);

	return element(
		"p",
		{ class: "note" },
		`Thinned out: ${formatCount(device.times_us.length)} of ${formatCount(device.events)} points, ` +
			`the first, last, lowest and highest of each ${stretch}. The .json form has all.`,
	);
}

function deviceSection(data, device, chart) {
	return element(
		"section",
		{ class: "device", data: { device: device.device } },
		element("h2", {}, device.device, " ", element("small", {}, processName(data, device))),
		deviceFacts(data, device),
		chart.node,
		thinnedNote(device),
		element("div", { class: "tables" }, device.peak && peakTable(device), allocationTable(device)),
	);
}

function header(data) {
	const unknown = data.frees_of_unknown_size;

	return element(
		"header",
		{},
		element("h1", {}, "Memory timeline"),
		element("p", { class: "note" }, `${captured(data)} 1 KB is 1024 bytes.`),
		element(
			"p",
			{ class: "note" },
			"Counted from the capture's beginning: what was allocated before it is not in the charts" +
				(unknown ? `, nor are the ${formatCount(unknown)} frees of such memory.` : "."),
		),
	);
}

function toolbar(view) {
	const button = (label, act) => element("button", { type: "button", onclick: act }, label);

	return element(
		"div",
		{ class: "toolbar" },
		button("Zoom in", () => view.zoom(0.5)),
		button("Zoom out", () => view.zoom(2)),
		button("Show all", () => view.reset()),
	);
}

function chartsOf(data) {
	const devices = data.devices.slice(0, CHARTS_AT_MOST);
	const ends = devices.map((device) => device.times_us.at(-1) / 1e6);
	const end = Math.max(data.duration_us / 1e6, ...ends, 1e-6);
	const view = new View(end);
	const charts = devices.map((device) => new Chart(device, makeSeries(device, end), view));

	return { devices, view, charts };
}

function build(page, data) {
	const { devices, view, charts } = chartsOf(data);
	const left = data.devices.length - devices.length;

	page.append(header(data));
	if (!devices.length)
		page.append(element("p", { class: "empty" }, "No allocation or free was captured."));
	else
		page.append(toolbar(view));
	page.append(...devices.map((device, i) => deviceSection(data, device, charts[i])));
	if (left > 0)
		page.append(element("p", { class: "note" }, `${formatCount(left)} more devices are in the .json form only.`));
	page.append(footer(data));
	for (const chart of charts)
		chart.draw();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
		for (const chart of charts)
			chart.recolour();
	});
}

const page = document.getElementById("page");

page.replaceChildren();
build(page, JSON.parse(document.getElementById("data").textContent));
page.dataset.state = "ready";
