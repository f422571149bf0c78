# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pages in which everything has a name that a hostile program would choose: all of them are text."""

import pytest

from pages import assert_quiet, show

# Elements of the page itself and of what it draws.
KNOWN = """
[...new Set([...document.querySelectorAll("*")].map((e) => e.localName))].filter((name) =>
    ["script", "img", "iframe", "object", "embed", "link", "base", "form", "meta", "style"]
        .includes(name)).sort().join()
"""
HANDLERS = """
[...document.querySelectorAll("*")].filter((e) =>
    [...e.attributes].some((a) => a.name.startsWith("on") ||
        /^\\s*javascript:/i.test(a.value))).length
"""
# What is shown, and titles and labels.
TEXTS = """
[document.getElementById("page").textContent, ...[...document.querySelectorAll("#page *")].flatMap(
    (e) => [...e.attributes].map((a) => a.value))].join(" ")
"""
ACTING = r"/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]/"


@pytest.mark.parametrize("name", ["nasty-memory", "nasty-flame"])
def test_nothing_but_text(browser, pages, name):
    show(browser, pages, name)
    assert "a?b" in browser.run(TEXTS)
    assert browser.run("window.broken === undefined")
    assert browser.run(KNOWN) == "link,meta,script,style"
    assert browser.run("document.scripts.length") == 2
    assert browser.run(HANDLERS) == 0
    assert browser.run("%s.test(%s)" % (ACTING, TEXTS)) is False
    assert_quiet(browser, pages, name)
