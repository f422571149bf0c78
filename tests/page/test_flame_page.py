# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The flame graphs in a browser: sizes, zoom, search, keys, and names that are only text."""

import json
import os

import pytest

from pages import assert_quiet, brightness, near, show

# What is drawn: a box a line, in the order of the page.
BOXES = """
(() => {
	const whole = document.querySelector(".flame").getBoundingClientRect();
	return [...document.querySelectorAll(".flame .box")].map((box) => {
		const at = box.getBoundingClientRect();
		return {
			node: Number(box.dataset.node), text: box.textContent, kind: box.classList[1],
			left: at.left - whole.left, top: at.top - whole.top, width: at.width,
			whole: whole.width, label: box.getAttribute("aria-label"), title: box.title,
			match: box.classList.contains("match"), other: box.classList.contains("other"),
			above: box.classList.contains("above"), reached: box.tabIndex === 0,
			colour: getComputedStyle(box).backgroundColor,
		};
	});
})()
"""
CPU, CUDA, CALLS, ALLOCATED, PEAK = (
    "CPU time", "GPU time", "Calls", "Allocated bytes", "Bytes at the peak")
BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"


def boxes(browser):
    return browser.run(BOXES)


def box(browser, text):
    """The widest one of this name."""
    return max((one for one in boxes(browser) if one["title"].rsplit("\n", 1)[0] == text),
               key=lambda one: one["width"])


def choose(browser, metric):
    browser.run("""(() => {
        const select = document.getElementById("metric");
        select.value = [...select.options].find((o) => o.text === %s).value;
        select.dispatchEvent(new Event("change"));
    })()""" % json.dumps(metric))


def search(browser, text):
    browser.run("""(() => {
        const input = document.getElementById("search");
        input.value = %s;
        input.dispatchEvent(new Event("input"));
    })()""" % json.dumps(text))
    return browser.run('document.querySelector(".matched").textContent')


def click(browser, one):
    at = browser.run("""(() => {
        const box = document.querySelector('.flame .box[data-node="%d"]');
        box.scrollIntoView({ block: "center" });
        const r = box.getBoundingClientRect();
        return [r.left + Math.min(r.width / 2, 5), r.top + r.height / 2];
    })()""" % one["node"])
    for what in ("mousePressed", "mouseReleased"):
        browser.mouse(what, *at, button="left", buttons=1 if what == "mousePressed" else 0,
                      clickCount=1)


def press(browser, key):
    for what in ("rawKeyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=what, key=key, code=key,
                     windowsVirtualKeyCode={"Enter": 13, "Escape": 27, "ArrowLeft": 37,
                                            "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
                                            "Tab": 9}[key])


def current(browser):
    return browser.run("document.activeElement.dataset.node ?? null")


def inside(one, other):
    return one["left"] >= other["left"] - 1 and \
        one["left"] + one["width"] <= other["left"] + other["width"] + 1


def test_widths_are_shares(browser, pages, shots):
    show(browser, pages, "flame")
    total = 6_100_000
    whole = box(browser, "all")["whole"]
    for text, value in (("all", total), ("train.py(41): step", 5_000_000),
                        (BACKWARD, 2_000_000), ("aten::mm", 1_000_000), ("aten::zero_", 300_000),
                        ("aten::relu", 500_000), ("cudaLaunchKernel", 10_000)):
        near(box(browser, text)["width"], value / total * whole, 1.5)
    browser.screenshot(os.path.join(shots, "flame-light.png"))
    assert_quiet(browser, pages, "flame")


def test_boxes_nest_and_do_not_overlap(browser, pages):
    show(browser, pages, "flame")
    data = json.loads(browser.run('document.getElementById("data").textContent'))
    for metric in (CPU, CUDA, CALLS, ALLOCATED, PEAK):
        choose(browser, metric)
        drawn = {one["node"]: one for one in boxes(browser)}
        assert len(drawn) > 4, metric
        for node, one in drawn.items():
            parent = data["parents"][node]
            assert parent < 0 or (inside(one, drawn[parent]) and one["top"] > drawn[parent]["top"])
        rows = sorted(drawn.values(), key=lambda one: (one["top"], one["left"]))
        for left, right in zip(rows, rows[1:]):
            assert left["top"] != right["top"] or \
                left["left"] + left["width"] <= right["left"] + 0.6


