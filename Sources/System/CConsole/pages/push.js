// Push credentials: how they do now, and what the doctor says of them.

import * as api from "./api.js";
import { h, into, table, sheet, facts, badge, note, carryOut, duration, number, say, time } from "./dom.js";

export async function show(target) {
  const [{ apps }, { credentials }] = await Promise.all([api.get(["apps"]), api.get(["push"])]);
  const all = apps.flatMap((app) => app.push.map((one) => ({
    ...one, app: app.app,
    now: credentials.find((status) => status.app === app.app && status.environment === one.environment && status.name === one.name),
  })));
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Push credentials")),
    all.length ? h("div", { class: "grid" }, all.map(card)) : sheet(null, h("p", { class: "empty" }, "No app has one: no push leaves. ", h("code", {}, "rouse app push set"), " adds one.")));
}

const meanings = {
  tripped: "APNs calls its tokens wrong all at once; none of them is dropped until it is known why.",
  paused: "APNs refuses it, or slows it down.",
  unreachable: "No connection to APNs comes about.",
};

function card(one) {
  const answer = h("div", { "aria-live": "polite" });
  const name = `${one.app}, ${one.environment}, ${one.name}`;
  const examine = h("button", {
    type: "button", "aria-label": `Ask the doctor about ${name}`, onclick: () => {
      into(answer, h("p", { class: "soft" }, "The doctor signs, connects and sends a push to a token that cannot exist …"));
      const shown = h("div", {});
      carryOut(shown, examine, async () => {
        const { credentials } = await api.post(["apps", one.app, "push", one.environment, one.name, "check"]);
        const [found] = credentials;
        into(shown, note(found.is_good ? "good" : "bad",
          h("h3", {}, found.is_good ? "The doctor finds it good" : "The doctor finds it wrong"),
          facts(found.findings.map((finding) => [
            h("span", {}, badge(finding.is_good ? "ok" : "wrong"), ` ${finding.check}`), finding.text]))));
        say(found.is_good ? "The doctor finds it good" : "The doctor finds it wrong");
      }).then(() => into(answer, shown));
    },
  }, "Ask the doctor");
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
      { name: "Class", head: true, of: (lane) => lane.name },
      { name: "Connections", numeric: true, of: (lane) => lane.connections },
      { name: "Streams", numeric: true, of: (lane) => `${lane.streams_open} of ${lane.streams_allowed}` },
      { name: "Waiting", numeric: true, of: (lane) => lane.waiting },
    ], now.lanes, "It has no connection yet."),
    answer, api.mayChange() && h("div", { class: "acts-row" }, examine));
}
