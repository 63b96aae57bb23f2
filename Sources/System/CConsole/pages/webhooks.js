// Webhooks of an app: how they do; made, switched off and on, removed.

import * as api from "./api.js";
import { h, into, looking, table, time, sheet, facts, field, values, note, carryOut, confirm, badge, number, say } from "./dom.js";
import { appTabs } from "./campaigns.js";

const kinds = [
  "message.created", "message.edited", "message.deleted", "message.delivered", "message.read", "conversation.created",
  "conversation.participants-changed", "conversation.metadata-changed", "conversation.deleted",
  "device.token-dropped", "user.deleted",
];

export async function show(target, [app]) {
  const { apps } = await api.get(["apps"]);
  const names = apps.map((one) => one.app);
  if (!names.length) {
    into(target, h("div", { class: "head" }, h("h1", {}, "Webhooks")), sheet(null, h("p", { class: "empty" }, "There is no app yet.")));
    return;
  }
  await list(target, names, app || names[0], h("div", {}));
}

/**
 * @param told: where secrets stand that are shown once, on every drawing of the page.
 * @param said: one that was made now.
 */
async function list(target, names, app, told, said) {
  const isNewest = looking(target);
  // Also where this look fails: it is shown once.
  const { webhooks } = await api.get(["apps", app, "webhooks"]).finally(() => told.append(said ?? ""));
  if (!isNewest()) return;
  const again = (box) => list(target, names, app, told, box);
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Webhooks"), appTabs(names, app, "webhooks")),
    told,
    webhooks.length ? h("div", { class: "grid" }, webhooks.map((one) => card(app, one, again))) : sheet(null, h("p", { class: "empty" }, "This app has none.")),
    api.mayChange() ? create(app, again) : "");
  said?.focus();
}

function card(app, one, again) {
  const answer = h("div", {});
  const path = ["apps", app, "webhooks", one.id];
  const act = (word, tone, work) => {
    const button = h("button", { type: "button", class: tone, "aria-label": `${word}: ${one.url}`, onclick: () => work(button) }, word);
    return button;
  };
  const turn = act(one.state === "active" ? "Switch off" : "Switch on", null, (button) => carryOut(answer, button, async () => {
    await api.patch(path, { active: one.state !== "active" });
    await again();
    say(one.state === "active" ? "Switched off" : "Switched on");
  }));
  const rotate = one.secret_count === 1
    ? act("New secret", null, (button) => carryOut(answer, button, async () => {
      const made = await api.post([...path, "secrets"], {});
      await again(note("good", h("p", {}, "Deliveries are signed with both secrets now. The new one, shown this once:"), h("code", { class: "secret" }, made.secret)));
    }))
    : act("End the old secret", null, (button) => carryOut(answer, button, async () => {
      await api.remove([...path, "secrets", "second"]);
      await again();
    }));
  // What came of it stands in the card a moment later: the receiver is asked then.
  const test = one.state === "active" && act("Send a test", null, (button) => carryOut(answer, button, async () => {
    await api.post([...path, "test"]);
    await again();
    say("A test is on its way");
  }));
  const remove = act("Remove", "bad", async (button) => {
    if (!await confirm("Remove this webhook?", `${one.url} is told nothing any more.`, "Remove it")) return;
    await carryOut(answer, button, async () => {
      await api.remove(path);
      await again();
      say("Removed");
    });
  });
  return h("section", { class: "sheet" }, h("h2", {}, h("span", { class: "mono" }, one.url), " ", badge(one.state)),
    one.reason && note("bad", one.reason),
    facts([
      ["Tells", one.events.length === kinds.length ? "everything" : one.events.join(", ")], ["In this state since", time(one.state_since)],
      ["Failures in a row", number(one.attempts)], ["Failing since", one.failing_since && time(one.failing_since)],
      ["Last answer", [one.last_status, one.last_error].filter(Boolean).join(" ")], ["Last success", time(one.last_success_at)],
      ["Events lost", one.dropped ? number(one.dropped) : undefined], ["Secrets", number(one.secret_count)], ["Id", h("code", {}, one.id)],
    ]),
    answer, api.mayChange() && h("div", { class: "acts-row" }, turn, test, rotate, remove));
}

function create(app, again) {
  const answer = h("div", {});
  const button = h("button", { class: "main", type: "submit" }, "Add the webhook");
  const form = h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      carryOut(answer, button, async () => {
        const body = { url: values(form).url };
        const chosen = new FormData(form).getAll("events");
        if (chosen.length && chosen.length < kinds.length) body.events = chosen;
        const made = await api.post(["apps", app, "webhooks"], body);
        await again(note("good", h("p", {}, "Added. The secret that signs its deliveries, shown this once:"), h("code", { class: "secret" }, made.secret)));
      });
    },
  }, h("div", { class: "fields" }, field("url", "Address", { type: "url", required: true, wide: true, placeholder: "https://shop.example/rouse" })),
  h("fieldset", {}, h("legend", {}, "What to tell; none chosen: everything"), h("div", { class: "fields" },
    kinds.map((kind) => h("label", {}, h("input", { type: "checkbox", name: "events", value: kind }), kind)))),
  answer, h("div", { class: "acts-row" }, button));
  return sheet("A new webhook", form);
}
