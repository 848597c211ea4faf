"""A Chromium without a window, told what to do over a pair of pipes by the DevTools protocol."""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Failure(Exception):
    """Something that the caller can be told in one line."""


def find():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. What it complains of is collected in `complaints`."""

    def __init__(self, program, timeout=30):
        self.timeout = timeout
        self.complaints = []
        self.number = 0
        self.rest = b""
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours_out, theirs_in = os.pipe()
        theirs_out, ours_in = os.pipe()
        self.ours_out, self.ours_in = ours_out, ours_in
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
        command = [program, *flags, "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"]
        # The browser reads its file 3 and writes its file 4. Both come from numbers out of their way.
        reads, writes = (fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_out, theirs_in))
        os.close(theirs_out)
        os.close(theirs_in)

        def take_pipes():
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, preexec_fn=take_pipes, pass_fds=(3, 4), **quiet)
        os.close(reads)
        os.close(writes)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.ours_in)
        os.close(self.ours_out)
        self.profile.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.ours_in, json.dumps(message).encode() + b"\0")
        return self.until(lambda m: m.get("id") == self.number, method)

    def until(self, wanted, what):
        """Messages up to the wanted one; complaints on the way are kept."""
        end = time.monotonic() + self.timeout
        while True:
            message = self.next(end, what)
            self.note(message)
            if wanted(message):
                if "error" in message:
                    raise Failure(f"{what}: {message['error'].get('message')}")
                return message.get("result", message.get("params", {}))

    def next(self, end, what):
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.ours_out], [], [], left)[0]:
                raise Failure(f"{what}: the browser does not answer")
            piece = os.read(self.ours_out, 1 << 16)
            if not piece:
                raise Failure(f"{what}: the browser has ended")
            self.rest += piece
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def note(self, message):
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details.get("text")))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent" and about["request"]["url"].split(":")[0] not in ("file", "data", "about"):
            self.complaints.append(f"the page asks the network for {about['request']['url']}")

    def open(self, path, width=1200, dark=False):
        """Loads a file into a page so wide."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.until(lambda m: m.get("method") == "Page.loadEventFired", "loading the page")

    def ask(self, expression):
        """The value of an expression of the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failure(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def picture(self, path, top=0, height=2000):
        """What is to be seen from `top` on, as a PNG."""
        width = self.ask("document.documentElement.clientWidth")
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))
