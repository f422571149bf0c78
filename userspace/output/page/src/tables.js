// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// The tables of ops beside a chart.

import { element } from "./dom.js";
import { formatBytes, formatCount } from "./units.js";

const ROWS_AT_FIRST = 12;
const LONG_NAME = 160;

// Lets a name break after "::" and "_" rather than anywhere; a very long one breaks anywhere.
function breakable(name) {
	if (name.length > LONG_NAME)
		return [name];
	return name.split(/(?<=::|_)/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}

function nameCell(row) {
	if (row.op === null)
		return element("th", { class: "name", scope: "row" }, element("i", {}, "outside any op"));
	const same = row.outermost === row.op || row.outermost === null;
	const under = same ? null : element("span", { class: "under" }, ...breakable(row.outermost));
	const op = element("span", { class: "op" }, ...breakable(row.op));

	return element("th", { class: "name", scope: "row" }, op, under);
}

function barCell(bytes, most) {
	const bar = element("span", { class: "bar" });

	bar.style.width = `${most > 0 ? Math.min(100, (100 * bytes) / most) : 0}%`;
	return element("td", { class: "bytes" }, bar, element("span", {}, formatBytes(bytes)));
}

function bodyRow(row, columns, most) {
	const cells = columns.map(({ key, bytes }) => {
		if (key === "bytes")
			return barCell(row.bytes, most);
		return element("td", {}, bytes ? formatBytes(row[key]) : formatCount(row[key]));
	});

	return element("tr", {}, nameCell(row), ...cells);
}

function moreButton(body, rows, makeRow) {
	if (rows.length <= ROWS_AT_FIRST)
		return null;
	const button = element("button", { type: "button" }, `Show all ${formatCount(rows.length)} rows`);

	button.addEventListener("click", () => {
		body.append(...rows.slice(ROWS_AT_FIRST).map(makeRow));
		button.remove();
	});
	return button;
}

function opTable(title, kind, columns, rows, total) {
	const most = rows.length ? rows[0].bytes : 0;
	const makeRow = (row) => bodyRow(row, columns, most);
	const body = element("tbody", {}, ...rows.slice(0, ROWS_AT_FIRST).map(makeRow));
	const heads = columns.map(({ label }) => element("th", { scope: "col" }, label));
	const cut = total > rows.length ? `The first ${formatCount(rows.length)} of ${formatCount(total)} ops.` : null;

	return element(
		"section",
		{ class: "ops", data: { kind } },
		element("h3", {}, title),
		element(
			"div",
			{ class: "scroll", tabindex: "0" },
			element(
				"table",
				{},
				element("thead", {}, element("tr", {}, element("th", { class: "name", scope: "col" }, "Op"), ...heads)),
				body,
			),
		),
		moreButton(body, rows, makeRow),
		cut && element("p", { class: "note" }, cut),
	);
}

export function peakTable(device) {
	return opTable(
		"Held at the peak",
		"peak",
		[
			{ key: "bytes", label: "Held", bytes: true },
			{ key: "allocations", label: "Allocations" },
		],
		device.peak.held_by,
		device.peak.held_by_nr,
	);
}

export function allocationTable(device) {
	return opTable(
		"Top allocating ops",
		"allocated",
		[
			{ key: "bytes", label: "Allocated in all", bytes: true },
			{ key: "allocations", label: "Allocations" },
			{ key: "largest_bytes", label: "Largest", bytes: true },
			{ key: "end_bytes", label: "Not freed", bytes: true },
		],
		device.ops,
		device.ops_nr,
	);
}

// By op, and where there are stacks by Python line.
export function refusedTables(refused) {
	const columns = [
		{ key: "bytes", label: "Held", bytes: true },
		{ key: "allocations", label: "Allocations" },
	];
	const lines = refused.lines.map((row) => ({ ...row, op: row.line ?? "no stack", outermost: null }));

	return [
		opTable("Held by op", "refused", columns, refused.held_by, refused.held_by_nr),
		lines.length ? opTable("Held by Python line", "refused-lines", columns, lines, refused.lines_nr) : null,
	];
}
