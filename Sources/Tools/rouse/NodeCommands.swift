import FoundationEssentials
import RouseServer

/// `rouse node`: the nodes that share a store in PostgreSQL. They are asked through the store,
/// where each looks with its beat: no operator has to reach the machine of the node, and what was
/// asked stands there for whoever lists the nodes.
extension Rouse {
    static let nodeCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "node list", summary: "the nodes that share a store in PostgreSQL",
                options: databaseOptions, examples: ["rouse node list --config node.conf"],
                notes: """
                    Of each node: its name, version and boot, since when it is there and when it
                    last said so (every 2 s), its device connections then, and its sessions. One
                    that has said nothing for 10 s is silent; the others take it for gone.
                    Exit status: 69 the database cannot be used.
                    """),
            run: { arguments in
                try told(arguments) { place throws(StoreCopy.Refusal) in
                    try NodeList.read(place, now: Date())
                } text: { list in
                    list.nodes.isEmpty
                        ? "no node is there" : list.nodes.map(line).joined(separator: "\n")
                }
            }),
        Command(
            description: CommandDescription(
                name: "node drain", summary: "send the devices of a node to the others",
                operands: ["NAME"], options: databaseOptions,
                examples: ["rouse node drain --config node.conf node-b"],
                notes: """
                    Within 2 s the node is not ready any more (`/readyz`), so that balancers send
                    nobody there, and tells each device when to come back: 250 a second and loop,
                    from 2 s on. It goes on; `node list` tells when it is empty, and stopping it
                    then harms nobody. A restart, or `rouse node resume`, ends it.
                    Exit status: 69 the database cannot be used, or no node of the name is there.
                    """),
            run: { try orderNode($0) { .drain($0) } }),
        Command(
            description: CommandDescription(
                name: "node resume", summary: "let a drained node take devices again",
                operands: ["NAME"], options: databaseOptions,
                examples: ["rouse node resume --config node.conf node-b"],
                notes: """
                    Exit status: 69 the database cannot be used, or no node of the name is there.
                    """),
            run: { try orderNode($0) { .resume($0) } }),
        Command(
            description: CommandDescription(
                name: "node rebalance", summary: "spread the devices evenly over the nodes",
                options: databaseOptions, examples: ["rouse node rebalance --config node.conf"],
                notes: """
                    Each node with more connections than the mean of those that take devices tells
                    so many of them to come back, 250 a second and loop; a balancer with leastconn
                    then sends them to the others.
                    Exit status: 69 the database cannot be used.
                    """),
            run: { arguments in
                try told(arguments) { place throws(StoreCopy.Refusal) in
                    try NodeList.order(.rebalance, in: place, now: Date())
                } text: { list in
                    list.nodes.isEmpty
                        ? "no node has more than the mean"
                        : list.nodes.map { "\($0.name): sends \($0.surplus) devices away" }
                            .joined(separator: "\n")
                }
            }),
    ]

    private static func orderNode(
        _ arguments: Arguments, _ order: @escaping (String) -> NodeList.Order
    ) throws -> Int32 {
        let name = arguments.operands[0]
        return try told(arguments) { place throws(StoreCopy.Refusal) in
            try NodeList.order(order(name), in: place, now: Date())
        } text: { list in
            list.nodes.map { "\($0.name): \(told($0))" }.joined(separator: "\n")
        }
    }

    private static func told(_ node: NodeList.Node) -> String {
        guard node.isDraining else { return "takes devices" }
        return node.waitsForOthers
            ? "keeps its devices until another node takes some; none does now" : "drains"
    }

    private static func told(
        _ arguments: Arguments,
        _ ask: (StorePlace) throws(StoreCopy.Refusal) -> NodeList, text: (NodeList) -> String
    ) throws -> Int32 {
        let list = try ask(try database(arguments))
        guard arguments.has("json") else {
            Terminal.print(text(list))
            return ExitStatus.success
        }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.sortedKeys]
        Terminal.print(String(decoding: try encoder.encode(list), as: UTF8.self))
        return ExitStatus.success
    }

    private static func line(_ node: NodeList.Node) -> String {
        let place =
            !node.isThere
            ? "silent since \(node.lastBeat.formatted(.iso8601))"
            : "there since \(node.startedAt.formatted(.iso8601)), last heard "
                + node.lastBeat.formatted(.iso8601)
        let connections = node.connections.map { "\($0)" } ?? "?"
        return "\(node.name): \(doing(node))\(place), \(connections) connections, "
            + "\(node.sessions)\(node.hasMoreSessions ? " or more" : "") sessions, version "
            + "\(node.version ?? "?"), boot \(node.boot)"
    }

    /// What it is at besides serving, with a comma behind it.
    private static func doing(_ node: NodeList.Node) -> String {
        if node.isEnding { return "ending, " }
        guard node.isDraining else { return "" }
        if node.waitsForOthers { return "to drain once another node takes devices, " }
        guard let since = node.drainsSince, let actor = node.drainedBy else { return "draining, " }
        return "draining since \(since.formatted(.iso8601)) by \(actor), "
    }
}
