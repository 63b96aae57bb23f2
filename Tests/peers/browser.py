"""A headless Chromium, driven over a pipe by the DevTools protocol: no package but the browser.

Used by console.py. Each message is JSON with a zero byte behind it (--remote-debugging-pipe).
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


class Failure(Exception):
    """What was waited for did not come."""


class Browser:
    def __init__(self, seconds=60):
        self.seconds = seconds
        self.folder = tempfile.mkdtemp(prefix="rouse-browser-")
        to_browser, self.writing = os.pipe()
        self.reading, from_browser = os.pipe()

        # The browser reads from descriptor 3 and writes to 4.
        def place():
            high = [os.dup2(to_browser, 103), os.dup2(from_browser, 104)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [
                BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
                "--disable-component-update", "--disable-default-apps", "--hide-scrollbars",
                "--force-color-profile=srgb", "--lang=en-US", f"--user-data-dir={self.folder}",
                "--remote-debugging-pipe", "about:blank",
            ],
            close_fds=False, preexec_fn=place, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.rest = b""
        self.number = 0
        self.events = []
        # Errors and warnings of pages: a test looks at them.
        self.complaints = []
        target = self.ask("Target.createTarget", url="about:blank", session=None)["targetId"]
        self.session = self.ask(
            "Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, session=True, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session is True:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            for answer in self.receive(end):
                if answer.get("id") == number:
                    if "error" in answer:
                        raise Failure(f"{method}: {answer['error']['message']}")
                    return answer["result"]
        raise Failure(f"{method}: no answer in {self.seconds} s")

    def receive(self, end):
        """Messages that are there, at least one unless the time is over."""
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.reading], [], [], left)[0]:
                return []
            part = os.read(self.reading, 1 << 20)
            if not part:
                raise Failure("the browser ended")
            self.rest += part
        *whole, self.rest = self.rest.split(b"\0")
        messages = [json.loads(one) for one in whole]
        for message in messages:
            self.note(message)
        return messages

    def note(self, message):
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.complaints.append(
                details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.complaints.append(
                " ".join(str(one.get("value", one.get("description"))) for one in given["args"]))
        elif method == "Network.requestWillBeSent":
            self.events.append(given["request"]["url"])

    def evaluate(self, script):
        answer = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failure(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait(self, script, what=None):
        """Until what the script gives counts as true there: an element is one."""
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            try:
                value = self.evaluate(f"Boolean({script})")
            except Failure as failure:
                # The page is being replaced.
                if "context" not in str(failure):
                    raise
                value = None
            if value:
                return value
            self.receive(time.monotonic() + 0.05)
        text = self.evaluate("(document.querySelector('main') ?? document.body).innerText")
        raise Failure(f"{what or script} did not come; the page says: {text[-700:]}")

    def go(self, address):
        self.ask("Page.navigate", url=address)

    def size(self, width, height, is_phone=False):
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=is_phone)

    def media(self, **features):
        """For example prefers_color_scheme="dark"."""
        self.ask(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": name.replace("_", "-"), "value": value}
                for name, value in features.items()
            ])

    def picture(self, path, whole=False):
        given = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            given["clip"] = {
                "x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000),
                "scale": 1,
            }
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", **given)["data"]))

    def key(self, name, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name,
                windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def accessibility(self):
        """The tree that a screen reader is given: role and name of each node that has both."""
        self.ask("Accessibility.enable")
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        found = []
        for node in nodes:
            if node.get("ignored"):
                continue
            found.append(
                (node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")))
        return found

    def close(self):
        try:
            self.ask("Browser.close", session=None)
        except (Failure, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.writing)
        os.close(self.reading)
        shutil.rmtree(self.folder, ignore_errors=True)
