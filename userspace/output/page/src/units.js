// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Bytes and times in words. Bytes count in steps of 1024, as the table does.

const BYTE_UNITS = [
	[2 ** 40, "TB"],
	[2 ** 30, "GB"],
	[2 ** 20, "MB"],
	[2 ** 10, "KB"],
	[1, "B"],
];

const TIME_UNITS = [
	[600, 60, "min"],
	[1, 1, "s"],
	[1e-3, 1e-3, "ms"],
	[0, 1e-6, "µs"],
];

function byteUnit(bytes) {
	return BYTE_UNITS.find(([size]) => Math.abs(bytes) >= size) ?? BYTE_UNITS.at(-1);
}

function timeUnit(seconds) {
	const [, size, name] = TIME_UNITS.find(([from]) => Math.abs(seconds) >= from);

	return [size, name];
}

// Decimals with which multiples of `step` can be told apart.
function decimalsFor(step) {
	for (let decimals = 0; decimals < 6; decimals++) {
		const scaled = step * 10 ** decimals;

		if (Math.abs(scaled - Math.round(scaled)) < 1e-6 * scaled)
			return decimals;
	}
	return 6;
}

export function formatBytes(bytes) {
	const [size, name] = byteUnit(bytes);

	return `${(bytes / size).toFixed(size === 1 ? 0 : 2)} ${name}`;
}

// `span` is the width of what is looked at: the narrower, the more decimals.
export function formatTime(seconds, span) {
	const [size, name] = timeUnit(seconds);
	const digits = Math.ceil(-Math.log10(Math.max(span, 1e-9) / size / 1000));

	return `${(seconds / size).toFixed(Math.min(Math.max(digits, 0), 6))} ${name}`;
}

export function formatCount(n) {
	return n.toLocaleString("en");
}

function formatTicks(values, step, [size, name]) {
	const decimals = decimalsFor(step / size);

	return values.map((value) => (value === 0 ? "0" : `${(value / size).toFixed(decimals)} ${name}`));
}

function largest(values) {
	return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

export function byteTicks(values, step) {
	return formatTicks(values, step, byteUnit(largest(values)));
}

export function timeTicks(values, step) {
	return formatTicks(values, step, timeUnit(largest(values)));
}

// Steps of an axis of bytes: powers of two, so that the labels are round.
export const BYTE_STEPS = Array.from({ length: 52 }, (_, power) => 2 ** power);
