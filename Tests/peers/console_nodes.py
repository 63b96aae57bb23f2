#!/usr/bin/python3
"""An operator at the console of one of two nodes: both are seen, one is drained, goes on, stands
still, is silent and then taken for gone, comes back to its order, and ends.

usage: console_nodes.py --console PORT --admin-token T --reader-token T --second PID --apis P,P
    --port PORT --second-ca FILE --app APP --database ADDRESS --schema NAME [--pictures DIR]
    [--axe FILE]

--port and --second-ca are for devices of the second node.
"""
import argparse
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from browser import Browser, Failure
from client import Client
from console import DESK, PHONE, Visit


class Nodes(Visit):
    def __init__(self, browser, given):
        super().__init__(browser, given, {"nodes": "nodes", "audit": "audit"})

    def phase(self, name, phase, seconds=60):
        """Waits until the page says so by itself."""
        self.browser.seconds, before = seconds, self.browser.seconds
        self.browser.wait(f"""[...document.querySelectorAll("tbody tr")].some((row) =>
          row.querySelector("th").innerText.startsWith({name!r}) &&
          row.querySelector(".badge").innerText === {phase!r})""", f"{name}: {phase}")
        self.browser.seconds = before

    def ready(self, port, status):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                found = urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz").status
            except urllib.error.HTTPError as error:
                found = error.code
            if found == status:
                return
            time.sleep(0.2)
        raise Failure(f"/readyz of port {port} is not {status}")

    def answered(self, name, phase, seconds=60):
        """Waits until the server says so, sooner than the page asks for it."""
        asked = f"""fetch("/console/api/nodes").then((answer) => answer.json()).then(({{ nodes }}) =>
          nodes.some((one) => one.name === {name!r} && one.phase === {phase!r}))"""
        end = time.monotonic() + seconds
        while not self.browser.evaluate(asked):
            if time.monotonic() > end:
                raise Failure(f"{name} is not {phase}")
            time.sleep(0.05)

    def look_everywhere(self, what):
        for where, size in (("desk", DESK), ("phone", PHONE)):
            self.browser.size(*size, is_phone=where == "phone")
            self.look("nodes", where, size)
            self.picture(f"nodes-{what}-{where}")
        self.browser.size(*DESK)


class Held:
    """Holds the row of a node, as another node does that looks at it."""

    def __init__(self, database, schema, name):
        self.words = ["psql", database, "-qAt", "-v", "ON_ERROR_STOP=1"]
        self.row = f"SELECT 'held' FROM {schema}.node WHERE name = '{name}' FOR UPDATE;"

    def __enter__(self):
        self.process = subprocess.Popen(
            self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f"BEGIN;\n{self.row}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line.strip() != "held":
            raise Failure(f"the row is not held: {line}")

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def main():
    # `--api`, which every peer is given, is no short form of `--apis`.
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("console", "admin-token", "reader-token", "second", "apis", "second-ca", "app",
                 "database", "schema"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pictures")
    parser.add_argument("--axe")
    given, _ = parser.parse_known_args()
    second, apis = int(given.second), [int(port) for port in given.apis.split(",")]
    browser = Browser()
    try:
        visit = Nodes(browser, given)
        browser.size(*DESK)
        browser.go(visit.origin + "/console/")
        visit.login(given.reader_token)
        browser.wait("document.querySelector('nav [aria-current=page]')", "a page")
        visit.show("nodes")
        visit.phase("one (this one)", "serving")
        visit.phase("two", "serving")
        shown = browser.evaluate("document.querySelector('main').innerText")
        visit.expect("Drain" not in shown and "Rebalance" not in shown, "a reader may order")
        visit.logout()
        visit.login(given.admin_token)
        browser.wait("document.querySelector('nav [aria-current=page]')", "a page")
        visit.look_everywhere("serving")

        visit.show("nodes")
        browser.wait("""document.querySelector('[aria-label="Drain two"]')""", "the button")
        browser.evaluate("""document.querySelector('[aria-label="Drain two"]').focus()""")
        browser.key("Enter", 13, "\r")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        visit.expect(browser.evaluate("document.activeElement.innerText") == "Keep it as it is",
                     "the harmless answer has no focus")
        visit.click("Drain it", "document.querySelector('dialog')")
        visit.says("two is told to drain.")
        visit.phase("two", "draining")
        visit.says("to drain since")
        visit.says("(anna)")
        visit.ready(apis[1], 503)
        visit.look_everywhere("draining")

        # The page follows by itself: nobody has to ask for it.
        os.kill(second, signal.SIGSTOP)
        try:
            # Nobody takes it for gone as long as somebody else is at its row.
            with Held(given.database, given.schema, "two"):
                visit.phase("two", "silent")
                visit.look_everywhere("silent")
            visit.phase("two", "gone")
            visit.look_everywhere("gone")
        finally:
            os.kill(second, signal.SIGCONT)
        visit.phase("two", "draining")
        browser.evaluate("""document.querySelector('[aria-label="Resume two"]').focus()""")
        browser.key("Enter", 13, "\r")
        visit.says("two is told to take devices again.")
        visit.phase("two", "serving")
        visit.ready(apis[1], 200)
        visit.click("Rebalance")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        visit.click("Rebalance them", "document.querySelector('dialog')")
        visit.says("told to send their surplus away")

        # It says that it ends, and stands still before it has: the page has the time to show it.
        # A node without devices ends in some 20 ms, in which nobody could be sure to see it.
        device = Client(given.port, given.second_ca, given.app)
        device.connect()
        os.kill(second, signal.SIGTERM)
        visit.answered("two", "ending")
        os.kill(second, signal.SIGSTOP)
        try:
            visit.phase("two", "ending")
            visit.look_everywhere("ending")
        finally:
            os.kill(second, signal.SIGCONT)
        browser.wait("![...document.querySelectorAll('tbody th')].some((one) => one.innerText === 'two')",
                     "the end of two")
        visit.sound("the nodes")
    except Failure as failure:
        print(f"FAILED: {failure}; complaints: {browser.complaints}")
        sys.exit(1)
    finally:
        browser.close()
    print(f"the console of nodes: ok; axe-core looked at {visit.looked} pages")


if __name__ == "__main__":
    main()