@pytest.mark.parametrize("metric, total, boxes_there", [
    (CPU, "6.10", ["[truncated]", "[no stack]", "[backward]", "aten::linear"]),
    (CUDA, "2.60", ["sgemm_128x64", "aten::addmm", "libtorch_cpu.so: at::native::add(at::Tensor const&)"]),
    (CALLS, "8", ["do_syscall_64 [k]", "libgomp.so.1: 0xdead0", "[incomplete]"]),
    (ALLOCATED, "26.25 KB", ["cpu", "cuda:0"]),
    (PEAK, "26.00 KB", ["cpu", "cuda:0", "model.py(12): Net.forward"]),
])
def test_metrics(browser, pages, shots, metric, total, boxes_there):
    show(browser, pages, "flame")
    choose(browser, metric)
    facts = browser.run('document.querySelector(".facts").textContent')
    assert facts.startswith("Total" + total), facts
    for text in boxes_there:
        box(browser, text)
    browser.screenshot(os.path.join(shots, "flame-%s.png" % metric.replace(" ", "-")))


def test_kinds_have_their_colours(browser, pages):
    show(browser, pages, "flame")
    choose(browser, CALLS)
    colours = {}
    for one in boxes(browser):
        if one["kind"] != "mark":
            colours.setdefault(one["kind"], set()).add(one["colour"])
    assert {"python", "native", "kernel", "op"} <= set(colours)
    assert all(len(found) == 1 for found in colours.values())
    assert len(set.union(*colours.values())) == len(colours)
    legend = browser.run('[...document.querySelectorAll(".legend li")].map((li) => li.textContent)')
    assert legend == ["Python", "Native code", "Operating system", "Operator", "CUDA call",
                      "On the GPU", "Remark"]


def test_click_zooms_and_button_shows_all(browser, pages, shots):
    show(browser, pages, "flame")
    click(browser, box(browser, "[backward]"))
    whole = box(browser, "all")["whole"]
    for text in ("all", "train.py(41): step", "[backward]"):
        near(box(browser, text)["width"], whole, 1.5)
    near(box(browser, BACKWARD)["width"], 2 / 3 * whole, 1.5)
    assert box(browser, "train.py(41): step")["above"]
    assert not any(one["text"] == "aten::relu" for one in boxes(browser))
    browser.screenshot(os.path.join(shots, "flame-zoomed.png"))
    browser.run('[...document.querySelectorAll("button")].find((b) => b.textContent === "Show all").click()')
    near(box(browser, "[backward]")["width"], 3_000 / 6_100 * whole, 1.5)


def test_search_says_how_much_matched(browser, pages, shots):
    show(browser, pages, "flame")
    # Boxes below one that matches do not count again.
    assert search(browser, "train.py").startswith("95.08 % matched")
    assert search(browser, "ATEN::MM").startswith("16.39 % matched")
    drawn = boxes(browser)
    assert {one["text"] for one in drawn if one["match"]} == {"aten::mm"}
    assert all(one["match"] != one["other"] for one in drawn)
    browser.screenshot(os.path.join(shots, "flame-search.png"))
    assert search(browser, "is not there").startswith("0.00 % matched, in 0 boxes")
    assert search(browser, "") == ""
    assert not any(one["match"] or one["other"] for one in boxes(browser))
    # The search goes on with the next metric.
    search(browser, "aten::addmm")
    choose(browser, CUDA)
    matched = browser.run('document.querySelector(".matched").textContent')
    assert matched.startswith("76.92 % matched"), matched


def test_keys_reach_everything(browser, pages):
    show(browser, pages, "flame")
    browser.run('document.getElementById("search").focus()')
    press(browser, "Tab")
    assert current(browser) == "0"
    data = json.loads(browser.run('document.getElementById("data").textContent'))
    press(browser, "ArrowDown")
    first = int(current(browser))
    assert data["parents"][first] == 0
    press(browser, "ArrowRight")
    second = int(current(browser))
    assert second != first and data["parents"][second] == 0
    press(browser, "ArrowLeft")
    assert int(current(browser)) == first
    press(browser, "ArrowDown")
    deeper = int(current(browser))
    assert data["parents"][deeper] == first
    assert sum(one["reached"] for one in boxes(browser)) == 1
    press(browser, "Enter")
    zoomed = [one for one in boxes(browser) if one["node"] == deeper][0]
    near(zoomed["width"], zoomed["whole"], 1.5)
    # The focus stays where it was, on a box that was drawn anew.
    assert int(current(browser)) == deeper
    press(browser, "Escape")
    assert current(browser) == "0"
    press(browser, "ArrowUp")
    assert current(browser) == "0"


