"""Headless Chromium, driven over a pipe by its DevTools protocol: no package is needed for that.

The protocol: https://chromedevtools.github.io/devtools-protocol/. Messages are JSON, each ends with a
zero byte; Chromium reads them from file descriptor 3 and writes them to 4."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class NoChromium(Exception):
    pass


class PageError(Exception):
    pass


def find():
    """The browser's program. Raises NoChromium, which says how to fix that."""
    for name in (os.environ.get("CHROMIUM"), *NAMES):
        if name and shutil.which(name):
            return shutil.which(name)
    raise NoChromium("there is no Chromium. Fix: sudo apt-get install chromium, or CHROMIUM=<program>")


class Chromium:
    """One page of one browser. As a context manager, so that it ends whatever happens."""

    def __init__(self, width=1280, height=720, dark=False):
        self.width, self.height, self.dark = width, height, dark
        self.next_id, self.buffer, self.events = 0, b"", []

    def __enter__(self):
        program = find()
        self.profile = tempfile.mkdtemp(prefix="worldsize-chromium-")
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()

        def wire():
            # In the child: 3 is what it reads, 4 what it writes. Its own group, so that all of it ends.
            os.setsid()
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3), os.dup2(writing, 4)
            os.set_inheritable(3, True), os.set_inheritable(4, True)

        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run",
                 "--disable-gpu", "--hide-scrollbars", "--disable-background-networking", "--disable-sync",
                 "--disable-component-update", "--disable-extensions", "--mute-audio", "--disable-dev-shm-usage",
                 "--force-color-profile=srgb", "--allow-file-access-from-files"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium's own box refuses to run as root
        self.process = subprocess.Popen([program, *flags, "about:blank"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=wire,
                                        close_fds=False, env=dict(os.environ, TMPDIR=self.profile))
        os.close(to_browser), os.close(from_browser)
        self.write_end, self.read_end = from_us, to_us
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(self.width, self.height)
        scheme = "dark" if self.dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.write_end), os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def call(self, method, timeout=60, **parameters):
        """Sends a command and returns its result; events that come meanwhile are kept."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            answer = self.read(end)
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def read(self, end):
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise PageError("Chromium does not answer")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise PageError("Chromium has ended")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, address):
        """Goes to an address and waits until the page, reveal.js and its fonts are ready."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && (!window.Reveal || Reveal.isReady())")
        self.run("document.fonts.ready.then(() => true)")

    def show(self, html):
        """Shows this HTML instead of the page."""
        frame = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self.call("Page.setDocumentContent", frameId=frame, html=html)

    def turn_to(self, slide):
        """Shows a slide of a deck, with all its fragments, and waits until it is drawn."""
        self.run(f"Reveal.slide({slide}, 0, 1000)")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def picture(self, width=None, height=None):
        """The page as the bytes of a PNG; width and height: the upper left part of it, however small the window."""
        part = {} if width is None else {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
                                         "captureBeyondViewport": True}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **part)["data"])

    def wait(self, condition, timeout=30):
        end = time.monotonic() + timeout
        while not self.run(condition):
            if time.monotonic() > end:
                raise PageError(f"never: {condition}")
            time.sleep(0.02)

    def run(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def press(self, key, code=0, text=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
