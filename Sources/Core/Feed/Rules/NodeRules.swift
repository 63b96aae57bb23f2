import Model

// Several processes on one store. Each says every 2 s that it is there; one that has said nothing
// for the time of its lease is taken for gone by the others, and its devices for gone with it.
extension Work {
    /// Nodes taken for gone in one turn.
    private static let goneAtOnce = 4

    func beat(_ node: NodeBeat) throws(RuleFailure) -> StoreAnswer {
        let thereSince = try step { () throws(RuleFailure) in try self.say(node) }
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
                thereSince: since, until: now + limits.nodeLease))
        return since
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
