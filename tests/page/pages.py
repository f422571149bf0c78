# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of all pages have alike."""

READY = 'document.getElementById("page").dataset.state === "ready"'


def show(browser, pages, name, **options):
    browser.open("file://%s/%s.html" % (pages, name), **options)
    browser.wait(READY)


def near(value, wanted, slack):
    assert abs(value - wanted) <= slack, "%r is not within %r of %r" % (value, slack, wanted)


def assert_quiet(browser, pages, name):
    assert browser.complaints() == []
    assert browser.requests()[0] == "file://%s/%s.html" % (pages, name)
    assert [url for url in browser.requests()[1:] if not url.startswith("data:")] == []


def brightness(browser, what):
    colour = browser.run("getComputedStyle(document.body).%s" % what)
    return sum(int(part) for part in colour.strip("rgb()").split(",")[:3])
