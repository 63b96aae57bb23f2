// The servers of the store.

import * as api from "./api.js";
import { h, into, table, time, sheet, facts, badge } from "./dom.js";

export async function show(target) {
  const { server, nodes } = await api.get(["nodes"]);
  into(target,
    h("div", { class: "head" }, h("h1", {}, "Nodes")),
    sheet("The server that answers", facts([
      ["Name", server.name], ["Running since", time(server.started_at)], ["Store", h("code", {}, server.store)],
      ["This run", h("code", {}, server.boot)],
    ])),
    sheet("All servers of the store", server.is_shared
      ? table("Servers of the store", [
        { name: "Node", head: true, of: (node) => node.boot === server.boot ? `${node.name} (this one)` : node.name },
        { name: "State", of: (node) => badge(node.is_there ? "here" : "gone") },
        { name: "Started", of: (node) => time(node.started_at) },
        { name: "There without a gap since", of: (node) => time(node.there_since) },
        { name: "Run", of: (node) => h("code", {}, node.boot) },
      ], nodes, "No node has said that it is there.")
      : h("p", {}, "One server has this store’s file to itself. Several share one in PostgreSQL.")));
}
