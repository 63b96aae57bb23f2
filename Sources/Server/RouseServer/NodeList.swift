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
                list.nodes = try snapshot.records(NodeRecord.self, Scan(limit: 1_000)).map { row in
                    var node = node(row, now: now)
                    node.sessions = counts[row.boot] ?? 0
                    node.hasMoreSessions = sessions.count == sessionsMax
                    return node
                }
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
        do throws(StoreError) {
            (rows, refusal) = try ordered(order, in: place)
        } catch {
            throw StoreCopy.Refusal(error.words)
        }
        if let refusal { throw StoreCopy.Refusal(refusal) }
        return NodeList(nodes: rows.map { node($0, now: now) })
    }

    /// There is no order without its row in the audit log.
    private static func ordered(
        _ order: Order, in place: StorePlace
    ) throws(StoreError) -> (rows: [NodeRecord], refusal: String?) {
        let store = try place.asItIs.open()
        defer { store.close() }
        let note = AuditNote(actor: "command on the store", action: order.action)
        var number: UInt64?
        var result: Result<[NodeRecord], StoreError> = .success([])
        for outcome in try store.commit([
            .administer(.noteAudit(note)), .order(order.request),
        ]) {
            switch outcome.map(\.answer) {
            case .success(.audited(let written)): number = written
            case .success(.ordered(let concerned)): result = .success(concerned)
            case .success: break
            case .failure(let error): result = .failure(error)
            }
        }
        let refusal = (try? result.get()).flatMap { order.request.refusal(of: $0) }
        if let number {
            let status: UInt64 =
                switch (result, refusal) {
                case (.failure, _): 503
                case (_, .nobody): 404
                case (_, .tooOld): 409
                case (_, nil): 200
                }
            // What was ordered stands whether or not this was written.
            _ = try? store.commit([.administer(.settleAudit(number, status: status))])
        }
        return (try result.get(), refusal.map { words(of: $0, order) })
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

        fileprivate var action: String {
            switch self {
            case .drain(let name): "POST /nodes/\(name)/drain"
            case .resume(let name): "POST /nodes/\(name)/resume"
            case .rebalance: "POST /nodes/rebalance"
            }
        }
    }

    private static func node(_ row: NodeRecord, now: Date) -> Node {
        Node(
            name: row.name, boot: "\(row.boot)", startedAt: date(row.startedAt),
            until: date(row.until), lastBeat: date(row.until) - lease,
            isThere: date(row.until) > now, isDraining: row.drains ?? false,
            version: row.version, connections: row.connections.map { Int(clamping: $0) },
            sessions: 0, hasMoreSessions: false, surplus: Int(clamping: row.surplus ?? 0))
    }

    private static let lease = Double(RuleLimits().nodeLease) / 1_000

    private static func date(_ time: Timestamp) -> Date {
        Date(timeIntervalSince1970: Double(time.milliseconds) / 1_000)
    }
}
