#!/usr/bin/python3
"""What goes wrong while an operator is at the console, in a headless Chromium: answers that come
when another page is open, a server that is silent, another login in the same browser, names that
are long or look like a way upwards, requests sent twice, a clock that is set. Each is looked at
where the operator sees it.

usage: console_mishaps.py --console PORT --admin-token T --reader-token T --push-key FILE
    --server PID --port P --ca FILE --key FILE --kid KID --api PORT --api-key KEY --app APP
    [--only NAME] [--pictures DIR]
"""
import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import time

from browser import Browser, Failure
from console import CONTRAST, DESK, PHONE, STRUCTURE, WIDE, Visit

# Answers to requests whose address has such a piece are kept back until they are let go.
HOLD = """(() => {
  const real = window.realFetch ??= window.fetch;
  window.held = [];
  window.fetch = async (address, options) => {
    if (options?.method !== %r || !address.includes(%r)) return real(address, options);
    // The answer is there, and has only not reached the page.
    const answer = await real(address, { ...options, signal: undefined });
    await new Promise((go) => held.push(go));
    return answer;
  };
})()"""
PASS = "window.fetch = window.realFetch; true"
LET_GO = "held.splice(0, 1).forEach((go) => go()); true"
HAPPENED = "new Promise((then) => setTimeout(() => then(true), 300))"

# The overview's stream, of samples that the test makes.
STREAM = """(() => {
  window.realSource ??= window.EventSource;
  const samples = %s;
  window.EventSource = class {
    static CLOSED = 2;
    constructor() {
      this.on = {};
      setTimeout(() => this.on.history({ data: JSON.stringify(samples) }));
    }
    addEventListener(name, then) { this.on[name] = then; }
    close() {}
  };
})()"""
# Where the dots of the graph with this title stand, and the times below it.
DRAWN = """(() => {
  const graph = [...document.querySelectorAll("figure")].find(
    (one) => one.querySelector("h2").innerText === %r);
  const dots = graph?.querySelector("polyline")?.getAttribute("points") ?? "";
  return {
    dots: dots.split(" ").filter((dot) => dot).map((dot) => dot.split(",").map(Number)),
    times: [...graph?.querySelectorAll("text") ?? []].slice(-2).map((one) => one.textContent),
  };
})()"""

# Boxes with more in them than they show, and tables that have to be pushed aside.
CUT = """[...document.querySelectorAll(
  "main h1, h2, h3, th, td, p, dd, a, button, .scroll, .sheet, .head > *, dialog")]
  .filter((one) => one.checkVisibility() && !one.closest(".unseen") && one.clientWidth &&
    getComputedStyle(one.closest("thead") ?? one).clipPath === "none" &&
    one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 30)}`).slice(0, 5)"""


