# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A headless Chromium, driven over the DevTools protocol on a pair of pipes.

Every wait has the same limit and waits for a state, never for a time. Whatever happens, close()
leaves no process of the browser behind.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

LIMIT_S = 120
PROGRAM = os.environ.get("CHROMIUM", "chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--disable-extensions", "--no-default-browser-check",
         "--hide-scrollbars", "--enable-unsafe-swiftshader",
         "--force-device-scale-factor=1", "--window-size=1280,800",
         "--allow-file-access-from-files", "--remote-debugging-pipe"]


class BrowserError(Exception):
    """The browser refused something, or the page threw."""


class Pipes:
    """Messages of JSON, each ended by a zero byte; the browser reads descriptor 3 and writes 4."""

    def __init__(self):
        self.their_in, self.our_out = os.pipe()
        self.our_in, self.their_out = os.pipe()
        self.waiting = b""

    def hand_over(self):
        """In the child: to where the browser looks. First out of each other's way."""
        reads = fcntl.fcntl(self.their_in, fcntl.F_DUPFD, 10)
        writes = fcntl.fcntl(self.their_out, fcntl.F_DUPFD, 10)
        os.dup2(reads, 3)
        os.dup2(writes, 4)
        os.close(reads)
        os.close(writes)

    def keep_ours(self):
        os.close(self.their_in)
        os.close(self.their_out)

    def send(self, message):
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.our_out, data):]

    def receive(self, until):
        while b"\0" not in self.waiting:
            ready, _, _ = select.select([self.our_in], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser did not answer within %d s" % LIMIT_S)
            data = os.read(self.our_in, 1 << 20)
            if not data:
                raise BrowserError("the browser is gone")
            self.waiting += data
        message, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(message)

    def close(self):
        os.close(self.our_in)
        os.close(self.our_out)


class Browser:
    """One browser process with one page at a time."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="gpuprof-browser-")
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.pipes = Pipes()
        self.number = 0
        self.process = None
        try:
            self.process = subprocess.Popen(
                [PROGRAM, *FLAGS, "--user-data-dir=" + os.path.join(self.folder, "profile"),
                 "about:blank"],
                stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False,
                start_new_session=True, preexec_fn=self.pipes.hand_over,
                env={**os.environ, "HOME": self.folder, "XDG_CONFIG_HOME": self.folder,
                     "XDG_CACHE_HOME": self.folder})
            self.pipes.keep_ours()
            self.events = []
            self.session = None
            self.call("Browser.getVersion")
        except BaseException:
            self.close()
            raise

    def call(self, method, **params):
        """One command; what happens meanwhile is kept in self.events."""
        until = time.monotonic() + LIMIT_S
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.pipes.send(message)
        while True:
            answer = self.pipes.receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError("%s: %s" % (method, answer["error"].get("message")))
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def wait_loaded(self, loader):
        """Until the document of this navigation, and no earlier one, has loaded."""
        until = time.monotonic() + LIMIT_S
        while not any(event["name"] == "load" and event["loaderId"] == loader
                      for event in self.seen("Page.lifecycleEvent")):
            answer = self.pipes.receive(until)
            if "method" in answer:
                self.events.append(answer)

    def seen(self, name):
        return [event["params"] for event in self.events if event["method"] == name]

    def open(self, url, width=1280, height=800, dark=False):
        """A fresh page, loaded; what the one before it said is forgotten."""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for info in self.call("Target.getTargets")["targetInfos"]:
            if info["type"] == "page" and info["targetId"] != target:
                self.call("Target.closeTarget", targetId=info["targetId"])
        self.events = []
        self.session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.call("Page.bringToFront")
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError("%s: %s" % (url, answer["errorText"]))
        self.wait_loaded(answer["loaderId"])

    def run(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait(self, expression):
        """Until the expression is true; returns its value."""
        until = time.monotonic() + LIMIT_S
        while True:
            value = self.run(expression)
            if value:
                return value
            if time.monotonic() > until:
                raise TimeoutError("never true: " + expression)
            self.run("new Promise((done) => setTimeout(done, 50))")

    def mouse(self, what, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=what, x=x, y=y, **more)

    def drag(self, from_x, to_x, y):
        self.mouse("mouseMoved", from_x, y)
        self.mouse("mousePressed", from_x, y, button="left", buttons=1, clickCount=1)
        for share in (0.25, 0.5, 0.75, 1):
            self.mouse("mouseMoved", from_x + (to_x - from_x) * share, y, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, y, button="left", buttons=0, clickCount=1)

    def double_click(self, x, y):
        for count in (1, 2):
            self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=count)
            self.mouse("mouseReleased", x, y, button="left", buttons=0, clickCount=count)

    def complaints(self):
        """Everything the page or the browser reported as wrong, as text."""
        bad = [json.dumps(event) for event in self.seen("Runtime.exceptionThrown")]
        bad += [json.dumps(event) for event in self.seen("Runtime.consoleAPICalled")
                if event["type"] in ("error", "warning", "assert")]
        bad += [json.dumps(event) for event in self.seen("Log.entryAdded")
                if event["entry"]["level"] in ("error", "warning")]
        bad += [json.dumps(event) for event in self.seen("Page.javascriptDialogOpening")]
        return bad

    def requests(self):
        return [event["request"]["url"] for event in self.seen("Network.requestWillBeSent")]

    def screenshot(self, path, whole=True):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as out:
            out.write(base64.b64decode(data["data"]))

    def strays(self):
        """Processes that carry this browser's own folder in their command line."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    if self.folder.encode() in f.read():
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def kill(self):
        """Until none of its processes is left, for they may start further ones while they die."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(LIMIT_S)
        until = time.monotonic() + LIMIT_S
        left = self.strays()
        while left and time.monotonic() < until:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)
            left = self.strays()

    def close(self):
        if self.process:
            self.kill()
        self.pipes.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
