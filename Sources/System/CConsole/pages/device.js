// Devices of a user, one of them, and why it was pushed to for a message, as a picture.

import * as api from "./api.js";
import { h, into, table, time, sheet, facts, field, values, note, carryOut, confirm, badge, duration, number, say } from "./dom.js";
import { timeline, between } from "./charts.js";

/** What explain's reasons say, for people. */
const words = {
  "on-its-way": ["It is on its way", "calm"], "not-recipient": ["Not a recipient", "soft"], "own-message": ["Their own message", "soft"],
  "deleted": ["The message was deleted", "soft"], "no-push-text": ["It has no push text", "soft"], "muted": ["The conversation is muted", "soft"],
  "read-already": ["Read on another device before", "good"], "sender-blocked": ["The sender is blocked", "soft"], "passive": ["It is passive: it may not alert", "soft"],
  "read": ["Read", "good"], "user-suspended": ["The user is suspended", "bad"], "app-suspended": ["The app is suspended", "bad"], "no-device": ["The user has no device", "soft"],
  "applied": ["Stored on the device", "good"], "applied-ahead": ["Stored, ahead of others", "good"], "session": ["It was connected", "good"],
  "session-expected": ["Its connection was expected back", "calm"], "tokenless": ["It has no push token", "bad"], "no-credential": ["No push credential fits", "bad"],
  "presumed-gone": ["Presumed gone", "warn"], "nothing-owed": ["Nothing is owed", "soft"],
  "wake-due": ["A silent wake is due", "calm"], "wake-sending": ["A silent wake is being sent", "calm"], "wake-waiting": ["A silent wake waits", "calm"],
  "wake-pending": ["Woken silently; its grace runs", "calm"], "wake-synced": ["Woken silently, and it synced", "good"],
  "wake-connected-not-synced": ["Woken; it connected, but did not sync", "warn"], "wake-late": ["Woken; it synced late", "warn"], "wake-superseded": ["The wake was overtaken", "soft"],
  "wake-expired": ["The wake expired", "warn"], "wake-rejected": ["APNs refused the wake", "bad"], "wake-no-show": ["Woken; it did not come", "bad"],
  "alert-urgent": ["Alert, for it is urgent", "warn"], "alert-unreachable": ["Alert, for it is unreachable", "warn"], "alert-refresh-off": ["Alert, for background refresh is off", "warn"],
  "alert-presumed-gone": ["Alert, for it is presumed gone", "warn"], "alert-no-budget": ["Alert, for its silent budget is spent", "warn"], "alert-wake-missed": ["Alert, for it missed the wake", "warn"],
  "alert-not-synced": ["Alert, for it did not sync", "warn"], "alert-wake-rejected": ["Alert, for the wake was refused", "warn"], "alert-timed": ["Alert at its own time", "calm"],
  "alert-doubted": ["Alert, for it often misses wakes", "warn"], "alert-queued": ["The alert is queued", "calm"], "alert-sending": ["The alert is being sent", "calm"],
  "alert-sent": ["The alert was sent", "good"], "alert-sent-with-newer": ["A newer alert stands for it", "good"], "alert-counted": ["Counted in another alert", "good"],
  "alert-cancelled": ["The alert was not needed any more", "good"], "alert-delayed": ["The alert waits for its hour", "calm"], "alert-expired": ["The alert expired", "warn"],
  "alert-rejected": ["APNs refused the alert", "bad"],
};

const outcomes = { synced: "good", accepted: "good", pending: "calm", late: "warn", "connected-not-synced": "warn", "no-show": "bad", rejected: "bad", expired: "warn" };

