// The apps: a list; and one of them with its policy, keys and limits.

import * as api from "./api.js";
import { h, into, looking, table, time, sheet, facts, field, values, note, carryOut, confirm, badge, duration, say } from "./dom.js";

export async function show(target, [name]) {
  if (name) return one(target, name);
  const { apps } = await api.get(["apps"]);
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Apps")),
    sheet(null, table("Apps", [
      { name: "App", head: true, of: (app) => h("a", { href: `#/apps/${encodeURIComponent(app.app)}` }, app.app) },
      { name: "State", of: (app) => badge(app.is_suspended ? "suspended" : "active") },
      { name: "API keys", numeric: true, of: (app) => app.api_keys.length },
      { name: "Issuer keys", numeric: true, of: (app) => app.issuer_keys.length },
      { name: "Push credentials", numeric: true, of: (app) => app.push.length },
      { name: "Created", of: (app) => time(app.created_at) },
    ], apps, "There is no app yet.")),
    api.mayChange() && create());
}

function create() {
  const answer = h("div", {});
  const button = h("button", { class: "main", type: "submit" }, "Make the app");
  const form = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      carryOut(answer, button, async () => {
        const { app } = values(form);
        await api.post(["apps"], { app });
        say(`The app ${app} is made`);
        location.hash = `#/apps/${encodeURIComponent(app)}`;
      });
    },
  }, h("div", { class: "fields" }, field("app", "Name", { required: true, hint: "Backends and devices name the app by it; it cannot be changed." })),
  answer, h("div", { class: "acts-row" }, button));
  return sheet("A new app", form);
}

// Name, label, what it means; a unit other than a plain number is in the label.
const policy = [
  ["The same for all devices", [
    ["grace_seconds", "Grace, s", "How long a silent wake may go unanswered."],
    ["silent_budget", "Silent budget", "Silent pushes to one device in a window."],
    ["silent_window_seconds", "Window, s", "What the budget looks back."],
    ["silent_spacing_seconds", "Spacing, s", "Between two silent pushes to one device."],
    ["alert_expiration_seconds", "Alert expiration, s", "How long APNs may store an alert."],
  ]],
  ["Learned from each device", [
    ["grace_quantile", "Grace quantile, %", "0: the same grace for all."],
    ["grace_min_seconds", "Least grace, s"], ["grace_max_seconds", "Most grace, s"],
    ["grace_samples", "Samples", "Wakes from which on a device has its own."],
    ["silent_budget_min", "Least budget"], ["silent_budget_max", "Most budget", "0: the same budget for all."],
    ["demotion_misses", "Demotion: misses"], ["demotion_of", "Demotion: of wakes"],
    ["doubt_misses", "Doubt: misses", "0: nobody is doubted."], ["doubt_of", "Doubt: of wakes"],
    ["doubt_retry_hours", "Doubt ends, h"], ["gone_after_days", "Gone after, d", "0: never."],
  ]],
  ["Limits", [
    ["session_token_seconds", "Session token, s", "How long a device may stay away without a new identity token."],
    ["receipt_participants_max", "Receipts up to", "Participants above which no receipts, delivered or read, are written."],
  ]],
];

/** @param maker: makes API keys, on every drawing of the page. */
async function one(target, name, maker = keyMaker(name)) {
  const isNewest = looking(target);
  const app = await api.get(["apps", name]);
  if (!isNewest()) return;
  const again = async () => { await one(target, name, maker); };
  maker.again = again;
  const answer = h("div", {});
  into(target,
    h("div", { class: "head" },
      h("div", { class: "crumb" }, h("a", { href: "#/apps" }, "Apps")),
      h("h1", {}, app.app), badge(app.is_suspended ? "suspended" : "active"),
      api.mayChange() && h("div", { class: "push acts-row" }, suspend(app, answer, again))),
    answer,
    h("div", { class: "grid" },
      h("section", { class: "sheet" }, h("h2", {}, "Policy"),
        policy.map(([title, fields]) => [h("h3", {}, title), facts(fields.map((field) => shown(app, field))
          .concat(title !== "Limits" ? [] : [["Language", app.locale || "none"], ["Event kinds", app.event_kinds.join(", ") || "any"], ["Created", time(app.created_at)]]))])),
      h("div", {}, keys(app, again, maker), credentials(app), links(app))),
    api.mayChange() && change(app, again));
}

const units = { s: duration, h: (value) => duration(value * 3600), d: (value) => duration(value * 86400), "%": (value) => `${value} %` };

/** A field of the policy as name and value: with its unit, and in words where 0 means something else. */
function shown(app, [key, label, hint]) {
  const [name, unit] = label.split(", ");
  if (app[key] === 0 && hint?.startsWith("0: ")) return [name, hint.slice(3).replace(/\.$/, "")];
  return [name, (units[unit] ?? String)(app[key])];
}

