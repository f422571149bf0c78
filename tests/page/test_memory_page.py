# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The memory page in a browser: it draws, zooms, marks the peak, and lets no name do anything."""

import json
import os

import pytest

from pages import assert_quiet, brightness, near, show

# Everything about one chart that the tests compare, in screen pixels and in the data's units.
CHART = """
(() => {
	const section = document.querySelectorAll("section.device")[%d];
	const chart = section.querySelector(".chart");
	const over = chart.querySelector(".u-over").getBoundingClientRect();
	const mark = chart.querySelector(".mark");
	const box = mark.getBoundingClientRect();
	return {
		device: section.dataset.device,
		from: Number(chart.dataset.from),
		to: Number(chart.dataset.to),
		left: over.left, top: over.top, width: over.width, height: over.height,
		markHidden: mark.hidden,
		markBytes: Number(mark.dataset.bytes),
		markTimeUs: Number(mark.dataset.timeUs),
		markText: mark.textContent,
		markX: (box.left + box.right) / 2 - over.left,
		markY: (box.top + box.bottom) / 2 - over.top,
		readout: chart.querySelector(".readout").textContent,
	};
})()
"""

# Rows of the canvas (from the plot's top, in screen pixels) that the line's colour touches in one
# column, and the number of pixels with that colour in the whole plot.
INK = """
((number, column) => {
	const chart = document.querySelectorAll("section.device")[number].querySelector(".chart");
	const canvas = chart.querySelector("canvas");
	const over = chart.querySelector(".u-over").getBoundingClientRect();
	const at = canvas.getBoundingClientRect();
	const scale = canvas.width / at.width;
	const name = chart.closest("section").dataset.device === "cpu" ? "--cpu" : "--gpu";
	const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
	const left = Math.round((over.left - at.left) * scale);
	const top = Math.round((over.top - at.top) * scale);
	const width = Math.round(over.width * scale), height = Math.round(over.height * scale);
	// A copy: reading the chart's own canvas would change how the browser keeps it.
	const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
	copy.drawImage(canvas, -left, -top);
	const data = copy.getImageData(0, 0, width, height).data;
	const rows = [];
	let all = 0;
	for (let y = 0; y < height; y++)
		for (let x = 0; x < width; x++) {
			const i = 4 * (y * width + x);
			if (data[i + 3] < 200 || want.some((c, k) => Math.abs(c - data[i + k]) > 40))
				continue;
			all++;
			if (Math.abs(x - column * scale) <= 2)
				rows.push(y / scale);
		}
	return { all, top: rows.length ? Math.min(...rows) : null };
})(%d, %f)
"""

