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

    /// How long the order to a node that was taken for gone is kept: a machine that stood still
    /// may go on after hours.
    private static let orderLifetime: Milliseconds = 86_400_000

    /// Of more nodes that were taken for gone the orders to the oldest are dropped: these rows
    /// come first where late ones are looked for, and must leave room for others.
    private static let ordersMax = 64

    func beat(_ node: NodeBeat) throws(RuleFailure) -> StoreAnswer {
        guard node.phase != .over else {
            try end(node)
            return .done
        }
        let own = try step { () throws(RuleFailure) in try self.say(node) }
        let others = try nodesThere().filter { $0.boot != node.boot }
        effects.node?.hasOthers = others.contains { $0.takesDevices(at: now) }
        effects.node?.isAlone = others.isEmpty
        // One that has not said so since this node is there may be the process before it.
        effects.node?.hasNamesake = others.contains {
            $0.name.isExactly(own.name) && $0.ends != true
                && $0.until > own.thereSince + limits.nodeLease
        }
        // Where the store was away nobody could say anything: whoever comes back first leaves the
        // others the time of a lease to do the same.
        guard now >= own.thereSince + limits.nodeLease else { return .done }
        let past = try nodesPast().filter { $0.boot != node.boot }
        let kept = past.filter(\.isGone)
        let surplus = kept.prefix(max(0, kept.count - Self.ordersMax))
        let over = kept.filter { isOver($0, besides: own) || surplus.contains($0) }
        for other in (past.filter { !$0.isGone } + over).prefix(Self.goneAtOnce) {
            let isNews = try step { () throws(RuleFailure) in
                try self.takeForGone(other, seenBy: own)
            }
            if isNews { try takeOver(from: other.boot) }
        }
        return .done
    }

    /// Apart from those that have gone: whatever is kept of these hides nobody.
    private func nodesThere() throws(RuleFailure) -> [NodeRecord] {
        try records(
            NodeRecord.self,
            Scan(index: "node_by_until", after: [.timestamp(now)], limit: Self.nodesMax))
    }

    /// Those that are silent, and those that were taken for gone, which come first by their time.
    private func nodesPast() throws(RuleFailure) -> [NodeRecord] {
        try records(
            NodeRecord.self,
            Scan(index: "node_by_until", through: [.timestamp(now)], limit: Self.nodesMax))
    }

    /// Nobody waits for the order in the row of a node that was taken for gone: it is a day old,
    /// or a later process has its name.
    private func isOver(_ gone: NodeRecord, besides own: NodeRecord) -> Bool {
        now >= gone.until + Self.orderLifetime
            || gone.name.isExactly(own.name) && gone.startedAt < own.startedAt
    }

    /// The process ends in order: its devices need not wait for the end of its lease.
    private func end(_ node: NodeBeat) throws(RuleFailure) {
        let key: [ColumnValue] = [.identifier(node.boot)]
        guard try record(NodeRecord.self, key, lock: .wait) != nil else { return }
        try delete(NodeRecord.self, key)
        try endSessionsOfGone(besides: .blank)
        try takeOver(from: node.boot)
    }

    /// What the node was sending to APNs and to webhooks is sent by others. It is gone whether or
    /// not somebody holds one of these rows: what is left waits for the end of its lease.
    private func takeOver(from boot: BootID) throws(RuleFailure) {
        do throws(RuleFailure) {
            try stored(try wakeRules.nodeGone(boot))
            try step { () throws(RuleFailure) in try self.releaseDeliveries(of: boot) }
        } catch {
            guard case .store(.conflict) = error else { throw error }
        }
    }

    /// The boots of all that have not gone, as far as one look reaches.
    func nodesKnown() throws(RuleFailure) -> [BootID] {
        try records(NodeRecord.self, Scan(limit: Self.nodesMax)).filter { !$0.isGone }.map(\.boot)
    }

    /// - Returns: the node's row.
    private func say(_ node: NodeBeat) throws(RuleFailure) -> NodeRecord {
        let known = try record(NodeRecord.self, [.identifier(node.boot)], lock: .wait)
        let wasThere = known.map { $0.until > now } ?? false
        let since = wasThere ? known?.thereSince ?? now : now
        let own = NodeRecord(
            boot: node.boot, name: node.name, startedAt: known?.startedAt ?? now,
            thereSince: since, until: now + limits.nodeLease,
            connections: UInt64(node.connections), version: node.version,
            drains: known?.drains, ends: node.phase == .ending ? true : nil)
        try put(own)
        effects.node = NodeStanding(
            drains: known?.drains ?? false, surplus: Int(min(known?.surplus ?? 0, Self.surplusMax)))
        return own
    }

    /// Writes down what nodes are to do; nobody waits for it.
    func order(_ order: NodeOrder) throws(RuleFailure) -> StoreAnswer {
        // Those of the past first: one that comes back meanwhile is in both, not in neither.
        let past = try nodesPast()
        let there = try nodesThere()
        let boots = Set(there.map(\.boot))
        // Rows are waited for in the order of their keys.
        let all = (there + past.filter { !boots.contains($0.boot) }).sorted {
            ($0.boot.high, $0.boot.low) < ($1.boot.high, $1.boot.low)
        }
        let surplus = Self.surplus(there)
        var concerned: [NodeRecord] = []
        // One that is silent may be told otherwise, too.
        func mayBeTold(_ node: NodeRecord) -> Bool { node.until > now || node.drains == true }
        // One of a version that does not tell it does not look for orders either: then nobody of
        // the name is told.
        switch order {
        case .drain(let name), .resume(let name):
            let named = all.filter { mayBeTold($0) && $0.name.isExactly(name) }
            if named.contains(where: { $0.version == nil }) { return .ordered(named) }
        case .rebalance: break
        }
        for found in all where mayBeTold(found) {
            let key: [ColumnValue] = [.identifier(found.boot)]
            guard var node = try record(NodeRecord.self, key, lock: .wait), mayBeTold(node) else {
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
        let taking = nodes.filter { $0.drains != true && $0.ends != true && $0.connections != nil }
        guard !taking.isEmpty else { return [:] }
        // A row says no more than what one machine can hold: the sum of 256 fits.
        let counts = taking.map { ($0.boot, min($0.connections ?? 0, 1 << 40)) }
        let sum = counts.reduce(UInt64(0)) { $0 + $1.1 }
        let mean = (sum + UInt64(counts.count) - 1) / UInt64(counts.count)
        return Dictionary(
            uniqueKeysWithValues: counts.filter { $0.1 > mean }.map { ($0.0, $0.1 - mean) })
    }

    /// - Returns: nobody had taken it for gone before.
    private func takeForGone(
        _ found: NodeRecord, seenBy own: NodeRecord
    ) throws(RuleFailure) -> Bool {
        // It may have come back, or another node may be at it, since it was found.
        guard var other = try record(NodeRecord.self, found.rowKey, lock: .skip),
            other.until == found.until, other.goneAt == found.goneAt
        else { return false }
        let hadGone = other.isGone
        if other.drains == true, !hadGone, !isOver(other, besides: own) {
            // Its process may only stand still, and goes on with what it was told.
            other.goneAt = other.until
            try put(other)
        } else {
            try delete(NodeRecord.self, other.rowKey)
        }
        if !hadGone { try endSessionsOfGone(besides: own.boot) }
        return !hadGone
    }

    private func endSessionsOfGone(besides boot: BootID) throws(RuleFailure) {
        try endSessions(
            SessionEndRecord(
                app: AppID(""), cause: .processGone, boot: boot,
                until: now + limits.reconnectWindow))
    }
}
