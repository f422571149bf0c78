# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Headless Chromium, driven through chromedriver's own protocol (WebDriver): opens pages, runs scripts
in them, takes screenshots. Nothing is fetched: pages are files of this machine.
"""

import base64
import http.client
import json
import shutil
import time

from harness import LIMIT, Child, HarnessError

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,900",
           "--allow-file-access-from-files", "--use-gl=angle", "--use-angle=swiftshader",
           "--enable-unsafe-swiftshader", "--disable-background-networking"]


class Browser:
    """One browser with one window; close() ends it."""

    def __init__(self):
        driver = shutil.which("chromedriver")
        assert driver, "chromedriver is missing; tests/setup.sh check installs it"
        self._driver = Child([driver, "--port=0"], "chromedriver")
        line, _ = self._driver.wait_line("stdout", lambda text: "started successfully on port" in
                                         text)
        self._port = int(line.rstrip(".").rsplit(" ", 1)[1])
        self._session = ""
        wanted = {"alwaysMatch": {"goog:chromeOptions": {"args": OPTIONS},
                                  "goog:loggingPrefs": {"browser": "ALL"}}}
        made = self._call("POST", "/session", {"capabilities": wanted})
        self._session = "/session/" + made["sessionId"]

    def _call(self, method, path, body=None):
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LIMIT)
        try:
            link.request(method, path, None if body is None else json.dumps(body))
            value = json.loads(link.getresponse().read())["value"]
        finally:
            link.close()
        if isinstance(value, dict) and "error" in value:
            raise HarnessError("browser: %s" % value.get("message", value["error"]))
        return value

    def open(self, url):
        self._call("POST", self._session + "/url", {"url": url})

    def script(self, text, *args):
        """What the script returns in the page."""
        return self._call("POST", self._session + "/execute/sync",
                          {"script": text, "args": list(args)})

    def wait(self, what, text):
        """The script's first true answer."""
        deadline = time.monotonic() + LIMIT
        while True:
            found = self.script(text)
            if found:
                return found
            if time.monotonic() > deadline:
                raise HarnessError("the page never showed %s; it shows: %s; its log: %s" % (
                    what, self.script("return document.body.innerText")[:2000], self.complaints()))
            time.sleep(0.1)

    def complaints(self):
        """What the page logged since the last call that is no plain information."""
        entries = self._call("POST", self._session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries
                if entry["level"] == "SEVERE" or "Failed" in entry["message"]]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("GET", self._session + "/screenshot")))

    def close(self):
        try:
            if self._session:
                self._call("DELETE", self._session)
        finally:
            self._driver.kill()
