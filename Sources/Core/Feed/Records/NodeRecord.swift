public import Model

/// A process that serves devices beside others on one store: as long as the row is there, its
/// sessions are connected. The node renews it; another one deletes it when its time is over.
public struct NodeRecord: Record, Equatable {
    public var boot: BootID
    /// The node's name in its configuration, for people.
    public var name: String
    public var startedAt: Timestamp
    /// Since when it has been there without a gap.
    public var thereSince: Timestamp
    /// It is taken for gone from then on.
    public var until: Timestamp
    /// Device connections with its last beat; `nil`: of a version that does not tell.
    public var connections: UInt64?
    /// The program's version; `nil`: of one that does not tell.
    public var version: String?
    /// It is to have no devices, until it is told otherwise or ends.
    public var drains: Bool?
    /// Devices that it is to send away with its next beat.
    public var surplus: UInt64?
    /// Its process ends: nobody is to be sent to it.
    public var ends: Bool?
    /// The `until` at which it was taken for gone. The row stays for the order in it, which a node
    /// that was only silent finds when it is there again.
    public var goneAt: Timestamp?

    public init(
        boot: BootID, name: String, startedAt: Timestamp, thereSince: Timestamp, until: Timestamp,
        connections: UInt64? = nil, version: String? = nil, drains: Bool? = nil,
        surplus: UInt64? = nil, ends: Bool? = nil
    ) {
        self.ends = ends
        self.connections = connections
        self.version = version
        self.drains = drains
        self.surplus = surplus
        self.boot = boot
        self.name = name
        self.startedAt = startedAt
        self.thereSince = thereSince
        self.until = until
    }

    /// Its sessions have been ended. A node of a version that does not know `goneAt` may come back
    /// and leave it: then it names another time.
    public var isGone: Bool { goneAt == until }

    /// Devices may be sent to it.
    public func takesDevices(at now: Timestamp) -> Bool {
        until > now && drains != true && ends != true
    }
}

extension NodeRecord {
    public static let table = Table(
        "node", of: Self.self, indexes: [TableIndex("node_by_until", on: "until")], since: 5)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        boot = c.key("boot", row?.boot)
        name = c.value("name", row?.name)
        startedAt = c.value("started_at", row?.startedAt)
        thereSince = c.value("there_since", row?.thereSince)
        until = c.value("until", row?.until)
        connections = c.value("connections", row?.connections, since: 7)
        version = c.value("version", row?.version, since: 7)
        drains = c.value("drains", row?.drains, since: 7)
        surplus = c.value("surplus", row?.surplus, since: 7)
        ends = c.value("ends", row?.ends, since: 8)
        goneAt = c.value("gone_at", row?.goneAt, since: 8)
    }
}
