// Push credentials: how they do now, what the doctor says of them, and how they change.

import * as api from "./api.js";
import { h, into, looking, table, sheet, facts, field, values, badge, note, carryOut, confirm, duration, number, say, time } from "./dom.js";

export const show = (target) => draw(target, h("div", {}));

/**
 * @param told: where what was done stands, on every drawing of the page.
 * @param said: what was done now.
 */
async function draw(target, told, said) {
  const isNewest = looking(target);
  const [{ apps }, { credentials }] = await Promise.all([api.get(["apps"]), api.get(["push"])]);
  if (said) into(told, said);
  if (!isNewest()) return;
  const all = apps.flatMap((app) => app.push.map((one) => ({
    ...one, app: app.app,
    now: credentials.find((status) => status.app === app.app && status.environment === one.environment && status.name === one.name),
  })));
  const again = (box) => draw(target, told, box);
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Push credentials")),
    told,
    all.length ? h("div", { class: "grid" }, all.map((one) => card(one, again)))
      : sheet(null, h("p", { class: "empty" }, "No app has one: no push leaves.")),
    api.mayChange() && apps.length > 0 && add(apps, all, again));
  said?.focus();
}

const meanings = {
  tripped: "APNs calls its tokens wrong all at once; none of them is dropped until it is known why.",
  paused: "APNs refuses it, or slows it down.",
  unreachable: "Pushes of a class cannot be sent: its connections end before they have had an answer.",
};

const place = (one) => ["apps", one.app, "push", one.environment, one.name];

/** What the doctor found, as a note. */
async function examined(one) {
  const { credentials } = await api.post([...place(one), "check"]);
  const [found] = credentials;
  const words = found.is_good ? "The doctor finds it good" : "The doctor finds it wrong";
  say(words);
  return note(found.is_good ? "good" : "bad", h("h3", {}, words),
    facts(found.findings.map((finding) => [
      h("span", {}, badge(finding.is_good ? "ok" : "wrong"), ` ${finding.check}`), finding.text])));
}

function card(one, again) {
  const answer = h("div", { "aria-live": "polite" });
  const name = `${one.app}, ${one.environment}, ${one.name}`;
  const examine = h("button", {
    type: "button", "aria-label": `Ask the doctor about ${name}`, onclick: () => {
      into(answer, h("p", { class: "soft" }, "The doctor signs, connects and sends a push to a token that cannot exist …"));
      const shown = h("div", {});
      carryOut(shown, examine, async () => {
        into(shown, await examined(one));
      }).then(() => into(answer, shown));
    },
  }, "Ask the doctor");
  const remove = h("button", {
    type: "button", class: "bad", "aria-label": `Remove ${name}`, onclick: async () => {
      if (!await confirm(`Remove the credential ${one.name}?`,
        `No push leaves with it to ${one.environment} devices of ${one.app} any more; those that no other credential fits get none.`, "Remove it")) return;
      await carryOut(answer, remove, async () => {
        await api.remove(place(one));
        await again(note("good", `Removed: ${name}.`));
        say("Removed");
      });
    },
  }, "Remove");
  const now = one.now;
  return h("section", { class: "sheet" }, h("h2", {}, one.app, " ", badge(one.environment), " ", badge(now?.state ?? "unknown")),
    now?.reason && note("warn", now.reason, now.paused_seconds ? `, tried again in ${duration(now.paused_seconds)}` : ""),
    meanings[now?.state] && h("p", {}, meanings[now.state]),
    facts([
      ["Name", one.name], ["Kind", one.kind], ["Key", one.key_id && `${one.key_id}, team ${one.team}`],
      ["Topics", one.topics.join(", ")], ["Host", `${one.host}:${one.port}`], ["Changed", time(one.changed_at)],
      ["Failures in a row", now && number(now.failures)], ["Last GOAWAY", now?.last_goaway],
    ]),
    now?.topics_paused.map((topic) => note("warn", `${topic.name}: ${topic.reason}, for ${duration(topic.paused_seconds)}`)),
    now && table(`Connections of ${name}`, [
      { name: "Class", head: true, of: (lane) => [lane.name, lane.state === "unreachable" && h("div", { class: "soft" }, badge(lane.state), ` ${lane.reason}, tried again in ${duration(lane.retry_seconds)}`)] },
      { name: "Connections", numeric: true, of: (lane) => lane.connections },
      { name: "Streams", numeric: true, of: (lane) => lane.connections ? `${lane.streams_open} of ${lane.streams_allowed}` : "–" },
      { name: "Waiting", numeric: true, of: (lane) => lane.waiting },
    ], now.lanes, "It has no connection yet."),
    answer, api.mayChange() && h("div", { class: "acts-row" }, examine, remove));
}

