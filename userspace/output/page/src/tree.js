// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// The tree of frames. Node 0 is the root and a parent stands before its children, so one pass in
// order goes down the tree and one in reverse goes up.

export class Tree {
	constructor(data) {
		this.parents = data.parents;
		this.frameOf = data.frame_of;
		this.frames = data.frames;
		this.kinds = data.kinds;
		this.own = data.own;
		this.count = data.parents.length;
		this.childrenOf = Array.from({ length: this.count }, () => []);
		for (let i = 1; i < this.count; i++)
			this.childrenOf[this.parents[i]].push(i);
		this.levels = new Uint32Array(this.count);
		for (let i = 1; i < this.count; i++)
			this.levels[i] = this.levels[this.parents[i]] + 1;
		this.measure(0);
	}

	name(node) {
		return this.frames[this.frameOf[node]][0] || "(no name)";
	}

	// On which lines of its source it was; "" where that is not known.
	where(node) {
		return this.frames[this.frameOf[node]][2] || "";
	}

	kind(node) {
		return this.kinds[this.frames[this.frameOf[node]][1]];
	}

	// Totals by this metric, and where each node begins if children lie side by side, the largest
	// first. What is a node's own lies behind its children.
	measure(metric) {
		const own = this.own[metric];
		const totals = Float64Array.from(own);
		const starts = new Float64Array(this.count);

		for (let i = this.count - 1; i > 0; i--)
			totals[this.parents[i]] += totals[i];
		for (let i = 0; i < this.count; i++) {
			let at = starts[i];

			this.childrenOf[i].sort((a, b) => totals[b] - totals[a] || a - b);
			for (const child of this.childrenOf[i]) {
				starts[child] = at;
				at += totals[child];
			}
		}
		this.ownOf = own;
		this.totals = totals;
		this.starts = starts;
	}

	// From the root to the node.
	path(node) {
		const nodes = [];

		for (let at = node; at >= 0; at = this.parents[at])
			nodes.unshift(at);
		return nodes;
	}

	// Adds up the nodes for which wanted() holds, without those below another such node.
	sum(wanted) {
		const inside = new Uint8Array(this.count);
		let total = 0;
		let nodes = 0;

		for (let i = 0; i < this.count; i++) {
			const hit = wanted(i) && this.totals[i] > 0;

			if (i > 0)
				inside[i] = inside[this.parents[i]];
			if (hit)
				nodes++;
			if (hit && !inside[i]) {
				inside[i] = 1;
				total += this.totals[i];
			}
		}
		return { total, nodes };
	}
}
