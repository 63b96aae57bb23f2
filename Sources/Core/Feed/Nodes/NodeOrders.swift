public import Model

extension DrainOrder {
    /// Changes looked through for orders, from the newest on.
    private static let changesMax = 1_000

    /// The orders that nodes follow now, by their process. One that was repeated counts from the
    /// first time on, and one to an earlier process of the name not at all.
    public static func standing(
        in snapshot: any StoreSnapshot, for nodes: [NodeRecord]
    ) throws(StoreError) -> [BootID: DrainOrder] {
        let draining = nodes.filter { $0.drains == true }
        guard !draining.isEmpty else { return [:] }
        let changes = try snapshot.records(
            AuditRecord.self, Scan(descending: true, limit: changesMax))
        let named = Dictionary(
            grouping: changes.filter { $0.status < 400 }, by: { ExactText($0.action) })
        var standing: [BootID: DrainOrder] = [:]
        for node in draining {
            let resumed = named[ExactText(NodeOrder.resume(name: node.name).action)]?.first
            let first = named[ExactText(NodeOrder.drain(name: node.name).action)]?.last {
                $0.at >= node.startedAt && $0.number > (resumed?.number ?? 0)
            }
            if let first { standing[node.boot] = DrainOrder(at: first.at, actor: first.actor) }
        }
        return standing
    }
}

extension NodeOrder {
    /// As the audit log has it: method and path of the admin API.
    public var action: String {
        switch self {
        case .drain(let name): "POST /nodes/\(name)/drain"
        case .resume(let name): "POST /nodes/\(name)/resume"
        case .rebalance: "POST /nodes/rebalance"
        }
    }
}
