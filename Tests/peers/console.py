#!/usr/bin/python3
"""An operator at the console, in a headless Chromium: each page on a desk and on a phone, as eyes,
keyboards and screen readers meet it, and changes that the server then knows of.

usage: console.py --console PORT --admin-token T --reader-token T --app APP --user USER
    --message ID --device ID --push-key FILE --push-port PORT --push-trust FILE
    [--pictures DIR] [--axe FILE]
"""
import argparse
import datetime
import os
import sys
import time

from browser import Browser, Failure

SHOWN = "(document.querySelector('main') ?? document.body).innerText"
# What axe-core finds wrong: https://github.com/dequelabs/axe-core (the rules of WCAG 2.2 A and AA,
# and what it calls best practice).
AXE = """axe.run(document, { resultTypes: ["violations"] }).then((found) =>
  found.violations.map((one) => `${one.id} (${one.impact}): ${one.help}: ` +
    one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")))"""

DESK, PHONE = (1280, 800), (390, 844)

# Text whose colour is too near to what is behind it (WCAG 2.2, 1.4.3: 4.5, large text 3).
CONTRAST = """(() => {
  const parse = (text) => { const parts = text.match(/[\\d.]+/g).map(Number); return parts.length < 4 ? [...parts, 1] : parts; };
  const light = ([r, g, b]) => { const of = (c) => { c /= 255; return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; };
    return .2126 * of(r) + .7152 * of(g) + .0722 * of(b); };
  const behind = (element) => { for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor); if (colour[3] === 1) return colour; } return [255, 255, 255, 1]; };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, noscript, .unseen, .skip") || !element.checkVisibility() || element.disabled) continue;
    const style = getComputedStyle(element);
    const inSVG = element.closest("svg");
    const [one, two] = [light(parse(inSVG ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(one, two) + .05) / (Math.min(one, two) + .05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${node.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
})()"""

# What a page must have for whoever does not see it.
STRUCTURE = """(() => {
  const wrong = [];
  if (document.querySelectorAll("h1").length !== 1) wrong.push(`${document.querySelectorAll("h1").length} h1`);
  if (document.querySelectorAll("main").length !== 1) wrong.push("no single main");
  if (!document.querySelector("nav[aria-label]")) wrong.push("no named nav");
  if (document.querySelectorAll("nav [aria-current=page]").length !== 1) wrong.push("no current page");
  if (!document.querySelector("[aria-live=polite]")) wrong.push("no live region");
  for (const control of document.querySelectorAll("input, select, textarea"))
    if (!control.labels?.length && !control.getAttribute("aria-label")) wrong.push(`no label: ${control.name}`);
  for (const button of document.querySelectorAll("button, a"))
    if (!(button.textContent.trim() || button.getAttribute("aria-label"))) wrong.push("a button or link without a name");
  for (const picture of document.querySelectorAll("svg"))
    if (!picture.getAttribute("aria-label")) wrong.push("a drawing without a name");
  for (const table of document.querySelectorAll("table"))
    if (!table.caption) wrong.push("a table without a caption");
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) wrong.push(`id ${id} twice`);
  let level = 1;
  for (const heading of document.querySelectorAll("main :is(h1,h2,h3,h4)")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) wrong.push(`h${own} after h${level}`);
    level = own;
  }
  return wrong;
})()"""

WIDE = """(() => [...document.querySelectorAll("main *")].filter((one) =>
  one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, .unseen, svg"))
  .map((one) => one.tagName + "." + one.className).slice(0, 5))()"""


def pages_of(given):
    """Where each page is, after the #/ of the address."""
    app = given.app
    return {
        "overview": "", "apps": "apps", "app": f"apps/{app}", "devices": "devices",
        "user": f"devices/{app}/user/{given.user}",
        "device": f"devices/{app}/device/{given.device}",
        "message": f"devices/{app}/message/{given.message}",
        "campaigns": f"campaigns/{app}", "push": "push", "webhooks": f"webhooks/{app}",
        "nodes": "nodes", "audit": "audit",
        "users": f"users/{app}", "person": f"users/{app}/user/{given.user}",
    }