export async function show(target, [app, kind, id, ...rest]) {
  const { apps } = await api.get(["apps"]);
  const names = apps.map((one) => one.app);
  if (!names.length) {
    into(target, h("div", { class: "head" }, h("h1", {}, "Devices")), sheet(null, h("p", { class: "empty" }, "There is no app yet.")));
    return;
  }
  const chosen = app || names[0];
  if (kind === "device" && id) return device(target, chosen, id);
  if (kind === "message" && id) return message(target, chosen, id, rest[0]);
  const found = h("div", {});
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Devices")),
    h("div", { class: "grid" }, userForm(names, chosen, kind === "user" ? id : "", found), messageForm(names, chosen)),
    found);
  if (kind === "user" && id) await list(found, chosen, id);
}

const chooser = (names, chosen) => field("app", "App", { choices: names.map((name) => [name, name]), value: chosen });

function userForm(names, chosen, user) {
  const form = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      const { app, user } = values(form);
      location.hash = `#/devices/${encodeURIComponent(app)}/user/${encodeURIComponent(user)}`;
    },
  }, h("div", { class: "fields" }, chooser(names, chosen), field("user", "User", { required: true, value: user })),
  h("div", { class: "acts-row" }, h("button", { class: "main", type: "submit" }, "Show the devices")));
  return sheet("Of a user", form);
}

function messageForm(names, chosen) {
  const form = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      const { app, message, user } = values(form);
      location.hash = `#/devices/${encodeURIComponent(app)}/message/${encodeURIComponent(message.trim())}` + (user ? `/${encodeURIComponent(user)}` : "");
    },
  }, h("div", { class: "fields" }, chooser(names, chosen),
    field("message", "Message or announcement", { required: true, hint: "Its id, 36 characters." }),
    field("user", "User", { hint: "An announcement needs one." })),
  h("div", { class: "acts-row" }, h("button", { class: "main", type: "submit" }, "Explain")));
  return sheet("Why was a message pushed, or not?", form);
}

async function list(place, app, user) {
  const { devices } = await api.get(["apps", app, "users", user, "devices"]);
  into(place, sheet(`Devices of ${user}`, table(`Devices of ${user}`, [
    { name: "Device", head: true, of: (one) => h("a", { href: `#/devices/${encodeURIComponent(app)}/device/${one.id}` }, h("code", {}, one.id)) },
    { name: "Reachability", of: (one) => badge(one.reachability) },
    { name: "Behind", numeric: true, of: (one) => number(one.feed.head - one.feed.applied) },
    { name: "Client", of: (one) => `${one.client.name} ${one.client.version}`.trim() || "–" },
    { name: "Last seen", of: (one) => time(one.last_seen_at) },
  ], devices, "This user has no device here.")));
}

