// Users of an app: found by name; how one stands, and the way to the devices.

import * as api from "./api.js";
import { h, into, looking, table, time, sheet, facts, field, values, badge, number, note, carryOut, confirm, say } from "./dom.js";
import { appTabs } from "./campaigns.js";

const link = (app, ...rest) => "#/" + ["users", app, ...rest].map(encodeURIComponent).join("/");

export async function show(target, [app, kind, name]) {
  const { apps } = await api.get(["apps"]);
  const names = apps.map((one) => one.app);
  if (!names.length) {
    into(target, h("div", { class: "head" }, h("h1", {}, "Users")), sheet(null, h("p", { class: "empty" }, "There is no app yet.")));
    return;
  }
  const chosen = app || names[0];
  if (kind === "user" && name) return one(target, chosen, name);
  await list(target, names, chosen, kind === "find" ? name ?? "" : "");
}

async function list(target, names, app, prefix) {
  const path = ["apps", app, "users"];
  const query = (more) => ({ limit: 50, ...(prefix ? { prefix } : {}), ...more });
  const first = await api.get(path, query());
  let users = first.users;
  let next = first.next;
  const place = h("div", {});
  const answer = h("div", {});
  const more = h("button", {
    type: "button", onclick: () => carryOut(answer, more, async () => {
      const page = await api.get(path, query({ cursor: next }));
      users = users.concat(page.users);
      next = page.next;
      draw();
      say(`${page.users.length} more are shown`);
    }),
  }, "More users");
  const draw = () => {
    into(place, table("Users", [
      { name: "User", head: true, of: (user) => h("a", { href: link(app, "user", user.user) }, user.user) },
      { name: "State", of: (user) => badge(user.is_suspended ? "suspended" : "active") },
      { name: "Changes so far", numeric: true, of: (user) => number(user.head) },
      { name: "Known since", of: (user) => time(user.created_at) },
    ], users, prefix ? "No user’s name begins like that." : "The app has no user yet."));
    more.hidden = !next;
  };
  draw();
  const form = h("form", {
    role: "search", onsubmit: (event) => {
      event.preventDefault();
      const begin = values(form).prefix;
      location.hash = begin ? link(app, "find", begin) : link(app);
    },
  }, h("div", { class: "fields" }, field("prefix", "Name, or how it begins", { value: prefix, hint: "As the backend names the user; capital letters count." })),
  h("div", { class: "acts-row" }, h("button", { class: "main", type: "submit" }, "Find")));
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Users"), appTabs(names, app, "users")),
    sheet(null, form), sheet(prefix ? `Users whose names begin with ${prefix}` : "Users, by name", place, answer, h("div", { class: "acts-row" }, more)));
}

async function one(target, app, name) {
  const path = ["apps", app, "users", name];
  const isNewest = looking(target);
  const [user, { devices }] = await Promise.all([api.get(path), api.get([...path, "devices"])]);
  if (!isNewest()) return;
  const answer = h("div", {});
  const again = () => one(target, app, name);
  const most = user.is_cut ? " at least" : "";
  into(target,
    h("div", { class: "head" },
      h("div", { class: "crumb" }, h("a", { href: link(app) }, `Users of ${app}`)),
      h("h1", {}, user.user), badge(user.is_suspended ? "suspended" : "active"),
      api.mayChange() && h("div", { class: "push acts-row" }, suspend(path, user, answer, again), revoke(path, user, answer, again))),
    answer,
    h("div", { class: "grid" },
      sheet("How it stands", facts([
        ["Devices logged in", number(user.device_count)], ["Unread", number(user.unread)],
        ["Changes so far", number(user.feed.head)], ["Known since", time(user.created_at)],
      ])),
      sheet("Conversations and settings", facts([
        ["Conversations", number(user.conversation_count) + most], ["Muted of these", number(user.muted_count) + most],
        ["Users blocked", number(user.blocked_count) + most],
      ]))),
    sheet("Devices", table(`Devices of ${user.user}`, [
      { name: "Device", head: true, of: (device) => h("a", { href: `#/devices/${encodeURIComponent(app)}/device/${device.id}` }, h("code", {}, device.id)) },
      { name: "Reachability", of: (device) => badge(device.reachability) },
      { name: "Behind", numeric: true, of: (device) => number(device.feed.head - device.feed.applied) },
      { name: "Notifications", of: (device) => device.settings.notifications },
      { name: "Background refresh", of: (device) => device.settings.background_refresh },
      { name: "Push token", of: (device) => device.push_token.is_held ? device.push_token.environment : "none" },
      { name: "Client", of: (device) => `${device.client.name} ${device.client.version}`.trim() || "–" },
      { name: "Last seen", of: (device) => time(device.last_seen_at) },
    ], devices, "This user has no device here.")));
}

function suspend(path, user, answer, again) {
  const word = user.is_suspended ? "Resume" : "Suspend";
  const button = h("button", {
    type: "button", class: user.is_suspended ? undefined : "bad", onclick: async () => {
      if (!user.is_suspended && !await confirm(`Suspend ${user.user}?`,
        "The user’s devices are disconnected and let in no more, and no push leaves to them, until the user is resumed.", "Suspend the user")) return;
      await carryOut(answer, button, async () => {
        await api.post([...path, user.is_suspended ? "resume" : "suspend"]);
        await again();
        say(user.is_suspended ? "Resumed" : "Suspended");
      });
    },
  }, word);
  return button;
}

function revoke(path, user, answer, again) {
  const button = h("button", {
    type: "button", class: "bad", onclick: async () => {
      if (!await confirm(`Log ${user.user} out everywhere?`,
        "Every device of the user is disconnected, and needs a new identity token of the backend.", "Log out everywhere")) return;
      await carryOut(answer, button, async () => {
        await api.post([...path, "sessions", "revoke"]);
        await again();
        const box = note("good", "Every device is logged out.");
        target(box);
        say("Every device is logged out");
      });
    },
  }, "Log out everywhere");
  // The page was drawn anew.
  const target = (box) => {
    document.querySelector("main .head")?.after(box);
    box.focus();
  };
  return button;
}
