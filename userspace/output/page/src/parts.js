// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// What the pages have alike: facts, lists of facts, the capture and its losses.

import { element } from "./dom.js";
import { formatCount, formatTime } from "./units.js";

export function fact(name, value) {
	return element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value));
}

function pairList(title, pairs, ...more) {
	const rows = pairs.map(([key, value]) => fact(key, String(value)));

	return element("details", { class: "pairs" }, element("summary", {}, title), element("dl", {}, ...rows), ...more);
}

// Counters that are zero are named and take no more room than their names.
function lossList(losses) {
	const above = losses.filter(([, count]) => count > 0);
	const zero = losses.filter(([, count]) => !(count > 0)).map(([name]) => name);
	const title = above.length ? `Losses: ${above.length} of ${losses.length} counters above zero` : "Losses: none";
	const node = pairList(
		title,
		above.map(([name, count]) => [name, formatCount(count)]),
		zero.length ? element("p", { class: "note" }, `Zero: ${zero.join(", ")}.`) : null,
	);

	node.open = above.length > 0;
	return node;
}

// When and for how long was captured, as a sentence.
export function captured(data) {
	const began = new Date(data.start_unix_us / 1000);
	const duration = data.duration_us / 1e6;
	const when = Number.isNaN(began.getTime()) ? "" : `, began ${began.toISOString().replace("T", " ").slice(0, 19)} UTC`;

	return `${formatTime(duration, duration)} captured by gpuprof${when}.`;
}

export function footer(data) {
	const losses = Object.entries(data.losses);

	return element(
		"footer",
		{},
		losses.length ? lossList(losses) : null,
		pairList("Capture", Object.entries(data.capture)),
	);
}
