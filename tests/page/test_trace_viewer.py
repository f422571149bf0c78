# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Chrome trace in speedscope, a viewer that is not ours: it loads, and shows what is in it."""

import collections
import json
import os

import pytest

VIEWERS = os.environ.get("GPUPROF_VIEWERS", "build/page-tests")
SPEEDSCOPE = os.path.join(VIEWERS, "node_modules", "speedscope", "dist", "release", "index.html")

PRESS = """(() => {
	const tab = [...document.querySelectorAll("div")].find((d) => d.textContent.endsWith("%s")
		&& d.children.length <= 1);
	tab.click();
	return true;
})()"""
# Every row of the viewer's tables, as texts: [number, thread, time] of the list of threads, and in
# the sandwich view [total (share), self (share), name].
ROWS = """[...document.querySelectorAll("tr")].filter((row) => row.querySelector("td"))
	.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent))"""


def complaints(browser):
    """Without the driver's remarks on drawing with the CPU, which are about this machine."""
    return [text for text in browser.complaints()
            if json.loads(text).get("entry", {}).get("source") != "rendering"]


def load(browser, path):
    browser.open("file://" + os.path.abspath(SPEEDSCOPE))
    assert complaints(browser) == []
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    chooser = browser.call("DOM.querySelector", nodeId=root, selector="input[type=file]")["nodeId"]
    browser.call("DOM.setFileInputFiles", nodeId=chooser, files=[str(path)])
    browser.wait('document.body.innerText.includes("Time Order")')


def microseconds(text):
    """"4.00ms (19.05%)" and the like."""
    number = text.split("(")[0].strip()
    for unit, factor in (("µs", 1), ("ms", 1e3), ("ns", 1e-3), ("s", 1e6)):
        if number.endswith(unit):
            return float(number[:-len(unit)]) * factor
    raise ValueError("no time: %r" % text)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_speedscope_opens_the_trace(browser, pages, shots, name):
    load(browser, pages / name)
    assert browser.run("document.title").startswith("trace.json")
    assert "4242" in browser.run("document.body.innerText")
    # The flame chart is on its canvas: as many colours as a chart of several ops has.
    browser.wait('document.querySelectorAll("canvas").length > 0')
    browser.screenshot(os.path.join(shots, "speedscope-%s.png" % name), whole=False)
    assert complaints(browser) == []


def test_speedscope_adds_up_to_the_trace(browser, pages, shots):
    with open(pages / "trace.json", encoding="utf-8") as f:
        slices = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
    load(browser, pages / "trace.json")
    # A row for each thread, with the time under its outermost slices.
    threads = {row[1]: microseconds(row[2]) for row in browser.run(ROWS)}
    assert len(threads) == len({e["tid"] for e in slices}) == 2
    browser.run(PRESS % "Sandwich")
    browser.wait('(%s).some((row) => row[0].includes("%%"))' % ROWS)
    browser.screenshot(os.path.join(shots, "speedscope-sandwich.png"), whole=False)
    head = browser.run("document.body.innerText")
    tid = next(e["tid"] for e in slices if "(tid %d)" % e["tid"] in head)
    wanted, shown = collections.Counter(), collections.Counter()
    for event in slices:
        if event["tid"] == tid:
            wanted[event["name"]] += event["dur"]
    for total, _, name in (row for row in browser.run(ROWS) if "%" in row[0]):
        # The viewer adds an event's arguments to its name.
        shown[name.split(' {"External id"')[0]] += microseconds(total)
    assert set(shown) == set(wanted)
    for name, total in wanted.items():
        assert abs(shown[name] - total) <= 0.01 * total, name
    assert complaints(browser) == []
