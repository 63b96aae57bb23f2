/// How many devices a node has, and how many it may have.
public struct NodeLoad: Equatable, Sendable {
    public var connections: Int
    public var limit: Int

    public init(connections: Int, limit: Int) {
        self.connections = connections
        self.limit = limit
    }

    /// The share of the limit that is free, in whole percent: 100 while nobody is there. Never
    /// below 1, because a balancer gives nobody to a weight of 0, and that a node is full is its
    /// own to say.
    var freePercent: Int {
        let free = Double(limit - connections) / Double(max(1, limit))
        return Int(min(100, max(1, free * 100)))
    }
}

/// What the agent tells a balancer: one line of HAProxy's agent check (its manual,
/// `agent-check`).
enum AgentAnswer {
    static func line(_ readiness: Readiness, _ load: NodeLoad) -> String {
        if !readiness.leaving.isEmpty { return "drain\n" }
        if readiness.isDown { return "down\n" }
        // HAProxy keeps what an agent said until the agent takes it back: `ready` ends `drain`,
        // and `up` ends `down`.
        return "ready up \(load.freePercent)%\n"
    }
}
