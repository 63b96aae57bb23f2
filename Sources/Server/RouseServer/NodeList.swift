import Feed
public import FoundationEssentials
import Model

/// The nodes of a store, for `rouse node list` and what follows it.
public struct NodeList: Codable, Equatable, Sendable {
    public struct Node: Codable, Equatable, Sendable {
        public var name: String
        public var boot: String
        public var startedAt: Date
        /// It is taken for gone from then on, unless it says again that it is there.
        public var until: Date
        /// When it last said that it is there.
        public var lastBeat: Date
        public var isThere: Bool
        public var isDraining: Bool
        /// It is told to drain, and keeps its devices as long as no other node takes any.
        public var waitsForOthers: Bool
        /// By the audit log; `nil`: it does not drain, or that does not know it any more.
        public var drainsSince: Date?
        public var drainedBy: String?
        /// Its process ends.
        public var isEnding: Bool
        /// `nil`: of a version that does not tell.
        public var version: String?
        /// Device connections with its last beat; `nil`: of a version that does not tell.
        public var connections: Int?
        public var sessions: Int
        /// More sessions than were counted.
        public var hasMoreSessions: Bool
        /// Devices that it is to send away with its next beat.
        public var surplus: Int
    }

    public var nodes: [Node]

    /// Sessions that are counted, of all nodes.
    private static let sessionsMax = 100_000

    /// - Throws: `StoreCopy.Refusal`: the store cannot be read, and why.
    public static func read(_ place: StorePlace, now: Date) throws(StoreCopy.Refusal) -> NodeList {
        var list = NodeList(nodes: [])
        do throws(StoreError) {
            try place.read { snapshot throws(StoreError) in
                let sessions = try snapshot.records(SessionRecord.self, Scan(limit: sessionsMax))
                let counts = Dictionary(grouping: sessions, by: \.boot).mapValues(\.count)
                let rows = try snapshot.records(NodeRecord.self, Scan(limit: 1_000))
                let drains = try DrainOrder.standing(in: snapshot, for: rows)
                list.nodes = rows.map { row in
                    var node = node(row, now: now)
                    node.drainsSince = drains[row.boot].map { date($0.at) }
                    node.drainedBy = drains[row.boot]?.actor
                    node.sessions = counts[row.boot] ?? 0
                    node.hasMoreSessions = sessions.count == sessionsMax
                    return node
                }
                list.noteWaiting(among: rows, now: now)
            }
        } catch {
            throw StoreCopy.Refusal(error.words)
        }
        return list
    }

    /// Writes down what nodes are to do; each finds it with its next beat, within 2 s.
    ///
    /// - Returns: the nodes concerned, without their sessions.
    /// - Throws: `StoreCopy.Refusal`: the store cannot be written, or no node of the name is there.
    public static func order(
        _ order: Order, in place: StorePlace, now: Date
    ) throws(StoreCopy.Refusal) -> NodeList {
        let rows: [NodeRecord]
        let refusal: String?
        var all: [NodeRecord] = []
        do throws(StoreError) {
            (rows, refusal) = try ordered(order, in: place)
            try place.read { snapshot throws(StoreError) in
                all = try snapshot.records(NodeRecord.self, Scan(limit: 1_000))
            }
        } catch {
            throw StoreCopy.Refusal(error.words)
        }
        if let refusal { throw StoreCopy.Refusal(refusal) }
        var list = NodeList(nodes: rows.map { node($0, now: now) })
        list.noteWaiting(among: all, now: now)
        return list
    }

    /// As the nodes themselves see it with their next beats (`NodeStanding.leaves`).
    private mutating func noteWaiting(among rows: [NodeRecord], now: Date) {
        let now = Timestamp(milliseconds: UInt64(max(0, now.timeIntervalSince1970 * 1_000)))
        let taking = rows.filter { $0.takesDevices(at: now) }.map { "\($0.boot)" }
        for index in nodes.indices where nodes[index].isDraining {
            let boot = nodes[index].boot
            nodes[index].waitsForOthers = !taking.contains { $0 != boot }
        }
    }

    /// There is no order without its row in the audit log.
    private static func ordered(
        _ order: Order, in place: StorePlace
    ) throws(StoreError) -> (rows: [NodeRecord], refusal: String?) {
        let store = try place.asItIs.open()
        defer { store.close() }
        let note = AuditNote(actor: "command on the store", action: order.request.action)
        guard
            case .audited(let number) = try store.commit([.administer(.noteAudit(note))])
                .first?.get().answer
        else { throw .unavailable("the audit log does not answer") }
        func settle(_ status: UInt64) {
            // What was ordered stands whether or not this was written.
            _ = try? store.commit([.administer(.settleAudit(number, status: status))])
        }
        do throws(StoreError) {
            guard
                case .ordered(let concerned) = try store.commit([.order(order.request)])
                    .first?.get().answer
            else { throw .conflict("the store takes no orders to nodes") }
            let refusal = order.request.refusal(of: concerned)
            switch refusal {
            case .nobody: settle(404)
            case .tooOld: settle(409)
            case nil: settle(200)
            }
            return (concerned, refusal.map { words(of: $0, order) })
        } catch {
            // Of a commit whose answer was lost nobody knows what came: its row stays open.
            if case .unavailable = error { throw error }
            settle(503)
            throw error
        }
    }

    private static func words(of refusal: NodeOrder.Refusal, _ order: Order) -> String {
        let name = order.name ?? ""
        return switch refusal {
        case .nobody: "no node \(name) is there; `rouse node list` tells the names"
        case .tooOld:
            "\(name) is of a version that takes no such order: stop its process instead"
        }
    }

    /// What an operator wants of nodes.
    public enum Order: Equatable, Sendable {
        case drain(String)
        case resume(String)
        case rebalance

        fileprivate var request: NodeOrder {
            switch self {
            case .drain(let name): .drain(name: name)
            case .resume(let name): .resume(name: name)
            case .rebalance: .rebalance
            }
        }

        fileprivate var name: String? {
            switch self {
            case .drain(let name), .resume(let name): name
            case .rebalance: nil
            }
        }
    }

    private static func node(_ row: NodeRecord, now: Date) -> Node {
        Node(
            name: row.name, boot: "\(row.boot)", startedAt: date(row.startedAt),
            until: date(row.until), lastBeat: date(row.until) - lease,
            isThere: date(row.until) > now, isDraining: row.drains ?? false,
            waitsForOthers: false, isEnding: row.ends ?? false, version: row.version,
            connections: row.connections.map { Int(clamping: $0) },
            sessions: 0, hasMoreSessions: false, surplus: Int(clamping: row.surplus ?? 0))
    }

    private static let lease = Double(RuleLimits().nodeLease) / 1_000

    private static func date(_ time: Timestamp) -> Date {
        Date(timeIntervalSince1970: Double(time.milliseconds) / 1_000)
    }
}
