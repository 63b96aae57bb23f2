// Campaigns: made with a count first, watched, paused, resumed, cancelled.

import * as api from "./api.js";
import { h, into, looking, table, time, sheet, facts, field, values, note, carryOut, confirm, badge, duration, number, say } from "./dom.js";
import { shares } from "./charts.js";

const over = ["cancelled", "finished"];
const resumable = ["paused", "stopped", "review"];

export async function show(target, [app, id]) {
  const { apps } = await api.get(["apps"]);
  const names = apps.map((one) => one.app);
  if (!names.length) {
    into(target, h("div", { class: "head" }, h("h1", {}, "Campaigns")), sheet(null, h("p", { class: "empty" }, "There is no app yet.")));
    return undefined;
  }
  const chosen = app || names[0];
  if (id === "new" && api.mayChange()) return create(target, chosen);
  if (id) return one(target, chosen, id);
  await list(target, names, chosen);
  return undefined;
}

export function appTabs(names, chosen, page) {
  if (names.length < 2) return h("span", { class: "soft" }, `of ${chosen}`);
  const choose = h("select", {
    "aria-label": "App", title: chosen, onchange: () => { location.hash = `#/${page}/${encodeURIComponent(choose.value)}`; },
  }, names.map((name) => h("option", { value: name, selected: name === chosen }, name)));
  return h("div", { class: "of" }, h("span", { class: "soft" }, "of"), choose);
}

async function list(target, names, app) {
  const first = await api.get(["apps", app, "campaigns"]);
  let { campaigns, next } = first;
  const name = encodeURIComponent(app);
  const place = h("div", {});
  const answer = h("div", {});
  const more = h("button", {
    type: "button", onclick: () => carryOut(answer, more, async () => {
      const page = await api.get(["apps", app, "campaigns"], { cursor: next });
      campaigns = campaigns.concat(page.campaigns);
      next = page.next;
      redraw();
      say(`${page.campaigns.length} more are shown`);
    }),
  }, "Older campaigns");
  const redraw = () => {
    into(place, rows(name, campaigns));
    more.hidden = !next;
  };
  redraw();
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Campaigns"), appTabs(names, app, "campaigns"),
      api.mayChange() && h("a", { class: "button main push", href: `#/campaigns/${name}/new` }, "New campaign")),
    sheet(null, place, answer, h("div", { class: "acts-row" }, more)));
}

const rows = (name, campaigns) => table("Campaigns, newest first", [
  { name: "Campaign", head: true, of: (one) => h("a", { href: `#/campaigns/${name}/${one.id}` }, one.name || one.push.title || one.id.slice(0, 13)) },
  { name: "State", of: (one) => badge(one.state) },
  { name: "Audience", numeric: true, of: (one) => number(one.progress?.audience) },
  { name: "Accepted", numeric: true, of: (one) => number(one.progress?.accepted) },
  { name: "Refused", numeric: true, of: (one) => number(one.progress?.refused) },
  { name: "Start", of: (one) => one.local_start ? `${one.local_start.replace("T", " ")}, local` : time(one.start) },
], campaigns, "This app has none.");

const leftOut = { presumed_gone: "presumed gone", tokenless: "without a push token", notifications_off: "notifications off", suspended: "suspended", no_credential: "no push credential fits", changed: "changed meanwhile" };
const omitted = (counts) => Object.entries(counts ?? {}).filter(([, count]) => count > 0).map(([key, count]) => `${number(count)} ${leftOut[key] ?? key}`).join(", ") || "none";

function progress(one) {
  const at = one.progress;
  if (!at) return null;
  return h("div", {},
    shares("Pushes", [
      { name: "accepted", count: at.accepted, tone: "good" }, { name: "sending", count: at.sending, tone: "calm" },
      { name: "waiting", count: at.waiting, tone: "soft" }, { name: "refused", count: at.refused, tone: "bad" },
      { name: "cancelled", count: at.cancelled, tone: "warn" },
    ]),
    facts([
      ["Audience", `${number(at.audience)}${at.is_complete || over.includes(one.state) ? "" : " so far"}, of ${number(at.seen)} devices looked at`],
      ["Left out", omitted(at.left_out)],
      ["Canary", one.canary ? `${number(at.canary.accepted)} accepted, ${number(at.canary.refused)} refused, of ${number(at.canary.devices)} devices` : "none"],
      ["Latest answers", at.latest_answers ? `${at.latest_rejections} of ${at.latest_answers} refused` : undefined],
      ["Last refusal", at.last_rejection && `${at.last_rejection.status} ${at.last_rejection.reason}`],
    ]));
}

