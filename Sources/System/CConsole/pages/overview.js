// What the server does now, drawn as it comes.

import * as api from "./api.js";
import { h, into, number, time } from "./dom.js";
import { Graph, quantile } from "./charts.js";

// As the server's histograms have them, in seconds.
const bounds = [.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300];
const kept = 300;

/** What happened between two samples, a second. */
const rate = (of) => ({ before, sample }) =>
  before ? Math.max(0, of(sample) - of(before)) / ((sample.monotonic - before.monotonic) / 1000) : null;
const sum = (numbers) => Object.values(numbers ?? {}).reduce((all, one) => all + one, 0);

const outcomes = [
  ["synced", "synced", 1], ["no-show", "no show", 6], ["connected-not-synced", "connected only", 3],
  ["rejected", "rejected", 4], ["expired", "expired", 2], ["superseded", "superseded", 5],
];

function graphs() {
  const latency = (share) => ({ before, sample }) =>
    before ? quantile(bounds, before.push_buckets, sample.push_buckets, share) : null;
  return [
    new Graph("Connections", "", [
      { name: "connections", of: ({ sample }) => sample.connections },
      { name: "sessions", of: ({ sample }) => sample.sessions },
    ]),
    new Graph("Publishes", "/s", [{ name: "messages", of: rate((sample) => sample.published) }], "messages and announcements"),
    new Graph("Deliveries", "/s", [
      { name: "changes", of: rate((sample) => sample.deltas) },
      { name: "sync requests", of: rate((sample) => sample.sync_requests) },
    ], "frames to connected devices"),
    new Graph("Wakes", "/min", outcomes.map(([key, name, colour]) => ({
      name, colour, of: (point) => { const value = rate((sample) => sample.wakes[key] ?? 0)(point); return value === null ? null : value * 60; },
    })), "silent pushes by what came of them"),
    new Graph("Gateway latency", "ms", [
      { name: "half below", of: latency(.5) }, { name: "95 % below", of: latency(.95) },
    ], "from claim to APNs’ answer"),
    new Graph("Queue ages", "s", [
      ["alert", "alerts"], ["wake", "wakes"], ["badge", "badges"], ["campaign", "campaigns"],
      ["webhooks", "webhooks"], ["scheduled", "scheduled"],
    ].map(([key, name]) => ({ name, of: ({ sample }) => sample.queue_ages[key] ?? 0 })), "how long the oldest waits"),
    new Graph("Store hold time", "ms", [{
      name: "mean of a transaction",
      of: ({ before, sample }) => before && sample.commits > before.commits
        ? (sample.commit_milliseconds - before.commit_milliseconds) / (sample.commits - before.commits) : null,
    }], "mean of a transaction"),
    new Graph("Transactions", "/s", [{ name: "transactions", of: rate((sample) => sample.commits) }]),
  ];
}

export async function show(target) {
  const tiles = {
    connections: h("dd", {}, "–"), published: h("dd", {}, "–"), pushes: h("dd", {}, "–"),
    wakes: h("dd", {}, "–"), waiting: h("dd", {}, "–"), longest: h("dd", {}, "–"),
  };
  const all = graphs();
  const live = h("span", { class: "live" }, "connecting");
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Overview"), h("span", { class: "push" }, live)),
    h("dl", { class: "tiles" },
      [["Devices connected", tiles.connections], ["Publishes since start", tiles.published], ["Pushes answered", tiles.pushes],
        ["Wakes that synced", tiles.wakes], ["Requests waiting", tiles.waiting], ["Longest transaction", tiles.longest]]
        .map(([name, value]) => h("div", { class: "tile" }, h("dt", {}, name), value))),
    h("div", { class: "grid" }, all.map((graph) => graph.element)));

  let samples = [];
  const draw = () => {
    const points = samples.map((sample, index) => ({ at: sample.monotonic, wall: sample.at, sample, before: samples[index - 1] }));
    for (const graph of all) graph.draw(points);
    const last = samples.at(-1);
    if (!last) return;
    tiles.connections.textContent = number(last.connections);
    tiles.published.textContent = number(last.published);
    tiles.pushes.textContent = number(last.pushes);
    const wakes = sum(last.wakes);
    into(tiles.wakes, number(last.wakes.synced ?? 0), h("small", {}, ` of ${number(wakes)}`));
    tiles.waiting.textContent = number(last.waiting_requests);
    into(tiles.longest, number(last.longest_commit_milliseconds), h("small", {}, " ms"));
  };
  draw();
  // The browser asks again by itself: after each event, and after a failure.
  const stream = new EventSource("/console/live");
  const told = (word, ...more) => { into(live, word, ...more); live.classList.toggle("on", word === "live"); };
  let silence = setTimeout(() => told("waiting"), 6000);
  const heard = () => {
    clearTimeout(silence);
    const at = new Date().toISOString();
    silence = setTimeout(() => told("no news since ", time(at)), 8000);
    api.heard();
    told("live");
    draw();
  };
  stream.addEventListener("history", (event) => {
    samples = JSON.parse(event.data);
    heard();
  });
  stream.addEventListener("sample", (event) => {
    samples.push(JSON.parse(event.data));
    samples = samples.slice(-kept);
    heard();
  });
  stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED) told("ended"); });
  return () => { clearTimeout(silence); stream.close(); };
}