class Mishaps(Visit):
    def __init__(self, browser, given):
        super().__init__(browser, given, {})
        self.app = given.app

    def go_to(self, path, heading):
        self.browser.evaluate(f"location.hash = '#/{path}'")
        self.browser.wait(f"document.querySelector('main h1')?.innerText === {heading!r}", heading)

    def hold(self, method, piece):
        self.browser.evaluate(HOLD % (method, piece))

    def held(self, count=1):
        self.browser.wait(f"held.length >= {count}", "what is held")

    def let_go(self):
        """Lets the oldest answer go, and gives the page the time to draw it."""
        self.browser.evaluate(LET_GO)
        self.browser.evaluate(HAPPENED)

    def main(self):
        return self.browser.evaluate("document.querySelector('main').innerText")

    def enter(self, token):
        self.browser.go(self.origin + "/console/")
        self.browser.wait("document.activeElement?.id === 'token'", "the login")
        self.login(token)
        self.browser.wait("document.querySelector('.who')", "a page")

    def backend(self, method, path, body, key=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.given.api)
        connection.request(method, path, json.dumps(body), {
            "content-type": "application/json",
            "authorization": f"Bearer {key or self.given.api_key}", **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status >= 300:
            raise Failure(f"{method} {path}: {answer.status} {text}")
        return json.loads(text) if text else None

    # What is tried

    def late(self):
        """What a page has asked for is nothing to the page that is open when it comes."""
        browser = self.browser
        self.backend("POST", "/v1/conversations", {"participants": ["anna", "ben"]})
        # A change whose answer comes on another page is told there by no word and no jump.
        self.go_to(f"users/{self.app}/user/anna", "anna")
        self.hold("POST", "/sessions/revoke")
        self.click("Log out everywhere")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Log out everywhere", "document.querySelector('dialog')")
        self.held()
        self.go_to(f"users/{self.app}/user/ben", "ben")
        self.let_go()
        self.expect("Every device is logged out" not in self.main(),
                    "what was done to anna is told on ben's page")
        self.go_to("apps", "Apps")
        self.hold("POST", "/console/api/apps")
        self.fill("app", "late")
        self.click("Make the app")
        self.held()
        self.go_to("audit", "Audit")
        self.let_go()
        self.expect(browser.evaluate("location.hash") == "#/audit",
                    "a late answer took the operator away")
        # A question that was left open is no question of the next page.
        browser.evaluate(PASS)
        self.go_to(f"users/{self.app}/user/anna", "anna")
        self.click("Suspend")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.go_to("audit", "Audit")
        self.expect(not browser.evaluate("document.querySelector('dialog')"),
                    "the question about anna stands on another page")

    def overtaken(self):
        """Of two looks at the same page the older one, come last, is not drawn over the newer."""
        browser = self.browser
        self.backend("POST", "/v1/conversations", {"participants": ["cleo", "ben"]})
        self.go_to(f"users/{self.app}/user/cleo", "cleo")
        state = "document.querySelector('.head .badge').innerText"
        self.hold("GET", "/users/cleo")
        # Both halves of the page that is drawn after it.
        self.click("Log out everywhere")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Log out everywhere", "document.querySelector('dialog')")
        self.held(2)
        browser.evaluate("window.older = held.splice(0); true")
        browser.evaluate(PASS)
        self.click("Suspend")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Suspend the user", "document.querySelector('dialog')")
        browser.wait(f"{state} === 'suspended'", "suspended")
        browser.evaluate("older.forEach((go) => go()); true")
        browser.evaluate(HAPPENED)
        self.expect(browser.evaluate(state) == "suspended", "an older answer was drawn over it")

    def replaced(self):
        """A push key that somebody has added meanwhile is not replaced unasked."""
        browser, app = self.browser, self.app
        with open(self.given.push_key, encoding="utf-8") as file:
            key = file.read()
        self.go_to("push", "Push credentials")
        # Another operator, who has sent a key before this one comes to the end of the form.
        self.console("PUT", ["apps", app, "push", "production", "default"], {
            "key_id": "FIRST12345", "team": "TEAM123456", "topics": ["org.example.chat"],
            "private_key_pem": key, "host": "localhost", "port": 1})
        self.refused.append(
            f"409 (Conflict) {self.origin}/console/api/apps/{app}/push/production/default?new=true")
        self.click("Add a push credential")
        for name, value in (("app", app), ("key_id", "OTHER12345"), ("team", "TEAM123456"),
                            ("topics", "org.example.chat"), ("private_key_pem", key)):
            self.fill(name, value)
        self.click("Another address than Apple\u2019s")
        self.fill("host", "localhost")
        self.fill("port", "1")

        def kept():
            return browser.evaluate(
                f"fetch('/console/api/apps/{app}').then((one) => one.json())"
                ".then((one) => one.push.map((it) => it.key_id).join())")

        self.click("Add the credential")
        browser.wait("document.querySelector('dialog[open]')?.innerText.includes('already')",
                     "the question whether to replace it")
        self.expect(kept() == "FIRST12345", f"it was replaced unasked: {kept()}")
        self.click("Keep it as it is", "document.querySelector('dialog')")
        self.says("Nothing was changed")
        self.says("Give another name")
        self.expect(kept() == "FIRST12345", f"it was replaced all the same: {kept()}")
        self.click("Add the credential")
        browser.wait("document.querySelector('dialog[open]')", "the question again")
        self.click("Replace it", "document.querySelector('dialog')")
        self.says(f"Replaced: {app}, production, default")
        self.expect(kept() == "OTHER12345", f"it was not replaced: {kept()}")
        self.sound("replaced")

    def keys(self):
        """While an API key is on its way no press makes another, and each secret stays in sight."""
        browser, app = self.browser, "keyed"
        self.console("POST", ["apps"], {"app": app})
        secrets = "[...document.querySelectorAll('.secret')].map((one) => one.innerText)"
        button = ("[...document.querySelectorAll('button')]"
                  ".find((one) => one.innerText === 'Make an API key')")
        self.go_to(f"apps/{app}", app)
        ids = ("[...document.querySelectorAll('[aria-label^=\"Revoke API key\"]')]"
               ".map((one) => one.ariaLabel.slice(15))")
        self.hold("POST", "/api-keys")
        browser.evaluate(f"{button}.click(); {button}.click(); true")
        self.held()
        # Nor where the page is drawn anew meanwhile.
        self.click("Suspend")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Suspend it", "document.querySelector('dialog')")
        state = "document.querySelector('.head .badge').innerText"
        browser.wait(f"{state} === 'suspended'", "suspended")
        self.click("Resume")
        browser.wait(f"{state} === 'active'", "resumed")
        self.expect(browser.evaluate(f"{button}.disabled"), "a second press would make a key")
        browser.evaluate(PASS)
        self.let_go()
        browser.wait(f"{secrets}.length === 1", "the secret")
        self.click("Make an API key")
        browser.wait(f"{secrets}.length === 2", "both secrets")
        self.expect(len(set(browser.evaluate(secrets))) == 2, "one secret stands there twice")
        # The second click of a double one.
        browser.evaluate(f"{button}.dispatchEvent(new MouseEvent('click', {{detail: 2}})); true")
        browser.evaluate(HAPPENED)
        made = browser.evaluate(ids)
        self.expect(len(made) == 2, f"{len(made)} keys were made by two presses")
        # A secret goes with its key, and no other does.
        shown = browser.evaluate("document.querySelector('.note.good').innerText")
        first = next(one for one in made if one in shown)
        browser.evaluate(
            f"document.querySelector('[aria-label=\"Revoke API key {first}\"]').click()")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Revoke it", "document.querySelector('dialog')")
        browser.wait(f"!document.querySelector('main').innerText.includes({first!r})", "its end")
        self.expect(browser.evaluate(f"{secrets}.length") == 1, "the other secret went, too")
        self.sound("keys")

    def published(self):
        """What was committed is counted, each once: not what was sent again, and not only what a
        backend sent."""
        browser, given = self.browser, self.given
        told = ("[...document.querySelectorAll('.tile')].find((one) => "
                "one.querySelector('dt').innerText === 'Publishes since start')"
                "?.querySelector('dd').innerText")
        self.go_to("", "Overview")
        browser.wait(f"/^\\d+$/.test({told})", "a number")
        before = int(browser.evaluate(told))
        made = self.backend("POST", "/v1/conversations", {"participants": ["dan", "eva"]})
        parts = [{"mime_type": "text/plain", "text": "once"}]
        for _ in range(3):
            for path, body in (
                    (f"/v1/conversations/{made['id']}/messages", {"parts": parts}),
                    ("/v1/announcements", {"users": ["dan", "eva"], "parts": parts})):
                self.backend("POST", path, body, **{"idempotency-key": path[:20]})
        # A device sends one message, and sends it again.
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(
            [sys.executable, os.path.join(here, "client.py"), "--port", given.port, "--ca",
             given.ca, "--app", given.app, "--key", given.key, "--kid", given.kid],
            check=True, stdout=subprocess.DEVNULL)
        browser.wait(f"{told} === '{before + 3}'", f"{before + 3} publishes")
        drawn = DRAWN % "Publishes"
        count = len(browser.evaluate(drawn)["dots"])
        browser.wait(f"({drawn}).dots.length > {count} + 1", "later samples")
        self.expect(browser.evaluate(told) == str(before + 3), "more was counted than published")

    def jumped(self):
        """A clock that is set bends no graph: samples stand where they were taken."""
        browser = self.browser
        start = int(time.mktime((2026, 11, 21, 14, 0, 0, 0, 0, -1))) * 1000
        samples = [{
            # An hour ahead after ten, and an hour behind after twenty.
            "at": start + 2000 * number + (0, 3_600_000, -3_600_000)[number // 10],
            "monotonic": 5_000 + 2000 * number, "connections": number, "sessions": 0,
            "published": 4 * number, "deltas": 0, "sync_requests": 0, "wakes": {}, "pushes": 0,
            "push_milliseconds": 0, "push_buckets": [], "queue_ages": {}, "commits": 0,
            "commit_milliseconds": 0, "longest_commit_milliseconds": 0, "waiting_requests": 0,
        } for number in range(30)]
        self.go_to("apps", "Apps")
        browser.evaluate(STREAM % json.dumps(samples))
        self.go_to("", "Overview")
        browser.wait("document.querySelector('.live.on')", "live numbers")
        drawn = browser.evaluate(DRAWN % "Publishes")
        across = [dot[0] for dot in drawn["dots"]]
        gaps = [later - earlier for earlier, later in zip(across, across[1:])]
        self.expect(len(gaps) == 28 and max(gaps) - min(gaps) < 0.5 and min(gaps) > 0,
                    f"samples 2 s apart stand so far from each other: {gaps}")
        self.expect(len({dot[1] for dot in drawn["dots"]}) == 1, f"2 a second is drawn as {drawn}")
        # The axis ends when clocks showed it.
        ends = browser.evaluate(
            "new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })"
            f".format({samples[-1]['at']})")
        self.expect(drawn["times"][1] == ends, f"the axis ends at {drawn['times']}, not {ends}")
        browser.evaluate("window.EventSource = window.realSource; true")
        self.sound("jumped")

    def steps(self):
        """Users whose names are steps of a path, which browsers take out of an address."""
        browser, names = self.browser, [".", "..", "~..", "%2e%2e", "a/b"]
        self.backend("POST", "/v1/conversations", {"participants": names})
        for name in names:
            browser.evaluate(f"location.hash = '#/users/{self.app}'")
            browser.wait("document.querySelector('main h1')?.innerText === 'Users'", "the users")
            self.click(name, "document.querySelector('tbody')")
            browser.wait(f"document.querySelector('main h1')?.innerText === {name!r}",
                         f"the user {name}")
            self.says("Devices logged in")
        # What is changed is changed of that one.
        self.go_to(f"users/{self.app}/user/..", "..")
        self.click("Suspend")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Suspend the user", "document.querySelector('dialog')")
        browser.wait("document.querySelector('.head .badge').innerText === 'suspended'",
                     "that .. is suspended")
        self.go_to("audit", "Audit")
        self.says(f"POST /apps/{self.app}/users/../suspend")
        for path, heading in ((f"devices/{self.app}/user/..", "Devices of .."),
                              (f"devices/{self.app}/user/.", "Devices of .")):
            browser.evaluate(f"location.hash = '#/{path}'")
            self.says(heading)
        self.sound("steps")

    def silent(self):
        """Where a server does not answer it is told since when nothing is known of it."""
        browser = self.browser
        told = "document.querySelector('.news').innerText"
        for path, heading in (("apps", "Apps"), ("", "Overview")):
            self.go_to(path, heading)
            if heading == "Overview":
                browser.wait("document.querySelector('.live.on')", "live numbers")
            self.expect(browser.evaluate(told) == "", "something is told of a server that answers")
            before = time.time()
            os.kill(self.given.server, signal.SIGSTOP)
            try:
                browser.wait(
                    f"{told}.includes('No news from the server since')", "that it is silent")
                since = browser.evaluate(
                    "Date.parse(document.querySelector('.news time').dateTime) / 1000")
                self.expect(before - 8 < since <= time.time() - 3, f"since {since}, not {before}")
                self.expect("does not answer" in browser.evaluate(told), "no word of why")
                if heading == "Overview":
                    self.says("no news since")
                found = browser.evaluate(WIDE) + browser.evaluate(CONTRAST)
                self.expect(not found, f"what is told of it: {found}")
                self.picture("silent-" + heading.lower(), whole=False)
                browser.size(*PHONE, is_phone=True)
                found = browser.evaluate(WIDE) + browser.evaluate(STRUCTURE)
                self.expect(not found, f"what is told of it on a phone: {found}")
                self.picture(f"silent-{heading.lower()}-phone", whole=False)
                browser.size(*DESK)
            finally:
                os.kill(self.given.server, signal.SIGCONT)
            browser.wait(f"{told} === ''", "that it answers again")
            if heading == "Overview":
                browser.wait("document.querySelector('.live.on')", "live numbers again")
        # Nobody takes the connection at all; a change that is refused is another thing.
        self.go_to("apps", "Apps")
        self.offline(True)
        browser.wait(f"{told}.includes('No news from the server since')", "that nobody is there")
        self.offline(False)
        browser.wait(f"{told} === ''", "that somebody is there again")
        browser.evaluate(f"location.hash = '#/users/{self.app}/user/nobody-of-this-name'")
        self.says("no such user")
        self.expect(browser.evaluate(told) == "", "a refusal is taken for silence")

    def offline(self, is_it):
        self.browser.ask("Network.emulateNetworkConditions", offline=is_it, latency=0,
                         downloadThroughput=-1, uploadThroughput=-1)

    def another(self):
        """Another login in the same browser, and the end of one, are told in words."""
        browser, given = self.browser, self.given
        form = "document.activeElement?.id === 'token'"

        def says(*words):
            browser.wait(form, "the login")
            text = browser.evaluate("document.querySelector('main').innerText")
            for word in words:
                self.expect(word in text, f"no word of: {word}")
            self.picture("login-" + words[0].split()[0], whole=False)
            found = browser.evaluate(WIDE) + browser.evaluate(CONTRAST)
            self.expect(not found, f"what is told of it: {found}")

        # Another tab logs in, as somebody who may only look; this page notices by itself.
        self.go_to("apps", "Apps")
        self.other_tab("login", f'{{"token": "{given.reader_token}"}}')
        says("another tab", "as read-only (ben)", "admin (anna)")
        self.click("Go on as read-only (ben)")
        browser.wait("document.querySelector('.who')?.innerText.includes('read-only')", "the other")
        # The same, and what is done before the page has noticed is done by nobody.
        self.go_to("apps", "Apps")
        self.other_tab("login", f'{{"token": "{given.admin_token}"}}')
        browser.evaluate("location.hash = '#/nodes'")
        says("another tab", "as admin (anna)", "read-only (ben)")
        self.login(given.admin_token)
        browser.wait("document.querySelector('.who')?.innerText.includes('admin')", "the admin")
        # It is logged out in another tab.
        self.go_to("apps", "Apps")
        self.other_tab("logout", "")
        says("The session of this page is over", "logged out in another tab", "an hour",
             "revoked", "Log in again")
        self.login(given.admin_token)
        browser.wait("document.querySelector('.who')?.innerText.includes('admin')", "the admin")
        # Who could not be logged out is not told to be.
        self.offline(True)
        self.click("Log out")
        browser.wait("document.querySelector('[role=alert]')?.innerText.includes("
                     "'You are still logged in')", "that nobody was logged out")
        self.offline(False)
        self.click("Log out")
        says("You are logged out")
        self.login(given.admin_token)
        browser.wait("document.querySelector('.who')?.innerText.includes('admin')", "the admin")

    def other_tab(self, action, body):
        """What another page of this browser asks, with the same cookie."""
        status = self.browser.evaluate(f"""fetch("/console/session").then((one) => one.json())
          .then(({{ csrf }}) => fetch("/console/{action}", {{ method: "POST", body: {body!r},
            headers: {{ "content-type": "application/json", "x-rouse-csrf": csrf }} }}))
          .then((one) => one.status)""")
        self.expect(status in (200, 204), f"{action} in another tab was answered {status}")

    def long(self):
        """Names as long as they may be, of wide letters without a space: each is there as a whole,
        and nothing stands beside the page or outside what holds it."""
        browser = self.browser
        app, user, words = "W" * 64, "M" * 128, "O" * 128
        self.go_to("", "Overview")
        for path, body in ((["apps"], {"app": app}),
                           (["apps", app, "webhooks"],
                            {"url": "https://shop.example/" + "w" * 400}),
                           (["apps", app, "campaigns"],
                            {"name": words, "push": {"title": words, "body": words},
                             "start": time.strftime("%Y-%m-%dT%H:%M:%SZ",
                                                    time.gmtime(time.time() + 2 * 86_400))})):
            made = self.console("POST", path, body)
        with open(self.given.push_key, encoding="utf-8") as file:
            self.console("PUT", ["apps", app, "push", "production", "Q" * 64], {
                "key_id": "ABC1234567", "team": "TEAM123456", "private_key_pem": file.read(),
                "host": "localhost", "port": 1, "topics": ["org.example." + "w" * 200]})
        key = self.console("POST", ["apps", app, "api-keys"], None)["secret"]
        self.backend("POST", "/v1/conversations", {"participants": [user, "ben"]}, key)
        places = {
            "apps": app, f"apps/{app}": app, f"users/{app}": user, f"users/{app}/user/{user}": user,
            f"devices/{app}": "", f"devices/{app}/user/{user}": user, f"campaigns/{app}": words,
            f"campaigns/{app}/{made['id']}": words, f"campaigns/{app}/new": "", "push": "Q" * 64,
            f"webhooks/{app}": "w" * 400, "audit": app,
        }
        for where, size in (("desk", DESK), ("tablet", (1024, 768)), ("phone", PHONE)):
            browser.size(*size, is_phone=where == "phone")
            for number, (path, name) in enumerate(places.items()):
                browser.evaluate(f"location.hash = '#/{path}'")
                browser.wait(f"document.documentElement.dataset.page === {path!r}", path)
                if name:
                    self.says(name)
                self.fits(f"{path[:20]} {where}")
                self.picture(f"long-{number}-{where}")
            browser.evaluate(f"location.hash = '#/users/{app}/user/{user}'")
            browser.wait(f"document.querySelector('main h1')?.innerText === {user!r}", "the user")
            self.click("Suspend")
            browser.wait("document.querySelector('dialog[open]')", "a question")
            self.fits(f"a question {where}")
            self.picture(f"long-question-{where}", whole=False)
            self.click("Keep it as it is", "document.querySelector('dialog')")
        browser.size(*DESK)

    def fits(self, what):
        """Nothing is wider than the screen, than a table's place, or than its own box."""
        browser = self.browser
        found = browser.evaluate(WIDE) + browser.evaluate(CUT)
        self.expect(not found, f"{what}: too wide: {found}")
        width = browser.evaluate("document.documentElement.scrollWidth - innerWidth")
        self.expect(width <= 0, f"{what}: {width} pixels too wide")

    def console(self, method, path, body):
        """A change by the console's own API, as its pages ask for it."""
        address = "/console/api/" + "/".join(path)
        answer = self.browser.evaluate(f"""fetch("/console/session").then((one) => one.json())
          .then(({{ csrf }}) => fetch({address!r}, {{ method: {method!r},
            body: {json.dumps(json.dumps(body)) if body is not None else "undefined"},
            headers: {{ "content-type": "application/json", "x-rouse-csrf": csrf }} }}))
          .then(async (one) => one.ok ? one.json() : {{ refused: await one.text() }})""")
        self.expect("refused" not in answer, f"{method} {address}: {answer}")
        return answer


def main():
    parser = argparse.ArgumentParser()
    for name in ("console", "admin-token", "reader-token", "push-key", "app", "api-key", "port",
                 "ca", "key", "kid"):
        parser.add_argument("--" + name, required=True)
    for name in ("server", "api"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--only")
    parser.add_argument("--pictures")
    given, _ = parser.parse_known_args()
    given.axe = None
    browser = Browser()
    browser.size(*DESK)
    try:
        visit = Mishaps(browser, given)
        visit.enter(given.admin_token)
        for name in ("late", "overtaken", "replaced", "keys", "published", "jumped", "steps",
                     "silent", "another", "long"):
            if given.only in (None, name):
                getattr(visit, name)()
                print("ok", name)
    except Failure as failure:
        print(f"FAILED: {failure}; complaints: {browser.complaints}")
        sys.exit(1)
    finally:
        browser.close()
    print("the mishaps: ok")


if __name__ == "__main__":
    main()