def load(pages, name):
    with open(pages / (name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def chart(browser, number=0):
    return browser.run(CHART % number)


def drawn(browser, number=0):
    """The chart once its line is on the canvas."""
    browser.wait("(%s).all > 100" % (INK % (number, 0)))
    return chart(browser, number)


def visible(browser, number=0):
    """The chart, scrolled to where the mouse can reach it."""
    browser.run('document.querySelectorAll(".chart")[%d].scrollIntoView({ block: "center" })'
                % number)
    return drawn(browser, number)


@pytest.mark.parametrize("number", [0, 1])
def test_draws_each_device_and_marks_its_peak(browser, pages, shots, number):
    show(browser, pages, "training")
    data = load(pages, "training")
    device = data["devices"][number]
    got = drawn(browser, number)
    assert got["device"] == device["device"]
    assert got["from"] == 0
    near(got["to"], data["duration_us"] / 1e6, 1e-9)
    peak = device["peak"]
    assert max(device["bytes"]) == peak["bytes"] == got["markBytes"]
    assert device["times_us"][device["bytes"].index(peak["bytes"])] == peak["time_us"]
    assert got["markTimeUs"] == peak["time_us"]
    assert not got["markHidden"]
    near(got["markX"], peak["time_us"] / data["duration_us"] * got["width"], 2)
    # The line is there too: its highest ink at the mark's column is at the mark's height.
    near(browser.run(INK % (number, got["markX"]))["top"], got["markY"], 3)
    assert 0 < got["markY"] < got["height"] / 3
    browser.screenshot(os.path.join(shots, "training-light.png"))
    assert_quiet(browser, pages, "training")


def test_peak_says_its_size_and_time(browser, pages):
    show(browser, pages, "training")
    peak = load(pages, "training")["devices"][1]["peak"]
    text = drawn(browser, 1)["markText"]
    assert "%.2f GB" % (peak["bytes"] / 2**30) in text
    assert text.endswith(" ms")
    near(float(text.split()[-2]), peak["time_us"] / 1000, 1)


def test_drag_zooms_every_chart_and_double_click_shows_all(browser, pages, shots):
    show(browser, pages, "training")
    before = visible(browser)
    y = before["top"] + before["height"] / 2
    browser.drag(before["left"] + before["width"] * 0.25, before["left"] + before["width"] * 0.35, y)
    browser.wait("(%s).from > 0" % (CHART % 0))
    for number in (0, 1):
        got = chart(browser, number)
        near(got["from"], 0.25 * before["to"], 0.01)
        near(got["to"], 0.35 * before["to"], 0.01)
    # The peak lies outside of what is shown now.
    browser.wait("(%s).markHidden" % (CHART % 0))
    browser.screenshot(os.path.join(shots, "training-zoomed.png"))
    browser.double_click(before["left"] + before["width"] / 2, y)
    browser.wait("(%s).from === 0" % (CHART % 0))
    near(chart(browser, 1)["to"], before["to"], 1e-9)
    browser.wait("!(%s).markHidden" % (CHART % 0))
    assert_quiet(browser, pages, "training")


def test_wheel_zooms_around_the_pointer(browser, pages):
    show(browser, pages, "training")
    before = visible(browser)
    x = before["left"] + before["width"] * 0.3
    y = before["top"] + before["height"] / 2
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
    browser.wait("(%s).from > 0" % (CHART % 0))
    got = chart(browser)
    near(got["to"] - got["from"], 0.75 * before["to"], 0.001)
    # What was under the pointer still is.
    near(got["from"] + 0.3 * (got["to"] - got["from"]), 0.3 * before["to"], 0.005)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=100)
    browser.wait("(%s).from === 0" % (CHART % 0))
    near(chart(browser)["to"], before["to"], 0.001)


def test_zoom_ends_at_the_edges_and_at_a_microsecond(browser, pages):
    show(browser, pages, "training")
    before = visible(browser)
    x, y = before["left"] + before["width"] - 3, before["top"] + before["height"] / 2
    for delta in [100] * 3 + [-100] * 70:
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)
    got = chart(browser)
    assert 0 <= got["from"] < got["to"] <= before["to"]
    near(got["to"] - got["from"], 1e-6, 1e-9)
    assert_quiet(browser, pages, "training")


def test_buttons_zoom(browser, pages):
    show(browser, pages, "training")
    before = drawn(browser)
    press = '[...document.querySelectorAll(".toolbar button")].find((b) => b.textContent === "%s").click()'
    browser.run(press % "Zoom in")
    near(chart(browser)["to"] - chart(browser)["from"], before["to"] / 2, 1e-6)
    browser.run(press % "Zoom out")
    near(chart(browser)["to"] - chart(browser)["from"], before["to"], 1e-6)
    browser.run(press % "Zoom in")
    browser.run(press % "Show all")
    assert chart(browser)["from"] == 0


def test_hover_reads_the_value_at_that_time(browser, pages):
    show(browser, pages, "training")
    data = load(pages, "training")
    device = data["devices"][0]
    before = visible(browser)
    y = before["top"] + before["height"] / 2
    for share in (0.03, 0.5, 0.99):
        browser.mouse("mouseMoved", before["left"] + round(before["width"] * share), y)
        x_us = round(before["width"] * share) / before["width"] * data["duration_us"]
        # The pointer is exact to a pixel: any value within one is right.
        slack = data["duration_us"] / before["width"]
        low = max([i for i, t in enumerate(device["times_us"]) if t <= x_us - slack], default=None)
        high = max([i for i, t in enumerate(device["times_us"]) if t <= x_us + slack], default=None)
        fitting = {device["bytes"][i] for i in range(low or 0, (high or 0) + 1)}
        if low is None:
            fitting.add(0)
        texts = {"0 B" if b == 0 else "%.2f MB" % (b / 2**20) for b in fitting}
        browser.wait("%s.includes((%s).readout.split(' at ')[0])"
                     % (json.dumps(sorted(texts)), CHART % 0))


