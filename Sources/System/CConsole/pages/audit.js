// Who changed what; and who may in.

import * as api from "./api.js";
import { h, into, path, table, time, sheet, badge, carryOut, confirm, say } from "./dom.js";

export async function show(target) {
  const [first, { tokens }] = await Promise.all([api.get(["audit"], { limit: 50 }), api.get(["console", "tokens"])]);
  let changes = first.changes;
  let next = first.next;
  const place = h("div", {});
  const answer = h("div", {});
  const more = h("button", {
    type: "button", onclick: () => carryOut(answer, more, async () => {
      const page = await api.get(["audit"], { limit: 50, cursor: next });
      changes = changes.concat(page.changes);
      next = page.next;
      draw();
      say(`${page.changes.length} more are shown`);
    }),
  }, "Older changes");
  const draw = () => {
    into(place, table("Changes, newest first", [
      { name: "At", of: (one) => time(one.at) },
      { name: "Who", of: (one) => [h("span", { class: "name" }, one.actor), one.address && h("div", { class: "soft" }, one.address)] },
      { name: "What", head: true, of: (one) => path(one.action) },
      { name: "With", of: (one) => one.detail ? h("span", { class: "mono soft" }, one.detail) : "–" },
      { name: "Answer", of: (one) => one.status ? badge(one.status < 300 ? "done" : `refused ${one.status}`) : badge(one.lost ? "not known" : "under way") },
    ], changes, "Nothing was changed yet."));
    more.hidden = !next;
  };
  draw();
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Audit")),
    sheet("Changes", h("p", { class: "soft" }, "Each is written down before it is carried out; secrets are left out."), place, answer,
      h("div", { class: "acts-row" }, more)),
    access(tokens));
}

function access(tokens) {
  const answer = h("div", {});
  const me = api.current().token;
  const revoke = (token) => {
    const button = h("button", {
      type: "button", class: "bad", "aria-label": `Revoke console token ${token.id}`, onclick: async () => {
        const own = token.id === me ? " It is your own: you are logged out." : "";
        if (!await confirm(`Revoke ${token.id}?`, `Sessions that it opened end at once.${own}`, "Revoke it")) return;
        await carryOut(answer, button, async () => {
          await api.remove(["console", "tokens", token.id]);
          say("Revoked");
          window.dispatchEvent(new Event("console-again"));
        });
      },
    }, "Revoke");
    return button;
  };
  return sheet("Who may in", table("Console tokens", [
    { name: "Token", head: true, of: (token) => [h("code", {}, token.id), token.id === me ? " (yours)" : ""] },
    { name: "Label", of: (token) => (token.label ? h("span", { class: "name" }, token.label) : "–") },
    { name: "Role", of: (token) => badge(token.role) },
    { name: "Until", of: (token) => time(token.expires_at) },
    ...(api.mayChange() ? [{ name: "Actions", acts: true, of: revoke }] : []),
  ], tokens, "None."), answer,
  h("p", { class: "soft" }, "New ones are made on the server with ", h("code", {}, "rouse console token"), ", not here."));
}