async function one(target, app, id) {
  const name = encodeURIComponent(app);
  const state = h("span", {});
  const bar = h("div", {});
  const acts = h("div", { class: "push acts-row" });
  const answer = h("div", {});
  const title = h("h1", {}, "Campaign");
  const about = h("div", {});
  let last;
  const draw = (one) => {
    title.textContent = one.name || one.push.title || "Campaign";
    if (last && last !== one.state) say(`The campaign is ${one.state}`);
    const isNew = last !== one.state;
    last = one.state;
    into(state, badge(one.state));
    into(bar, progress(one) ?? "");
    if (!isNew) return;
    into(acts, ...(api.mayChange() ? buttons(one) : []));
    into(about,
      one.reason ? note("warn", `The server says: ${one.reason}`) : "",
      one.continues_at ? note("warn", "The canary is over; the rest follows ", time(one.continues_at), " unless it is paused.") : "",
      sheet("What it is", facts([
        ["Title", one.push.title], ["Text", one.push.body], ["Languages", one.push.locales.join(", ")],
        ["Start", one.local_start ? `${one.local_start.replace("T", " ")}, by each device’s clock` : time(one.start)],
        ["Rate", `${number(one.rate)} a second`],
        ["Canary", one.canary ? `${one.canary.share / 100} %, then ${one.canary.wait_seconds ? duration(one.canary.wait_seconds) : "until it is resumed"}` : "none"],
        ["Stops at", `${one.stop_percent} % refused`],
        ["Audience", Object.entries(one.audience).map(([key, value]) => `${key.replaceAll("_", " ")}: ${[value].flat().join(", ")}`).join("; ") || "all devices"],
        ["Made", time(one.created_at)], ["Began", one.started_at && time(one.started_at)], ["Ended", one.finished_at && time(one.finished_at)],
        ["Id", h("code", {}, one.id)],
      ])));
  };
  const again = async (look = api.get) => {
    const isNewest = looking(bar);
    const found = await look(["apps", app, "campaigns", id]);
    if (isNewest()) draw(found);
  };
  const act = (word, path, ask, tone) => {
    const button = h("button", {
      type: "button", class: tone, onclick: async () => {
        if (ask && !await confirm(ask, "What was not sent yet is not sent; what was sent stays.", word)) return;
        await carryOut(answer, button, async () => {
          await api.post(["apps", app, "campaigns", id, path]);
          await again();
        });
      },
    }, word);
    return button;
  };
  const buttons = (one) => over.includes(one.state) ? [] : [
    resumable.includes(one.state) ? act("Resume", "resume", null, "main") : act("Pause", "pause"),
    act("Cancel", "cancel", "Cancel this campaign?", "bad"),
  ];
  await again();
  into(target,
    h("div", { class: "head" }, h("div", { class: "crumb" }, h("a", { href: `#/campaigns/${name}` }, `Campaigns of ${app}`)), title, state, acts),
    answer, sheet("Progress", bar), about);
  let isAsked = false;
  const timer = setInterval(async () => {
    if (over.includes(last)) return clearInterval(timer);
    // A server that takes longer than the interval is not asked twice at once.
    if (isAsked) return undefined;
    isAsked = true;
    try { await again(api.watch); } catch { /* The next look may succeed. */ } finally { isAsked = false; }
    return undefined;
  }, 2000);
  return () => clearInterval(timer);
}

const words = (text) => text.split(",").map((word) => word.trim()).filter(Boolean);

