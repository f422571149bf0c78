# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures: one browser for all tests, and the pages that make_page writes."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from browser import LIMIT_S, Browser  # noqa: E402

BUILD = os.environ.get("GPUPROF_BUILD", os.path.join(HERE, "..", "..", "build"))


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Folder with NAME.html and NAME.json for each example of make_page.c."""
    folder = tmp_path_factory.mktemp("pages")
    subprocess.run([os.path.join(BUILD, "tests", "make_page"), str(folder)], check=True,
                   timeout=LIMIT_S)
    return folder


@pytest.fixture(scope="session")
def shared_browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(shared_browser):
    yield shared_browser


@pytest.fixture
def shots():
    """Where screenshots go, to be looked at."""
    return os.path.join(BUILD, "page-shots")