async function device(target, app, id) {
  const one = await api.get(["apps", app, "devices", id]);
  const { wakes } = await api.get(["apps", app, "devices", id, "wakes"]);
  const answer = h("div", {});
  const name = encodeURIComponent(app);
  const remove = h("button", {
    type: "button", class: "bad", onclick: async () => {
      if (!await confirm("Remove this device?", "Its sessions end and its push token is forgotten. The installation may log in anew.", "Remove it")) return;
      await carryOut(answer, remove, async () => {
        await api.remove(["apps", app, "devices", id]);
        say("Removed");
        location.hash = `#/devices/${name}/user/${encodeURIComponent(one.user)}`;
      });
    },
  }, "Remove");
  into(target,
    h("div", { class: "head" },
      h("div", { class: "crumb" }, h("a", { href: `#/users/${name}/user/${encodeURIComponent(one.user)}` }, `User ${one.user}`)),
      h("h1", {}, "Device"), badge(one.reachability), one.is_presumed_gone && badge("gone"),
      api.mayChange() && h("div", { class: "push" }, remove)),
    answer,
    h("div", { class: "grid" },
      sheet("What it is", facts([
        ["Device", h("code", {}, one.id)], ["User", one.user], ["App", app],
        ["Client", `${one.client.name} ${one.client.version}`.trim()], ["Last seen", time(one.last_seen_at)], ["Created", time(one.created_at)],
        ["Language", one.place.locale], ["Time zone", one.place.time_zone],
        ["Push token", one.push_token.is_held ? `${one.push_token.environment}, ${one.push_token.topic}` : "none"],
        ["Sessions", one.sessions.length ? one.sessions.map((session) => session.expected_until ? `${session.role}, expected back` : session.role).join(", ") : "none"],
      ])),
      sheet("How it is woken", facts([
        ["Feed", `${number(one.feed.applied)} of ${number(one.feed.head)} stored`],
        ["Grace", `${duration(one.grace_seconds)} (${one.grace_source})`], ["Silent budget", number(one.silent_budget)],
        ["Notifications", one.settings.notifications], ["Background refresh", one.settings.background_refresh], ["Low power", one.settings.low_power],
      ]))),
    sheet("Its life, newest first", wakes.length ? timeline("Pushes to this device, newest first", wakes.map(moment))
      : h("p", { class: "empty" }, "It was never pushed to, or not for long.")),
    sheet("Pushes", table("Pushes to this device", [
      { name: "Queued", head: true, of: (wake) => time(wake.queued_at) },
      { name: "Kind", of: (wake) => wake.kind },
      { name: "Outcome", of: (wake) => badge(wake.outcome) },
      { name: "APNs", of: (wake) => wake.status ? `${wake.status} ${wake.reason ?? ""}` : wake.accepted_at ? "accepted" : "–" },
      { name: "Message", of: (wake) => h("a", { href: `#/devices/${name}/message/${wake.message_id}/${encodeURIComponent(one.user)}` }, h("code", {}, wake.message_id.slice(0, 13) + "…")) },
    ], wakes, "None.")));
}

function moment(wake) {
  const kinds = { wake: "Silent wake", silent: "Silent wake", alert: "Alert", badge: "Badge", campaign: "Campaign", probe: "Probe" };
  const steps = [];
  const after = (text, name) => { if (text) steps.push(`${name} ${between(Math.max(0, new Date(text) - new Date(wake.sent_at)))} later`); };
  after(wake.accepted_at, "APNs took it");
  after(wake.connected_at, "it connected");
  after(wake.synced_at, "it had synced");
  if (wake.reason) steps.push(`APNs: ${wake.status} ${wake.reason}`);
  return {
    at: wake.sent_at, title: `${kinds[wake.kind] ?? wake.kind}: ${wake.outcome}`, text: steps.join(", "),
    tone: outcomes[wake.outcome] ?? "soft",
  };
}

async function message(target, app, id, user) {
  const path = ["apps", app, ...(user ? ["users", user] : []), "messages", id, "explain"];
  const found = await api.get(path);
  const name = encodeURIComponent(app);
  into(target,
    h("div", { class: "head" },
      h("div", { class: "crumb" }, h("a", { href: `#/devices/${name}` }, "Devices")),
      h("h1", {}, "Why it was pushed, or not"), badge(found.urgency)),
    sheet("The message", facts([["Message", h("code", {}, found.message)], ["Sent", time(found.sent_at)],
      ["Conversation", found.conversation_id ? h("code", {}, found.conversation_id) : "none: an announcement"]]),
    found.is_cut && note("warn", "There are more recipients than are shown: name one.")),
    found.subjects.map((subject) => h("section", { class: "sheet" },
      h("h2", {}, subject.user, subject.device && [" – ", h("a", { href: `#/devices/${name}/device/${subject.device}` }, h("code", {}, subject.device))]),
      timeline(`What was decided for ${subject.user}`, subject.steps.map((step) => {
        const [title, tone] = words[step.reason] ?? [step.reason, "soft"];
        const parts = [];
        if (step.until) parts.push(`until ${new Date(step.until).toLocaleString()}`);
        if (step.status) parts.push(`APNs: ${step.status} ${step.answer ?? ""}`);
        return { at: step.at, until: step.until, title, text: parts.join(", "), tone };
      })))));
}
