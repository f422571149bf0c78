// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// What the pages have alike: facts, lists of facts, the capture and its losses.

import { element } from "./dom.js";
import { formatTime } from "./units.js";

export function fact(name, value) {
	return element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value));
}

function pairList(title, pairs, open) {
	const rows = pairs.map(([key, value]) => fact(key, String(value)));
	const node = element("details", { class: "pairs" }, element("summary", {}, title), element("dl", {}, ...rows));

	node.open = open;
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
	const above = losses.filter(([, count]) => count > 0).length;
	const title = above ? `Losses: ${above} of ${losses.length} counters above zero` : "Losses: none";

	return element(
		"footer",
		{},
		losses.length ? pairList(title, losses, above > 0) : null,
		pairList("Capture", Object.entries(data.capture), false),
	);
}
