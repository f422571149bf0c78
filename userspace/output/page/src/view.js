// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// The stretch of time that every chart of the page shows.

const NARROWEST = 1e-6;

export class View {
	constructor(end) {
		this.end = end;
		this.min = 0;
		this.max = end;
		this.charts = [];
	}

	add(chart) {
		this.charts.push(chart);
	}

	set(min, max) {
		const span = Math.max(max - min, NARROWEST);
		const whole = span > this.end * (1 - 1e-9);
		const from = whole ? 0 : Math.min(Math.max(min, 0), this.end - span);

		this.min = from;
		this.max = whole ? this.end : from + span;
		for (const chart of this.charts)
			chart.show(this.min, this.max);
	}

	reset() {
		this.set(0, this.end);
	}

	// Makes the stretch `factor` times as long; `center` stays where it is on the screen.
	zoom(factor, center = (this.min + this.max) / 2) {
		const span = (this.max - this.min) * factor;
		const share = (center - this.min) / (this.max - this.min);

		this.set(center - share * span, center + (1 - share) * span);
	}
}