def test_pointer_on_one_chart_reads_all(browser, pages):
    show(browser, pages, "training")
    before = visible(browser)
    browser.mouse("mouseMoved", before["left"] + before["width"] / 2,
                  before["top"] + before["height"] / 2)
    for number in (0, 1):
        browser.wait("(%s).readout.includes(' at ')" % (CHART % number))
    times = [chart(browser, number)["readout"].split(" at ")[1] for number in (0, 1)]
    assert times[0] == times[1]
    near(float(times[0].split()[0]), 500, 2)


def test_tables_tell_who_held_and_who_allocated(browser, pages):
    show(browser, pages, "training")
    device = load(pages, "training")["devices"][0]
    rows = browser.run("""
        [...document.querySelectorAll("section.device")[0].querySelectorAll("section.ops")].map((s) => ({
            kind: s.dataset.kind,
            names: [...s.querySelectorAll("tbody .op, tbody i")].map((n) => n.textContent),
            bytes: [...s.querySelectorAll("tbody .bytes span:last-child")].map((n) => n.textContent),
        }))""")
    assert [row["kind"] for row in rows] == ["peak", "allocated"]
    for row, wanted in zip(rows, [device["peak"]["held_by"], device["ops"]]):
        assert row["names"] == [op["op"] or "outside any op" for op in wanted]
        assert row["bytes"] == ["%.2f MB" % (op["bytes"] / 2**20) for op in wanted]
    assert sum(op["bytes"] for op in device["peak"]["held_by"]) == device["peak"]["bytes"]


def test_losses_stand_in_the_page(browser, pages):
    show(browser, pages, "training")
    text = browser.run('document.querySelector("footer").textContent')
    assert "1 of 2 counters above zero" in text
    assert "free_unknown17" in text and "Zero: ring_full." in text


def test_hostile_names_are_only_text(browser, pages, shots):
    show(browser, pages, "hostile")
    drawn(browser)
    # A page is for eyes: what would turn text around is not in it.
    names = [op["op"].replace("\u202e", "?")
             for op in load(pages, "hostile")["devices"][0]["ops"]]
    assert any("</script>" in name for name in names)
    shown = browser.run("""[...document.querySelectorAll("section.ops[data-kind=allocated] .op")]
        .map((n) => n.textContent)""")
    assert shown == names
    assert browser.run("window.broken === undefined")
    assert browser.run("document.scripts.length") == 2
    assert browser.run('document.querySelectorAll("img, iframe, object").length') == 0
    browser.screenshot(os.path.join(shots, "hostile.png"))
    assert_quiet(browser, pages, "hostile")


@pytest.mark.parametrize("size", [(360, 740), (768, 1024), (1280, 800), (2200, 1300)])
@pytest.mark.parametrize("name", ["training", "hostile"])
def test_fits_the_screen(browser, pages, shots, name, size):
    width, height = size
    show(browser, pages, name, width=width, height=height)
    got = drawn(browser)
    browser.screenshot(os.path.join(shots, "%s-%d.png" % (name, width)))
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert got["left"] >= 0 and got["left"] + got["width"] <= width
    assert got["width"] > width / 2
    box = browser.run('(() => { const r = document.querySelector(".mark span").getBoundingClientRect();'
                      " return [r.left, r.right]; })()")
    assert 0 <= box[0] and box[1] <= width


def test_follows_light_and_dark(browser, pages, shots):
    show(browser, pages, "training", dark=True)
    drawn(browser)
    browser.screenshot(os.path.join(shots, "training-dark.png"))
    assert brightness(browser, "backgroundColor") < 150 < 600 < brightness(browser, "color")
    # Changing while the page is open repaints the line too.
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "light"}])
    drawn(browser)
    assert brightness(browser, "backgroundColor") > 600
    assert_quiet(browser, pages, "training")


