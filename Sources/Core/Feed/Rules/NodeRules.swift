import Model

// Several processes on one store. Each says every 2 s that it is there; one that has said nothing
// for the time of its lease is taken for gone by the others, and its devices for gone with it.
extension Work {
    /// Nodes taken for gone in one turn.
    private static let goneAtOnce = 4

    /// Devices sent away by one order: more than a machine can hold.
    private static let surplusMax: UInt64 = 1 << 30

    /// Nodes looked at together.
    private static let nodesMax = 256

    func beat(_ node: NodeBeat) throws(RuleFailure) -> StoreAnswer {
        let thereSince = try step { () throws(RuleFailure) in try self.say(node) }
        let others = try records(NodeRecord.self, Scan(limit: Self.nodesMax)).contains {
            $0.boot != node.boot && $0.until > now && $0.drains != true
        }
        effects.node?.hasOthers = others
        // Where the store was away nobody could say anything: whoever comes back first leaves the
        // others the time of a lease to do the same.
        guard now >= thereSince + limits.nodeLease else { return .done }
        let late = try records(
            NodeRecord.self,
            Scan(index: "node_by_until", through: [.timestamp(now)], limit: Self.goneAtOnce))
        for other in late where other.boot != node.boot {
            try step { () throws(RuleFailure) in try self.takeForGone(other.boot, seenBy: node) }
        }
        return .done
    }

    /// - Returns: since when the node has been there without a gap.
    private func say(_ node: NodeBeat) throws(RuleFailure) -> Timestamp {
        let known = try record(NodeRecord.self, [.identifier(node.boot)], lock: .wait)
        let wasThere = known.map { $0.until > now } ?? false
        let since = wasThere ? known?.thereSince ?? now : now
        try put(
            NodeRecord(
                boot: node.boot, name: node.name, startedAt: known?.startedAt ?? now,
                thereSince: since, until: now + limits.nodeLease,
                connections: UInt64(node.connections), version: node.version,
                drains: known?.drains))
        effects.node = NodeStanding(
            drains: known?.drains ?? false, surplus: Int(min(known?.surplus ?? 0, Self.surplusMax)))
        return since
    }

    /// Writes down what nodes are to do; nobody waits for it.
    func order(_ order: NodeOrder) throws(RuleFailure) -> StoreAnswer {
        let there = try records(NodeRecord.self, Scan(limit: Self.nodesMax))
            .filter { $0.until > now }
        let surplus = Self.surplus(there)
        var concerned: [NodeRecord] = []
        for found in there {
            let key: [ColumnValue] = [.identifier(found.boot)]
            guard var node = try record(NodeRecord.self, key, lock: .wait), node.until > now else {
                continue
            }
            switch order {
            case .drain(let name), .resume(let name):
                guard node.name.isExactly(name) else { continue }
                if case .drain = order { node.drains = true } else { node.drains = false }
            case .rebalance:
                guard let surplus = surplus[node.boot] else { continue }
                node.surplus = surplus
            }
            try put(node)
            concerned.append(node)
        }
        return .ordered(concerned)
    }

    /// What each node has above the mean of those that take devices, rounded up.
    private static func surplus(_ nodes: [NodeRecord]) -> [BootID: UInt64] {
        let taking = nodes.filter { $0.drains != true && $0.connections != nil }
        guard !taking.isEmpty else { return [:] }
        // A row says no more than what one machine can hold: the sum of 256 fits.
        let counts = taking.map { ($0.boot, min($0.connections ?? 0, 1 << 40)) }
        let sum = counts.reduce(UInt64(0)) { $0 + $1.1 }
        let mean = (sum + UInt64(counts.count) - 1) / UInt64(counts.count)
        return Dictionary(
            uniqueKeysWithValues: counts.filter { $0.1 > mean }.map { ($0.0, $0.1 - mean) })
    }

    private func takeForGone(_ boot: BootID, seenBy node: NodeBeat) throws(RuleFailure) {
        let key: [ColumnValue] = [.identifier(boot)]
        // It may have come back, or another node may be at it, since it was found.
        guard let other = try record(NodeRecord.self, key, lock: .skip), other.until <= now else {
            return
        }
        try delete(NodeRecord.self, key)
        try endSessions(
            SessionEndRecord(
                app: AppID(""), cause: .processGone, boot: node.boot,
                until: now + limits.reconnectWindow))
    }
}