/** A new credential, or another key under the name of one; the doctor looks at it at once. */
function add(apps, all, again) {
  const answer = h("div", {});
  const button = h("button", { class: "main", type: "submit" }, "Add the credential");
  const token = h("div", { class: "fields" },
    field("key_id", "Key id", { hint: "Ten characters: the middle of the file’s name, AuthKey_….p8." }),
    field("team", "Team id", { hint: "Ten characters, from Apple’s membership page." }));
  const certificate = h("div", { class: "fields", hidden: true },
    field("certificate_pem", "Certificate", { lines: 6, wide: true, hint: "In PEM, from -----BEGIN CERTIFICATE----- on." }));
  const kinds = field("kind", "What it is", { choices: [["key", "a key (.p8)"], ["certificate", "a certificate"]], hint: "A key is for all apps of a team." });
  kinds.querySelector("select").addEventListener("change", (event) => {
    token.hidden = event.target.value !== "key";
    certificate.hidden = !token.hidden;
  });
  const form = h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      const given = values(form);
      const one = { app: given.app, environment: given.environment, name: given.name.trim() };
      const name = `${one.app}, ${one.environment}, ${one.name}`;
      const ask = () => confirm(`Replace the credential ${one.name}?`,
        `${one.app} has one of this name for ${one.environment} already: pushes leave with the new one from then on.`, "Replace it");
      let known = all.some((other) => other.app === one.app && other.environment === one.environment && other.name === one.name);
      if (known && !await ask()) return;
      await carryOut(answer, button, async () => {
        try {
          await api.put(place(one), body(given), known ? undefined : { new: true });
        } catch (refusal) {
          if (known || refusal.status !== 409) throw refusal;
          // Somebody has added it since this page was drawn: it is no more replaced unasked than one that was known.
          known = true;
          if (!await ask()) throw new api.Refusal(409, `Nothing was changed: ${one.app} has a credential ${one.name} for ${one.environment} by now. Give another name, or load the page again to look at it.`);
          await api.put(place(one), body(given));
        }
        // It stands from here on, whatever the doctor says.
        let found;
        try {
          found = await examined(one);
        } catch (refusal) {
          found = note("warn", `The doctor could not look at it: ${refusal.message}`);
        }
        await again(h("div", { tabindex: "-1", class: "told" }, note("good", `${known ? "Replaced" : "Added"}: ${name}.`), found));
      });
    },
  },
  h("div", { class: "fields" },
    field("app", "App", { choices: apps.map((app) => [app.app, app.app]) }),
    field("environment", "Environment", { choices: [["production", "production"], ["development", "development"]] }),
    field("name", "Name", { required: true, value: "default", hint: "Several of an app tell themselves apart by it." }),
    kinds),
  token, certificate,
  h("div", { class: "fields" },
    field("private_key_pem", "Private key", { lines: 6, wide: true, required: true, hint: "Paste the whole file, from -----BEGIN PRIVATE KEY----- on. It is sent to this server alone, kept out of the audit log, and never shown again." }),
    field("topics", "Topics", { wide: true, hint: "The apps’ bundle ids, with commas between. A certificate names its own: leave it empty there." })),
  h("details", {}, h("summary", {}, "Another address than Apple’s"), h("div", { class: "fields" },
    field("host", "Host"), field("port", "Port", { type: "number", min: 1, max: 65535 }),
    field("trusted_certificates_pem", "Authorities trusted there", { lines: 4, wide: true, hint: "Certificates in PEM; empty: those of this machine." }))),
  answer, h("div", { class: "acts-row" }, button));
  return h("details", { class: "sheet" }, h("summary", {}, "Add a push credential"), form);
}

function body(given) {
  const sent = { private_key_pem: given.private_key_pem.trim() + "\n" };
  if (given.kind === "key") Object.assign(sent, { key_id: given.key_id.trim(), team: given.team.trim() });
  else sent.certificate_pem = given.certificate_pem.trim() + "\n";
  const topics = given.topics.split(/[\s,]+/).filter((topic) => topic);
  if (topics.length || given.kind === "key") sent.topics = topics;
  if (given.host.trim()) sent.host = given.host.trim();
  if (given.port) sent.port = Number(given.port);
  if (given.trusted_certificates_pem.trim()) sent.trusted_certificates_pem = given.trusted_certificates_pem.trim() + "\n";
  return sent;
}