def test_follows_the_window_size(browser, pages):
    show(browser, pages, "training")
    before = drawn(browser)
    browser.call("Emulation.setDeviceMetricsOverride", width=700, height=800, deviceScaleFactor=1,
                 mobile=False)
    browser.wait("(%s).width < %f" % (CHART % 0, before["width"] - 300))
    browser.wait("Math.abs((%s).markX - %f * (%s).width) <= 2"
                 % (CHART % 0, before["markX"] / before["width"], CHART % 0))


def test_a_million_events_become_a_small_page_that_says_so(browser, pages, shots):
    assert os.path.getsize(pages / "million.html") < 2_000_000
    show(browser, pages, "million")
    device = load(pages, "million")["devices"][0]
    assert device["events"] == len(device["times_us"]) == 1_000_000
    got = drawn(browser)
    assert got["markBytes"] == device["peak"]["bytes"] == max(device["bytes"])
    near(browser.run(INK % (0, got["markX"]))["top"], got["markY"], 3)
    assert "of 1,000,000 points" in browser.run('document.querySelector(".device").textContent')
    held = json.loads(browser.run('document.getElementById("data").textContent'))["devices"][0]
    assert len(held["times_us"]) <= 20_000
    assert max(held["bytes"]) == max(device["bytes"])
    browser.screenshot(os.path.join(shots, "million.png"))
    assert_quiet(browser, pages, "million")


def test_nothing_captured_is_said(browser, pages):
    show(browser, pages, "nothing")
    text = browser.run("document.body.textContent")
    assert "No allocation or free was captured." in text
    assert "Losses: none" in text
    assert_quiet(browser, pages, "nothing")


CATEGORIES = """
(() => {
	const chart = document.querySelectorAll("section.device")[1].querySelector(".chart.categories");
	const over = chart.querySelector(".u-over").getBoundingClientRect();
	return {
		left: over.left, top: over.top, width: over.width, height: over.height,
		readout: chart.querySelector(".readout").textContent,
		legend: [...chart.querySelectorAll(".legend li")].map((li) => li.textContent),
		first: document.querySelectorAll("section.device")[0].querySelector(".categories") === null,
	};
})()
"""


def test_categories_are_stacked_and_said(browser, pages, shots):
    show(browser, pages, "training")
    data = load(pages, "training")["devices"][1]["categories"]
    browser.run('document.querySelector(".categories").scrollIntoView({ block: "center" })')
    browser.wait("(%s).left > 0" % CATEGORIES)
    got = browser.run(CATEGORIES)
    assert got["first"], "the CPU has no categories"
    assert got["legend"] == ["parameters, at most 400.00 MB", "optimizer state, at most 800.00 MB",
                             "activations, at most 1.56 GB", "gradients, at most 400.00 MB"]
    index = len(data["times_us"]) // 2
    duration = load(pages, "training")["duration_us"]
    browser.mouse("mouseMoved", got["left"] + got["width"] * (data["times_us"][index] + 20) / duration,
                  got["top"] + got["height"] / 2)
    browser.wait('document.querySelector(".categories .readout").textContent.includes(": para")')
    said = browser.run(CATEGORIES)["readout"]
    assert "parameters 400.00 MB, optimizer state 800.00 MB" in said
    browser.screenshot(os.path.join(shots, "categories.png"))
    assert_quiet(browser, pages, "training")


def test_what_was_held_when_memory_ran_out(browser, pages, shots):
    show(browser, pages, "training")
    refused = load(pages, "training")["out_of_memory"][0]
    text = browser.run('document.querySelector(".refused").textContent')
    assert "2.00 GB asked for in aten::empty. The allocator held 3.00 GB." in text
    assert sum(row["bytes"] for row in refused["held_by"]) == refused["held_bytes"] > 0
    rows = browser.run('[...document.querySelectorAll(".refused tbody th")].map((e) => '
                       'e.textContent)')
    assert len(rows) == len(refused["held_by"]) == 4
    browser.run('document.querySelector(".refused").scrollIntoView({ block: "center" })')
    browser.screenshot(os.path.join(shots, "refused.png"))