def test_readout_follows_focus(browser, pages):
    show(browser, pages, "flame")
    one = box(browser, "aten::linear")
    browser.run("""document.querySelector('.flame .box[data-node="%d"]').focus()""" % one["node"])
    text = browser.run('document.querySelector(".readout").textContent')
    assert text.startswith("aten::linear 400.0"), text
    assert "(6.56 % of all)" in text


def test_incomplete_and_lost_are_told(browser, pages):
    show(browser, pages, "flame")
    facts = browser.run('document.querySelector(".facts").textContent')
    assert "Stack truncated or incomplete8.20 %" in facts
    assert "No stack4.92 %" in facts
    losses = browser.run('document.querySelector("footer").textContent')
    assert "ring_full3" in losses and "Zero: depth, thread, " in losses


def test_what_comes_of_samples_is_called_an_estimate(browser, pages):
    show(browser, pages, "flame-samples")
    names = browser.run('[...document.querySelectorAll("#metric option")].map((o) => o.textContent)')
    assert {"CPU time, estimated", "Samples", "Waiting, estimated"} <= set(names), names
    assert "CPU time" not in names
    assert "an estimate" in browser.run('document.querySelector(".about").textContent')
    legend = browser.run('document.querySelector(".legend").textContent')
    assert "What was waited for" in legend and "CUDA call" not in legend


def test_hostile_names_are_only_text(browser, pages, shots):
    show(browser, pages, "flame-hostile")
    for metric in (CPU, CUDA, CALLS, PEAK):
        choose(browser, metric)
        assert boxes(browser)
    choose(browser, CPU)
    texts = {one["text"] for one in boxes(browser)}
    assert "</script><script>window.broken = 1</script>" in texts
    assert "(no name)" in texts
    assert browser.run("window.broken === undefined")
    assert browser.run("document.scripts.length") == 2
    assert browser.run('document.querySelectorAll("img, iframe, object").length') == 0
    browser.screenshot(os.path.join(shots, "flame-hostile.png"))
    assert_quiet(browser, pages, "flame-hostile")


def test_large_trees_are_pruned_and_say_so(browser, pages, shots):
    assert os.path.getsize(pages / "flame-large.html") < 8_000_000
    show(browser, pages, "flame-large")
    data = json.loads(browser.run('document.getElementById("data").textContent'))
    assert len(data["parents"]) <= 100_000
    assert data["left_out"] > 10_000
    # Nothing is lost in it.
    assert sum(data["own"][0]) == sum(range(1, 3001)) * 1000
    assert "joined as" in browser.run('document.querySelector(".limit").textContent')
    assert len(boxes(browser)) > 100
    browser.screenshot(os.path.join(shots, "flame-large.png"), whole=False)
    assert_quiet(browser, pages, "flame-large")


@pytest.mark.parametrize("size", [(360, 740), (2200, 1300)])
@pytest.mark.parametrize("name", ["flame", "flame-hostile"])
def test_fits_the_screen(browser, pages, shots, name, size):
    width, height = size
    show(browser, pages, name, width=width, height=height)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert box(browser, "all")["whole"] > width * 0.9
    browser.screenshot(os.path.join(shots, "%s-%d.png" % (name, width)))


def test_follows_the_window_size_and_the_dark(browser, pages, shots):
    show(browser, pages, "flame", dark=True)
    before = box(browser, "all")["width"]
    browser.screenshot(os.path.join(shots, "flame-dark.png"))
    assert brightness(browser, "backgroundColor") < 150 < 600 < brightness(browser, "color")
    browser.call("Emulation.setDeviceMetricsOverride", width=700, height=800, deviceScaleFactor=1,
                 mobile=False)
    browser.wait("(%s)[0].width < %f" % (BOXES, before - 300))
