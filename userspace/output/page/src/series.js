// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// A device's running total as a step function over the whole capture: it begins with nothing at 0
// and keeps its last value to the end.

export function makeSeries(device, duration) {
	const times = [0];
	const bytes = [0];

	for (let i = 0; i < device.times_us.length; i++) {
		times.push(Math.max(device.times_us[i] / 1e6, times.at(-1)));
		bytes.push(device.bytes[i]);
	}
	times.push(Math.max(duration, times.at(-1)));
	bytes.push(bytes.at(-1));
	return { times, bytes };
}

// Index of the last point at or before `time`.
export function indexAt(series, time) {
	let low = 0;
	let high = series.times.length - 1;

	while (low < high) {
		const middle = (low + high + 1) >> 1;

		if (series.times[middle] <= time)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

// What the axis of bytes shows for a stretch of time. It begins at zero unless that would press
// the line flat against the top.
export function byteRange(series, from, to) {
	const last = indexAt(series, to);
	let low = Infinity;
	let high = -Infinity;

	for (let i = indexAt(series, from); i <= last; i++) {
		low = Math.min(low, series.bytes[i]);
		high = Math.max(high, series.bytes[i]);
	}
	const spread = high - low;

	if (low >= 0 && (spread === 0 || spread > 0.3 * high))
		return [0, high > 0 ? high * 1.12 : 1];
	return [low - 0.08 * (spread || 1), high + 0.12 * (spread || 1)];
}