/** What the form says, as the API takes it. */
function wanted(form, isDryRun) {
  const of = values(form);
  const body = { name: of.name, push: { body: of.body }, rate: Number(of.rate), stop_percent: Number(of.stop) };
  if (of.title) body.push.title = of.title;
  if (of.when === "local" && of.at) body.local_start = of.at.length === 16 ? `${of.at}:00` : of.at;
  if (of.when === "utc" && of.at) body.start = new Date(of.at).toISOString();
  if (of.when !== "now" && !of.at) throw new api.Refusal(0, "When is it to start? Give the time, or choose “at once”.");
  if (Number(of.canary) > 0) {
    body.canary = { share: Math.round(Number(of.canary) * 100) };
    if (Number(of.wait) > 0) body.canary.wait_seconds = Math.round(Number(of.wait) * 60);
  }
  const audience = {};
  for (const key of ["tags", "no_tags", "locales", "topics"]) if (words(of[key]).length) audience[key] = words(of[key]);
  if (of.version_min) audience.version_min = of.version_min;
  if (Number(of.seen) > 0) audience.seen_within_seconds = Number(of.seen) * 86_400;
  if (Object.keys(audience).length) body.audience = audience;
  if (isDryRun) body.dry_run = true;
  return body;
}

function create(target, app) {
  const name = encodeURIComponent(app);
  const answer = h("div", {});
  const counted = h("div", { "aria-live": "polite" });
  // Of what was counted: pressed twice, it starts once.
  let once;
  const start = h("button", { class: "main", type: "submit", disabled: true }, "Start the campaign");
  const count = h("button", {
    type: "button", onclick: () => {
      if (!form.reportValidity()) return;
      carryOut(answer, count, async () => {
        into(counted);
        const asked = wanted(form, true);
        const tally = await api.post(["apps", app, "campaigns"], asked);
        // It was changed while the count was under way.
        if (JSON.stringify(wanted(form, true)) !== JSON.stringify(asked)) return;
        once = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
        into(counted, note(tally.devices ? "good" : "warn",
          h("p", {}, h("strong", {}, `${number(tally.devices)} of ${number(tally.seen)} devices`), " get it",
            tally.canary ? `, ${number(tally.canary)} of them as the canary` : "", "."),
          h("p", {}, `Left out: ${omitted(tally.left_out)}.`)));
        start.disabled = false;
      });
    },
  }, "Count the devices");
  const form = h("form", {
    // What was counted is what starts.
    oninput: () => { start.disabled = true; into(counted); },
    onsubmit: (event) => {
      event.preventDefault();
      if (start.disabled) return;
      carryOut(answer, start, async () => {
        const made = await api.post(["apps", app, "campaigns"], wanted(form, false), once);
        say("The campaign is made");
        location.hash = `#/campaigns/${name}/${made.id}`;
      });
    },
  },
  h("fieldset", {}, h("legend", {}, "The push"), h("div", { class: "fields" },
    field("name", "Name", { hint: "For operators only." }), field("title", "Title"),
    field("body", "Text", { required: true, wide: true, lines: 3 }))),
  h("fieldset", {}, h("legend", {}, "When, and how fast"), h("div", { class: "fields" },
    field("when", "Start", { choices: [["now", "at once"], ["utc", "at a time"], ["local", "by each device’s clock"]] }),
    field("at", "Time", { type: "datetime-local", hint: "By your own clock, or by each device’s." }),
    field("rate", "Pushes a second", { type: "number", min: 1, max: 100000, value: 500, required: true }))),
  h("fieldset", {}, h("legend", {}, "Canary"), h("div", { class: "fields" },
    field("canary", "Share first, %", { type: "number", min: 0, max: 99, value: 5, hint: "0: none. This share gets it first." }),
    field("wait", "Then wait, min", { type: "number", min: 0, value: 10, hint: "0: until somebody resumes it." }),
    field("stop", "Stop at, % refused", { type: "number", min: 0, max: 100, value: 25, hint: "It holds itself there." }))),
  h("fieldset", {}, h("legend", {}, "Audience"), h("div", { class: "fields" },
    field("tags", "With all tags", { hint: "Words with commas between; empty: everybody." }), field("no_tags", "Without tags"),
    field("locales", "Languages", { placeholder: "de, fr" }), field("topics", "Bundle ids"),
    field("version_min", "App version from"), field("seen", "Seen within, d", { type: "number", min: 0 }))),
  counted, answer, h("div", { class: "acts-row" }, count, start,
    h("span", { class: "soft" }, "Count first: what was counted is what starts.")));
  into(target,
    h("div", { class: "head" }, h("div", { class: "crumb" }, h("a", { href: `#/campaigns/${name}` }, `Campaigns of ${app}`)), h("h1", {}, "New campaign")),
    sheet(null, form));
}
