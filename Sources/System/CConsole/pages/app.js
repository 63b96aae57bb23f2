// The frame: who is in, which page is shown.

import * as api from "./api.js";
import { h, into, say, time, note, carryOut, badge } from "./dom.js";
import * as overview from "./overview.js";
import * as apps from "./apps.js";
import * as users from "./users.js";
import * as device from "./device.js";
import * as campaigns from "./campaigns.js";
import * as push from "./push.js";
import * as webhooks from "./webhooks.js";
import * as nodes from "./nodes.js";
import * as audit from "./audit.js";

const pages = [
  { name: "", title: "Overview", show: overview.show },
  { name: "apps", title: "Apps", show: apps.show },
  { name: "users", title: "Users", show: users.show },
  { name: "devices", title: "Devices", show: device.show },
  { name: "campaigns", title: "Campaigns", show: campaigns.show },
  { name: "push", title: "Push credentials", show: push.show },
  { name: "webhooks", title: "Webhooks", show: webhooks.show },
  { name: "nodes", title: "Nodes", show: nodes.show },
  { name: "audit", title: "Audit", show: audit.show },
];

const root = document.getElementById("root");
let main = null;
/** What the page shown has to end, such as a stream. */
let leave = () => {};
let visits = 0;
/** Stands above every page, and says from when on nothing is known of the server. */
const news = h("div", { class: "news", role: "status" });
/** Below it: what came of an attempt to log out. */
const answer = h("div", {});
const pulseMilliseconds = 5000;
let heardAt = Date.now();
let isSilent = false;

const brand = (level) => h("div", { class: "brand" },
  h("img", { src: "/console/files/icon.svg", alt: "" }),
  level ? h("h1", {}, "Rouse console") : h("span", {}, "Rouse"));

/** Ends what the page shown has under way: its requests, its stream, its question. */
function turn() {
  api.turnPage();
  into(answer);
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close("no");
  leave();
  leave = () => {};
  return ++visits;
}

/** `#/apps/shop` is ["apps", "shop"]. */
const place = () => location.hash.replace(/^#\/?/, "").split("/").map((part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    // Somebody typed it.
    return part;
  }
});

/** As whom somebody is in. */
const named = (session) => (session.label ? `${session.role} (${session.label})` : session.role);

/** @param successor: the session that another login in this browser has opened meanwhile. */
function ended(session, successor) {
  if (!successor) {
    return login("The session of this page is over: somebody has logged out in another tab, it was not used for an hour, its token was revoked or has come to its end, or the server was started anew. Log in again.");
  }
  const on = h("button", { type: "button", onclick: () => location.reload() }, `Go on as ${named(successor)}`);
  return login([
    h("p", {}, `Somebody has logged in as ${named(successor)} in another tab of this browser. That has ended the session of this page, which was of ${named(session)}.`),
    h("div", { class: "acts-row" }, on, h("span", { class: "soft" }, "or log in anew, which ends the other one.")),
  ]);
}

function login(message) {
  turn();
  heard();
  main = null;
  document.title = "Log in – Rouse console";
  const refused = h("div", {});
  const button = h("button", { class: "main", type: "submit" }, "Log in");
  const form = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      carryOut(refused, button, async () => {
        await api.login(form.elements.token.value.trim());
        frame();
      });
    },
  },
  h("div", { class: "field" },
    h("label", { for: "token" }, "Console token"),
    h("input", { id: "token", name: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", "aria-describedby": "tokenhint" }),
    h("p", { class: "hint", id: "tokenhint" }, "Made on the server with ", h("code", {}, "rouse console token"), ".")),
  refused, h("div", { class: "acts-row" }, button));
  into(root, h("main", { class: "login", id: "main", tabindex: "-1" },
    brand(true), h("div", { class: "sheet" }, message && note("warn", message), form)));
  form.elements.token.focus();
}

function frame() {
  const session = api.current();
  main = h("main", { id: "main", tabindex: "-1" });
  const out = h("button", {
    type: "button", onclick: () => carryOut(answer, out, async () => {
      try {
        await api.logout();
      } catch (refusal) {
        throw new api.Refusal(refusal.status, `You are still logged in: ${refusal.message}`);
      }
      login("You are logged out.");
    }),
  }, "Log out");
  into(root, h("div", { class: "frame" },
    h("header", { class: "side" }, brand(false),
      h("nav", { "aria-label": "Pages" }, h("ul", {}, pages.map((page) =>
        h("li", {}, h("a", { href: `#/${page.name}`, id: `nav-${page.name || "overview"}` }, page.title))))),
      h("div", { class: "who" },
        h("span", {}, h("span", { class: "unseen" }, "You are in as "), badge(session.role)), out)),
    h("div", { class: "page" }, news, answer, main)));
  show();
}

function heard() {
  heardAt = Date.now();
  if (!isSilent) return;
  isSilent = false;
  into(news);
  say("The server answers again");
}

/** What is on the screen stays there, and is not taken for what is so now. */
function silent(why) {
  if (isSilent || !main) return;
  isSilent = true;
  into(news, h("p", { class: "note warn" }, "No news from the server since ", time(new Date(heardAt).toISOString()), `. ${why} What is shown here is no newer than that.`));
}

let isAsked = false;

/** Most pages ask for nothing once they are drawn: without this nothing would tell that the server has gone. */
async function look() {
  if (!main || isAsked || document.hidden) return;
  isAsked = true;
  try { await api.pulse(); } finally { isAsked = false; }
}

async function show() {
  if (!main) return;
  const mine = turn();
  const [name, ...rest] = place();
  const page = pages.find((page) => page.name === name) ?? pages[0];
  for (const link of root.querySelectorAll("nav a")) {
    const isIt = link.getAttribute("href") === `#/${page.name}`;
    if (isIt) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    } else {
      link.removeAttribute("aria-current");
    }
  }
  document.title = `${page.title} – Rouse console`;
  const target = h("div", {});
  try {
    const end = await page.show(target, rest);
    if (mine !== visits || !main) return end?.();
    leave = end ?? (() => {});
  } catch (refusal) {
    if (mine !== visits || !main) return;
    if (!(refusal instanceof api.Refusal)) console.error(refusal);
    into(target, h("h1", {}, page.title), note("bad", refusal.message));
  }
  into(main, target);
  document.documentElement.dataset.page = [page.name || "overview", ...rest].join("/");
  if (shown) {
    main.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    say(`${page.title} is shown`);
  }
  shown = true;
}

let shown = false;

// The address of a page is in the hash: the link must not become another.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main")?.focus();
});
api.whenEnded(ended);
api.whenHeard(heard, silent);
setInterval(look, pulseMilliseconds);
document.addEventListener("visibilitychange", look);
window.addEventListener("hashchange", show);
/** For pages that changed what they show. */
window.addEventListener("console-again", show);

try {
  if (await api.resume()) frame();
  else login();
} catch (refusal) {
  into(root, h("main", { class: "alone" }, h("h1", {}, "Rouse console"), note("bad", refusal.message)));
}
