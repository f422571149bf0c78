// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Elements. Text from the data only ever becomes a text node: the names in it are those of the
// profiled program, which may be anything.

export function element(tag, options = {}, ...children) {
	const node = document.createElement(tag);

	for (const [key, value] of Object.entries(options)) {
		if (key === "class")
			node.className = value;
		else if (key === "data")
			Object.assign(node.dataset, value);
		else if (key.startsWith("on"))
			node.addEventListener(key.slice(2), value);
		else
			node.setAttribute(key, value);
	}
	node.append(...children.filter((child) => child !== null));
	return node;
}
