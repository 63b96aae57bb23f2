// The servers of the store: how each does, and what it is to do.

import * as api from "./api.js";
import { h, into, looking, table, time, sheet, facts, badge, number, note, carryOut, confirm, say } from "./dom.js";

const phases = {
  serving: "It takes devices.",
  draining: "It sends its devices to the others, and takes none that can go elsewhere.",
  ending: "Its process ends, and its devices are sent to the others.",
  silent: "It has not said for 10 s that it is there.",
  gone: "It was taken for gone, and its devices are looked for elsewhere. It is told of its order if it comes back.",
};

export async function show(target) {
  const found = await api.get(["nodes"]);
  const box = h("div", {});
  const answer = h("div", {});
  const draw = ({ server, nodes }) => into(box, sheet("All servers of the store", server.is_shared
    ? [
      table("Servers of the store", columns(server, act), inOrder(nodes), "No node has said that it is there."),
      api.mayChange() && h("div", { class: "acts-row" }, rebalance(act)),
      h("h3", {}, "What the phases mean"),
      facts(Object.entries(phases).map(([phase, text]) => [badge(phase), text])),
    ]
    : h("p", {}, "One server has this store’s file to itself. Several share one in PostgreSQL.")));
  const again = async (look = api.get) => {
    const isNewest = looking(box);
    const next = await look(["nodes"]);
    if (!isNewest()) return;
    const at = document.activeElement?.dataset.order;
    draw(next);
    // Who is at a button stays there, or at what took its place.
    if (at !== undefined) [...box.querySelectorAll("button")].find((one) => one.dataset.order === at)?.focus();
  };
  /** Orders something, and shows it when the nodes have had the time to hear of it. */
  const act = async (button, path, said) => {
    await carryOut(answer, button, async () => {
      await api.post(path);
      await again();
      const told = note("good", said);
      into(answer, told);
      told.focus();
      say(said);
    });
  };
  draw(found);
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Nodes")),
    sheet("The server that answers", facts([
      ["Name", found.server.name], ["Running since", time(found.server.started_at)], ["Store", h("code", {}, found.server.store)],
      ["This run", h("code", {}, found.server.boot)],
    ])), answer, box);
  if (!found.server.is_shared) return undefined;
  // Nodes say every 2 s that they are there.
  let isAsked = false;
  const timer = setInterval(async () => {
    if (isAsked || document.hidden || document.querySelector("dialog[open]")) return;
    isAsked = true;
    // What is refused is shown when something is asked for next.
    try { await again(api.watch); } catch { /* The next turn comes. */ } finally { isAsked = false; }
  }, 4000);
  return () => clearInterval(timer);
}

/** Each stays where it is, whoever said last that it is there. */
const inOrder = (nodes) => [...nodes].sort((one, other) => one.name.localeCompare(other.name) || one.started_at.localeCompare(other.started_at));

const columns = (server, act) => [
  { name: "Node", head: true, of: (node) => (node.boot === server.boot ? `${node.name} (this one)` : node.name) },
  { name: "Phase", of: (node) => [badge(node.phase), node.surplus > 0 && ` ${number(node.surplus)} to send away`,
    node.is_draining && node.drains_since && h("div", { class: "soft" }, "to drain since ", time(node.drains_since), `, by ${node.drained_by}`)] },
  { name: "Connections", numeric: true, of: (node) => number(node.connections) },
  { name: "Sessions", numeric: true, of: (node) => number(node.sessions) + (node.has_more_sessions ? " and more" : "") },
  { name: "Started", of: (node) => [time(node.started_at),
    node.there_since !== node.started_at && h("div", { class: "soft" }, "without a gap since ", time(node.there_since))] },
  { name: "Said so last", of: (node) => [time(node.last_beat_at), node.gone_at && h("div", { class: "soft" }, "gone: ", time(node.gone_at))] },
  { name: "Version", of: (node) => node.version ?? "–" },
  ...(api.mayChange() ? [{ name: "Actions", acts: true, of: (node) => order(node, act) }] : []),
];

function order(node, act) {
  const path = (word) => ["nodes", node.name, word];
  if (node.is_draining) {
    const resume = h("button", {
      type: "button", "aria-label": `Resume ${node.name}`, "data-order": node.name,
      onclick: () => act(resume, path("resume"), `${node.name} is told to take devices again.`),
    }, "Resume");
    return resume;
  }
  if (node.phase !== "serving") return "";
  const drain = h("button", {
    type: "button", class: "bad", "aria-label": `Drain ${node.name}`, "data-order": node.name, onclick: async () => {
      if (!await confirm(`Drain ${node.name}?`,
        "Its devices are sent to the other nodes, and /readyz says no, until it is resumed or starts anew. Where no other node takes devices they stay.", "Drain it")) return;
      await act(drain, path("drain"), `${node.name} is told to drain.`);
    },
  }, "Drain");
  return drain;
}

function rebalance(act) {
  const button = h("button", {
    type: "button", "data-order": "", onclick: async () => {
      if (!await confirm("Rebalance the devices?",
        "Nodes with more connections than the mean of those that take devices send their surplus away, once.", "Rebalance them")) return;
      await act(button, ["nodes", "rebalance"], "The nodes above the mean are told to send their surplus away.");
    },
  }, "Rebalance");
  return button;
}
