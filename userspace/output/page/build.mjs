// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Bundles each page into one HTML text, cuts it where the data goes, and writes both halves as lists
// of bytes for a C array. Run in a folder that has src/ and node_modules/:
//
//	node build.mjs

import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";

import { buildSync } from "esbuild";

const BYTES_A_LINE = 24;

function bundle(entry) {
	const result = buildSync({
		entryPoints: [entry],
		bundle: true,
		minify: true,
		write: false,
		format: "iife",
		target: ["es2022"],
		charset: "ascii",
		legalComments: "none",
		logLevel: "error",
	});

	return result.outputFiles[0].text.trim();
}

// The licence of the library that is in the memory page goes with it.
function notice() {
	const text = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();

	return `/*! Contains uPlot (https://github.com/leeoniya/uPlot):\n\n${text}\n*/\n`;
}

function sha256(text) {
	return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

// Nothing may be loaded, and only these two texts may run or style.
function policy(script, style) {
	return [
		"default-src 'none'",
		"img-src data:",
		`script-src ${sha256(script)}`,
		`style-src ${sha256(style)}`,
		"base-uri 'none'",
		"form-action 'none'",
	].join("; ");
}

function writeBytes(path, text) {
	const bytes = [...Buffer.from(text, "utf8")];
	const lines = [];

	for (let i = 0; i < bytes.length; i += BYTES_A_LINE)
		lines.push(`${bytes.slice(i, i + BYTES_A_LINE).join(",")},`);
	writeFileSync(`${path}.new`, `${lines.join("\n")}\n`);
	renameSync(`${path}.new`, path);
}

function build({ name, title, licence }) {
	const script = licence + bundle(`src/${name}.js`);
	const style = bundle(`src/${name}.css`);

	for (const [text, end] of [[script, "</script"], [script, "<!--"], [style, "</style"]]) {
		if (text.toLowerCase().includes(end))
			throw new Error(`the bundle of ${name} contains ${end}: it would end its own element`);
	}

	const page = readFileSync("src/page.html", "utf8")
		.replace("@TITLE@", () => title)
		.replace("@CSP@", () => policy(script, style))
		.replace("@STYLE@", () => style)
		.replace("@SCRIPT@", () => script);
	const halves = page.split("@DATA@");

	if (halves.length !== 2)
		throw new Error("src/page.html needs exactly one place for the data");
	writeBytes(`${name}_head.inc`, halves[0]);
	writeBytes(`${name}_tail.inc`, halves[1]);
}

build({ name: "memory", title: "Memory timeline", licence: notice() });
build({ name: "flame", title: "Flame graphs", licence: "" });
