# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The files open without complaint where people open them: the trace in speedscope, the memory page in
a browser, both in headless Chromium. GPUPROF_SHOTS names a folder that keeps the screenshots.
"""

import base64
import os
import subprocess

import pytest

from browser import Browser
from harness import DONE, ROOT, TESTS, gpuprof

VIEWER = os.path.join(ROOT, "build", "viewer")
SPEEDSCOPE = os.path.join(VIEWER, "node_modules/speedscope/dist/release/index.html")


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.fixture(scope="module")
def speedscope():
    subprocess.run(["sh", os.path.join(ROOT, "userspace/output/page/build.sh"), VIEWER,
                    os.path.join(TESTS, "integration", "viewer")], check=True)
    return SPEEDSCOPE


@pytest.fixture
def shot(tmp_path, request):
    folder = os.environ.get("GPUPROF_SHOTS", str(tmp_path))
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, request.node.name.replace("/", "-") + ".png")


def show(browser, page, data, script):
    """Opens the trace in speedscope; script is where it reads it from."""
    with open(script, "w", encoding="utf-8") as file:
        file.write('speedscope.loadFileFromBase64("trace.json", "%s")' %
                   base64.b64encode(data).decode())
    browser.open("about:blank")
    browser.complaints()
    browser.open("file://%s#localProfilePath=%s" % (page, script))
    browser.wait("a profile or an error", "return document.title.startsWith('trace.json') || "
                 "document.body.innerText.includes('Something went wrong')")
    return browser.script("return document.body.innerText")


@pytest.mark.parametrize("name", ["resnet18_train", "raiser"])
def test_trace_in_speedscope(sample, browser, speedscope, tmp_path, shot, name):
    one = sample(name)
    text = show(browser, speedscope, one.recording.chrome_text().encode(), tmp_path / "p.js")
    browser.screenshot(shot)
    assert "Something went wrong" not in text and browser.complaints() == []
    assert str(one.pid) in text


def test_a_bad_trace_is_noticed(browser, speedscope, tmp_path):
    """So the test above can fail."""
    bad = b'{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1}]}'
    text = show(browser, speedscope, bad, tmp_path / "p.js")
    assert "Something went wrong" in text or browser.complaints()


def test_memory_page(sample, browser, tmp_path, shot):
    page = tmp_path / "memory.html"
    done = gpuprof("export", sample("lstm").recording.path, "--format", "memory", "-o", page)
    assert done.status == DONE, done
    browser.open("about:blank")
    browser.complaints()
    browser.open("file://%s" % page)
    browser.wait("a chart", "return document.querySelectorAll('canvas, svg').length > 0")
    text = browser.script("return document.body.innerText")
    browser.screenshot(shot)
    assert browser.complaints() == []
    assert "peak" in text.lower() and "aten::" in text