class Visit:
    def __init__(self, browser, given, pages):
        self.browser, self.given, self.pages = browser, given, pages
        self.origin = f"http://127.0.0.1:{given.console}"
        self.axe, self.looked = None, 0
        # What was to be refused: Chromium complains of each.
        self.refused = []
        if given.axe:
            with open(given.axe, encoding="utf-8") as file:
                self.axe = file.read()

    def picture(self, name, whole=True):
        if self.given.pictures:
            os.makedirs(self.given.pictures, exist_ok=True)
            self.browser.picture(os.path.join(self.given.pictures, name + ".png"), whole)

    def expect(self, truth, what):
        if not truth:
            raise Failure(f"{what}; the page says: "
                          f"{self.browser.evaluate(SHOWN)[-700:]}")

    def sound(self, name):
        """Looks at what the browser complained of, and at what was fetched from elsewhere."""
        complaints = [one for one in self.browser.complaints
                      if not any(refused in one
                                 for refused in self.refused)]
        self.expect(not complaints, f"{name}: the browser complains: {complaints}")
        foreign = [one for one in self.browser.events
                   if not one.startswith((self.origin, "about:", "data:"))]
        self.expect(not foreign, f"{name}: fetched from elsewhere: {foreign}")

    def show(self, name):
        """Goes to a page and waits until it is drawn."""
        path = self.pages[name]
        self.browser.evaluate(f"location.hash = '#/{path}'")
        self.browser.wait(
            f"document.documentElement.dataset.page === '{path or 'overview'}'"
            " && document.querySelector('main h1')", f"the page {name}")
        if name == "overview":
            self.browser.wait("document.querySelector('.live.on')", "live numbers")
        self.expect(not self.browser.evaluate("document.querySelector('.note.bad') !== null"),
                    f"{name}: a mistake is shown")

    def look(self, name, where, size=DESK):
        """What must be so on each page, in each size."""
        self.show(name)
        if name == "message":
            # The page tells of the moment at which it is drawn: the grace may run still.
            for _ in range(30):
                if self.browser.evaluate(
                        "document.querySelector('main').innerText.includes('it did not come')"):
                    break
                time.sleep(1)
                self.show("audit")
                self.show(name)
            self.says("it did not come")
            self.expect(self.browser.evaluate("document.querySelectorAll('.time svg').length") > 0,
                        "no picture")
        for script, what in ((STRUCTURE, "structure"), (CONTRAST, "contrast"), (WIDE, "too wide")):
            found = self.browser.evaluate(script)
            self.expect(not found, f"{name} {where}: {what}: {found}")
        if where == "desk":
            cut = self.browser.evaluate("[...document.querySelectorAll('.scroll')].filter("
                                        "(one) => one.scrollWidth > one.clientWidth).length")
            self.expect(not cut, f"{name} {where}: {cut} tables are cut")
        if self.axe:
            if not self.browser.evaluate("typeof axe === 'object'"):
                self.browser.evaluate(self.axe + "; true")
            found = self.browser.evaluate(AXE)
            self.expect(not found, f"{name} {where}: axe: {found}")
            self.looked += 1
        text = self.browser.evaluate(SHOWN)
        for slip in ("[object", "undefined", "NaN", "Invalid Date"):
            self.expect(slip not in text, f"{name} {where}: {slip}")
        lines = [line.strip() for line in text.splitlines()]
        self.expect(not {"false", "null", "true"} & set(lines), f"{name} {where}: a slip")
        width = self.browser.evaluate(f"document.documentElement.scrollWidth - {size[0]}")
        self.expect(width <= 0, f"{name} {where}: {width} pixels too wide")
        self.sound(f"{name} {where}")

    def login(self, token):
        browser = self.browser
        browser.wait("document.activeElement?.id === 'token'", "the login")
        browser.ask("Input.insertText", text=token)
        browser.key("Enter", 13, "\r")

    def logout(self):
        self.click("Log out")
        self.browser.wait("document.querySelector('#token')", "the login")

    def click(self, text, within="document"):
        """As somebody does who reads what is on it."""
        self.browser.wait(f"""(() => {{
          const all = [...{within}.querySelectorAll("button, a, summary")];
          const found = all.find((one) => one.textContent.trim() === {text!r} && !one.disabled && one.checkVisibility());
          if (!found) return false;
          found.focus();
          found.click();
          return true;
        }})()""", f"a button {text}")

    def fill(self, name, value):
        self.browser.wait(f"document.querySelector('main [name=\"{name}\"]')", f"a field {name}")
        self.browser.evaluate(f"""(() => {{
          const field = document.querySelector('main [name="{name}"]');
          field.focus();
          field.value = {value!r};
          field.dispatchEvent(new Event("input", {{ bubbles: true }}));
        }})()""")

    def says(self, text):
        self.browser.wait(
            f"document.querySelector('main')?.innerText.includes({text!r})", f"the words {text}")

    # What is tried

    def entry(self):
        browser, given = self.browser, self.given
        browser.size(*DESK)
        browser.go(self.origin + "/console")
        browser.wait("document.activeElement?.id === 'token'", "the login")
        roles = browser.accessibility()
        self.expect(("heading", "Rouse console") in roles, "no heading for a screen reader")
        self.expect(("textbox", "Console token") in roles, f"no named field: {roles}")
        self.picture("login")
        self.sound("login")
        self.login("rct_wrong")
        browser.wait("document.querySelector('[role=alert]')?.innerText.includes('unknown')",
                     "a refusal")
        self.expect(browser.evaluate("document.activeElement.getAttribute('role') === 'alert'"),
                    "the refusal has no focus")
        self.refused.append(f"401 (Unauthorized) {self.origin}/console/login")
        browser.evaluate(
            "document.querySelector('#token').value = ''; document.querySelector('#token').focus()")
        self.login(given.reader_token)
        browser.wait("document.querySelector('main h1')?.innerText === 'Overview'", "the overview")
        self.expect(browser.evaluate("document.cookie") == "", "a script can read the cookie")

    def keyboard(self):
        browser = self.browser
        browser.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        browser.go(self.origin + "/console/")
        browser.wait("document.querySelector('main h1')", "a page")
        seen = []
        for _ in range(14):
            browser.key("Tab", 9)
            seen.append(browser.evaluate("""(() => {
              const at = document.activeElement;
              const style = getComputedStyle(at);
              const box = at.getBoundingClientRect();
              return [at.textContent.trim(), parseFloat(style.outlineWidth), style.outlineStyle, box.top >= 0];
            })()"""))
        self.expect(seen[0][0].startswith("Skip"), f"the first stop is {seen[0]}")
        names = [one[0] for one in seen]
        for name in ("Overview", "Apps", "Campaigns", "Audit", "Log out"):
            self.expect(name in names, f"{name} is not reached by Tab: {names}")
        for name, width, style, inside in seen[:10]:
            self.expect(width >= 2 and style != "none" and inside, f"{name}: no focus to see")
        # Enter on the skip link goes to the page.
        browser.evaluate("document.querySelector('.skip').focus()")
        browser.key("Enter", 13, "\r")
        browser.wait("document.activeElement.id === 'main'", "the focus in the page")

    def everything(self, role):
        browser = self.browser
        for where, size in (("desk", DESK), ("phone", PHONE)):
            browser.size(*size, is_phone=where == "phone")
            for name in self.pages:
                self.look(name, where, size)
                if role == "admin":
                    self.picture(f"{name}-{where}")

    def readers(self):
        browser = self.browser
        browser.size(*DESK)
        for name, word in (("apps", "Make the app"), ("app", "Make an API key"),
                           ("campaigns", "New campaign"), ("webhooks", "Add the webhook"),
                           ("push", "Add a push credential"), ("push", "Remove"),
                           ("person", "Suspend"), ("person", "Log out everywhere")):
            self.show(name)
            self.expect(word not in browser.evaluate("document.body.innerText"),
                        f"{name}: a reader is offered to {word}")
        status = browser.evaluate(
            "fetch('/console/api/apps/" + self.given.app + "', {method: 'PATCH', headers: "
            "{'content-type': 'application/json'}, body: '{}'}).then((answer) => answer.status)")
        self.expect(status == 403, f"a reader's change was answered {status}")
        self.refused.append(f"403 (Forbidden) {self.origin}/console/api/apps/{self.given.app}")

    def schemes(self):
        browser = self.browser
        browser.size(*DESK)
        browser.media(prefers_color_scheme="dark")
        for name in self.pages:
            self.look(name, "dark")
        for name in ("overview", "device"):
            self.show(name)
            self.picture(f"{name}-dark")
        browser.media(prefers_reduced_motion="reduce")
        self.show("overview")
        moving = browser.evaluate(
            "[...document.querySelectorAll('.live')].map((one) => "
            "getComputedStyle(one, '::before').animationName)")
        self.expect(moving == ["none"], f"something moves: {moving}")
        browser.media()

    def streaming(self):
        """Events go on coming, and the graphs with them."""
        browser = self.browser
        self.show("overview")
        count = ("Math.max(...[...document.querySelectorAll('polyline')]"
                 ".map((one) => one.getAttribute('points').split(' ').length))")
        first = browser.evaluate(count)
        browser.wait(f"{count} > {first} || {count} >= 299", "another sample")
        # What explained.py did: a message, a wake that was not heeded, an alert.
        for name, value in (("Publishes since start", "1"), ("Pushes answered", "2"),
                            ("Wakes that synced", "0 of 1")):
            browser.wait(f"""[...document.querySelectorAll(".tile")].some((one) =>
              one.querySelector("dt").innerText === {name!r} &&
              one.querySelector("dd").innerText === {value!r})""", f"{name}: {value}")

    def changes(self):
        browser, app = self.browser, self.given.app
        # The policy.
        self.show("app")
        self.click("Change the policy")
        self.picture("app-form-desk")
        self.fill("grace_seconds", "45")
        self.click("Change the policy", "document.querySelector('form')")
        self.says("45 s")
        # A mistake is said where it was made.
        self.click("Change the policy")
        self.fill("grace_seconds", "99999")
        self.click("Change the policy", "document.querySelector('form')")
        browser.wait("document.querySelector('[role=alert]')?.innerText.includes('1 to 3600')",
                     "why it is refused")
        self.refused.append(f"400 (Bad Request) {self.origin}/console/api/apps/{app}")
        # A second API key, and its end.
        self.show("apps")
        self.show("app")
        self.click("Make an API key")
        browser.wait("document.querySelector('.secret')?.innerText.startsWith('rk_')", "a secret")
        key = browser.evaluate("document.querySelector('[data-place=keys] tbody tr:last-child code').innerText")
        browser.evaluate(f"document.querySelector('[aria-label=\"Revoke API key {key}\"]').click()")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.expect(browser.evaluate("document.activeElement.innerText") == "Keep it as it is",
                    "the harmless answer has no focus")
        self.picture("confirm-desk", whole=False)
        self.click("Revoke it", "document.querySelector('dialog')")
        browser.wait(f"!document.querySelector('main').innerText.includes('{key}')", "its end")

    def campaign(self):
        browser = self.browser
        self.show("campaigns")
        self.click("New campaign")
        self.fill("name", "Spring")
        self.fill("title", "Spring is here")
        self.fill("body", "Everything is green.")
        self.fill("rate", "1")
        self.expect(browser.evaluate(
            "[...document.querySelectorAll('button')].find((one) => one.innerText === "
            "'Start the campaign').disabled"), "it starts without a count")
        self.click("Count the devices")
        self.says("devices get it")
        self.picture("campaign-new-desk")
        browser.size(*PHONE, is_phone=True)
        self.picture("campaign-new-phone")
        browser.size(*DESK)
        # At a time, so that it can be paused at leisure.
        self.fill("when", "utc")
        later = datetime.datetime.now() + datetime.timedelta(days=2)
        self.fill("at", later.strftime("%Y-%m-%dT%H:%M"))
        self.click("Count the devices")
        self.says("devices get it")
        self.click("Start the campaign")
        self.says("scheduled")
        self.picture("campaign-desk")
        self.click("Pause")
        self.says("paused")
        self.click("Resume")
        self.says("scheduled")
        self.click("Cancel")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Cancel", "document.querySelector('dialog')")
        self.says("cancelled")
        for where, size in (("desk", DESK), ("phone", PHONE)):
            browser.size(*size, is_phone=where == "phone")
            found = browser.evaluate(WIDE)
            self.expect(not found, f"campaign {where}: too wide: {found}")
            self.picture(f"campaign-over-{where}")
        browser.size(*DESK)

    def watched(self):
        """One that starts at once, to the end."""
        browser = self.browser
        self.show("campaigns")
        self.click("New campaign")
        self.fill("name", "Summer")
        self.fill("body", "It is warm.")
        self.fill("canary", "0")
        self.click("Count the devices")
        self.says("1 of 1 devices get it")
        self.click("Start the campaign")
        self.says("finished")
        self.says("accepted 1")
        self.picture("campaign-finished-desk")
        self.show("campaigns")
        names = browser.evaluate(
            "[...document.querySelectorAll('tbody th')].map((one) => one.innerText)")
        self.expect(names == ["Summer", "Spring"], f"listed are {names}")

    def another(self):
        """A second app, of which there is nothing yet."""
        browser = self.browser
        self.show("apps")
        self.fill("app", "Sh op")
        self.click("Make the app")
        browser.wait("document.querySelector('h1')?.innerText === 'Sh op'", "the new app")
        for page in ("campaigns", "webhooks"):
            self.show(page)
            browser.evaluate("""(() => {
              const choose = document.querySelector("select[aria-label=App]");
              choose.value = "Sh op";
              choose.dispatchEvent(new Event("change"));
            })()""")
            browser.wait(f"document.documentElement.dataset.page === '{page}/Sh op'"
                         " && document.querySelector('select[aria-label=App]').value === 'Sh op'",
                         f"{page} of the other app")
            self.says("This app has none")
        browser.evaluate("location.hash = '#/devices/Sh%20op/user/nobody'")
        self.says("This user has no device here")
        browser.evaluate("location.hash = '#/devices/Sh%20op/device/none'")
        browser.wait("document.querySelector('[role=alert]')?.innerText.includes('36 characters')",
                     "why there is nothing")
        self.refused.append(f"400 (Bad Request) {self.origin}/console/api/apps/Sh%20op/devices/none")
        self.sound("the second app")

    def webhook(self):
        self.show("webhooks")
        self.fill("url", "https://shop.example/rouse")
        self.click("Add the webhook")
        self.says("shown this once")
        self.says("https://shop.example/rouse")
        self.click("Switch off")
        self.says("Switch on")

    def doctor(self):
        self.show("push")
        self.click("Ask the doctor")
        self.says("The doctor finds it")
        self.picture("push-doctor-desk")

    def credential(self):
        """A key is pasted, looked at by the doctor at once, and removed."""
        browser, given = self.browser, self.given
        with open(given.push_key, encoding="utf-8") as file:
            key = file.read()
        with open(given.push_trust, encoding="utf-8") as file:
            trust = file.read()
        self.show("push")
        self.click("Add a push credential")
        self.picture("push-form-desk")
        browser.size(*PHONE, is_phone=True)
        found = browser.evaluate(WIDE) + browser.evaluate(CONTRAST) + browser.evaluate(STRUCTURE)
        self.expect(not found, f"the form of a credential: {found}")
        self.picture("push-form-phone")
        browser.size(*DESK)
        # What is no key is refused where it was pasted.
        for name, value in (("app", given.app), ("name", "second"), ("key_id", "ABC1234567"), ("team", "TEAM123456"),
                            ("topics", "org.example.chat"), ("private_key_pem", "-----BEGIN")):
            self.fill(name, value)
        self.click("Add the credential")
        browser.wait("document.querySelector('[role=alert]')?.innerText.includes('P-256')",
                     "why it is no key")
        self.expect(browser.evaluate("document.activeElement.getAttribute('role') === 'alert'"),
                    "the refusal has no focus")
        self.refused.append(
            f"400 (Bad Request) {self.origin}/console/api/apps/{given.app}/push/production/second")
        self.fill("private_key_pem", key)
        self.click("Another address than Apple\u2019s")
        for name, value in (("host", "localhost"), ("port", given.push_port),
                            ("trusted_certificates_pem", trust)):
            self.fill(name, value)
        self.click("Add the credential")
        self.says("Added: " + f"{given.app}, production, second")
        self.says("The doctor finds it")
        self.expect(browser.evaluate("document.activeElement.className === 'told'"),
                    "what was done has no focus")
        self.expect("PRIVATE KEY-----" not in browser.evaluate(
            "[...document.querySelectorAll('textarea')].map((one) => one.value).join()"),
                    "the key stays in the page")
        self.picture("push-added-desk")
        name = f"{given.app}, production, second"
        browser.evaluate(f"document.querySelector('[aria-label=\"Remove {name}\"]').click()")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Remove it", "document.querySelector('dialog')")
        self.says("Removed: " + name)
        self.expect(not browser.evaluate(
            f"document.querySelector('[aria-label=\"Remove {name}\"]')"), "it is there still")

    def people(self):
        """A user is found, looked at, suspended, and resumed; the way to the device is there."""
        browser, given = self.browser, self.given
        self.show("users")
        self.fill("prefix", given.user[:2])
        browser.key("Enter", 13, "\r")
        self.says("Users whose names begin with " + given.user[:2])
        self.click(given.user)
        browser.wait(f"document.querySelector('main h1')?.innerText === {given.user!r}", "the user")
        self.says("Conversations")
        for word, state, after in (("Suspend", "suspended", "Resume"),
                                   ("Resume", "active", "Suspend")):
            self.click(word)
            if word == "Suspend":
                browser.wait("document.querySelector('dialog[open]')", "a question")
                self.click("Suspend the user", "document.querySelector('dialog')")
            browser.wait(f"document.querySelector('.head .badge')?.innerText === {state!r}", state)
            self.expect(browser.evaluate(
                "[...document.querySelectorAll('.head button')].map((one) => one.innerText)[0]")
                == after, f"{after} is not offered")
        self.click(given.device)
        browser.wait("document.querySelector('main h1')?.innerText === 'Device'", "the device")
        self.click(f"User {given.user}")
        browser.wait(f"document.querySelector('main h1')?.innerText === {given.user!r}", "the user")
        browser.evaluate(f"location.hash = '#/users/{given.app}/user/nobody'")
        browser.wait("document.querySelector('[role=alert]')?.innerText.includes('no such user')",
                     "that there is none")
        self.refused.append(f"404 (Not Found) {self.origin}/console/api/apps/{given.app}/users/nobody")
        self.sound("the users")

    def audit(self):
        self.show("audit")
        for action in ("PATCH /apps/", "/api-keys", "/campaigns/", "/webhooks", "/check",
                       "/push/production/second", "/suspend"):
            self.says(action)
        self.expect("PRIVATE KEY" not in self.browser.evaluate("document.body.innerText"),
                    "a key is in the audit log")
        self.expect("(yours)" in self.browser.evaluate("document.body.innerText"),
                    "the own token is not told")

    def end(self):
        """A token that is revoked ends what it opened."""
        browser = self.browser
        self.show("audit")
        browser.evaluate("""(() => {
          const row = [...document.querySelectorAll("tr")].find((one) => one.innerText.includes("(yours)"));
          row.querySelector("button").click();
        })()""")
        browser.wait("document.querySelector('dialog[open]')", "a question")
        self.click("Revoke it", "document.querySelector('dialog')")
        browser.wait("document.querySelector('#token')", "the login")
        self.refused.append("401 (Unauthorized)")
        self.sound("the end")


def main():
    parser = argparse.ArgumentParser()
    for name in ("console", "admin-token", "reader-token", "app", "user", "message", "device",
                 "push-key", "push-port", "push-trust"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--pictures")
    parser.add_argument("--axe", help="axe.min.js, which looks at every page then")
    given, _ = parser.parse_known_args()
    browser = Browser()
    try:
        visit = Visit(browser, given, pages_of(given))
        visit.entry()
        visit.keyboard()
        visit.everything("reader")
        visit.readers()
        visit.logout()
        visit.login(given.admin_token)
        browser.wait("document.querySelector('main h1')", "a page")
        visit.streaming()
        visit.changes()
        visit.campaign()
        visit.watched()
        visit.another()
        visit.webhook()
        visit.doctor()
        visit.credential()
        visit.people()
        visit.audit()
        visit.everything("admin")
        visit.schemes()
        visit.end()
    except Failure as failure:
        print(f"FAILED: {failure}; complaints: {browser.complaints}")
        sys.exit(1)
    finally:
        browser.close()
    print(f"the console: ok; axe-core looked at {visit.looked} pages")


if __name__ == "__main__":
    main()