function suspend(app, answer, again) {
  const word = app.is_suspended ? "Resume" : "Suspend";
  const button = h("button", {
    type: "button", class: app.is_suspended ? undefined : "bad", onclick: async () => {
      if (!app.is_suspended && !await confirm(`Suspend ${app.app}?`,
        "Every device of the app is disconnected, its backend is refused, and no push leaves, until it is resumed.", "Suspend it")) return;
      await carryOut(answer, button, async () => {
        await api.post(["apps", app.app, app.is_suspended ? "resume" : "suspend"]);
        say(app.is_suspended ? "Resumed" : "Suspended");
        await again();
      });
    },
  }, word);
  return button;
}

/**
 * The button that makes an API key, and the secrets it was given. It is one for all drawings of the
 * page: while one key is on its way no press asks for another, and each secret stays in sight.
 */
function keyMaker(name) {
  const maker = { answer: h("div", {}), secrets: h("div", {}) };
  const make = () => carryOut(maker.answer, maker.button, async () => {
    const key = await api.post(["apps", name, "api-keys"]);
    const box = note("good", h("p", {}, `API key ${key.id}. Copy it now: it is shown this once.`), h("code", { class: "secret" }, key.secret));
    box.dataset.key = key.id;
    // Also where the page cannot be drawn anew: it is shown once.
    await maker.again().finally(() => maker.secrets.append(box));
    box.focus();
  });
  // The second click of a double one means no second key.
  maker.button = h("button", { type: "button", onclick: (event) => event.detail > 1 || make() }, "Make an API key");
  return maker;
}

function keys(app, again, { button, answer: made, secrets }) {
  const answer = h("div", {});
  const revoke = (key) => {
    const button = h("button", {
      type: "button", class: "bad", "aria-label": `Revoke API key ${key.id}`, onclick: async () => {
        if (!await confirm(`Revoke ${key.id}?`, "A backend that uses this key is refused from then on.", "Revoke it")) return;
        await carryOut(answer, button, async () => {
          await api.remove(["apps", app.app, "api-keys", key.id]);
          say("Revoked");
          [...secrets.children].find((box) => box.dataset.key === key.id)?.remove();
          await again();
        });
      },
    }, "Revoke");
    return button;
  };
  return h("section", { class: "sheet", "data-place": "keys" }, h("h2", {}, "API keys"),
    table("API keys", [
      { name: "Key", head: true, of: (key) => h("code", {}, key.id) },
      { name: "Created", of: (key) => time(key.created_at) },
      ...(api.mayChange() ? [{ name: "Actions", acts: true, of: revoke }] : []),
    ], app.api_keys, "No backend may publish yet."),
    answer, made,
    api.mayChange() && h("div", { class: "acts-row" }, button), secrets,
    h("h3", {}, "Issuer keys"),
    table("Issuer keys", [
      { name: "Key id", head: true, of: (key) => h("code", {}, key.kid) },
      { name: "Algorithm", of: (key) => key.algorithm },
      { name: "Added", of: (key) => time(key.added_at) },
    ], app.issuer_keys, "No key signs identity tokens: no device can log in."));
}

function credentials(app) {
  return sheet("Push credentials", table("Push credentials", [
    { name: "Name", head: true, of: (one) => one.name },
    { name: "Environment", of: (one) => badge(one.environment) },
    { name: "Kind", of: (one) => one.kind },
    { name: "Topics", of: (one) => h("span", { class: "name" }, one.topics.join(", ")) },
  ], app.push, "None: no push leaves."), h("p", {}, h("a", { href: "#/push" }, "How they do, and how to change them")));
}

function links(app) {
  const name = encodeURIComponent(app.app);
  return sheet("More", h("p", {},
    h("a", { href: `#/users/${name}` }, "Users"), " · ",
    h("a", { href: `#/devices/${name}` }, "Devices"), " · ",
    h("a", { href: `#/campaigns/${name}` }, "Campaigns"), " · ",
    h("a", { href: `#/webhooks/${name}` }, "Webhooks")));
}

function kinds(text) {
  return text.split(",").map((name) => name.trim()).filter((name) => name);
}

function change(app, again) {
  const answer = h("div", {});
  const button = h("button", { class: "main", type: "submit" }, "Change the policy");
  const form = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      carryOut(answer, button, async () => {
        const changed = {};
        for (const [key, text] of Object.entries(values(form))) {
          const value = key === "locale" ? text : key === "event_kinds" ? kinds(text) : Number(text);
          if (String(value) !== String(app[key])) changed[key] = value;
        }
        if (!Object.keys(changed).length) throw new api.Refusal(0, "Nothing is different.");
        await api.patch(["apps", app.app], changed);
        await again();
        say("The policy is changed");
      });
    },
  },
  policy.map(([title, fields]) => h("fieldset", {}, h("legend", {}, title), h("div", { class: "fields" },
    fields.map(([key, label, hint]) => field(key, label, { type: "number", min: 0, value: app[key], hint, required: true })),
    title === "Limits" && field("locale", "Language", { value: app.locale, hint: "Of push texts for devices that speak none of theirs; empty: none." }),
    title === "Limits" && field("event_kinds", "Event kinds", { value: app.event_kinds.join(","), hint: "What a publish may name as its event, with commas between; empty: any." })))),
  answer, h("div", { class: "acts-row" }, button));
  return h("details", { class: "sheet" }, h("summary", {}, "Change the policy"), form);
}
