import Feed
import HTTP1
import Model
import Wire

/// The servers of the store: how they do, and what operators want of them.
enum NodeRoutes {
    static let all: [Route] = [
        Route("GET", "/nodes", .open(list)),
        Route("POST", "/nodes/rebalance", takesBody: false, .open(rebalance)),
        Route("POST", "/nodes/{name}/drain", takesBody: false, .open(drain)),
        Route("POST", "/nodes/{name}/resume", takesBody: false, .open(resume)),
    ]

    private static func list(_ call: Call) throws(Problem) -> Step {
        let about = call.surroundings.about
        let now = call.now
        return .read(.operators(.nodes)) { reading throws(Problem) in
            guard case .operators(.nodes(let views)) = reading else { throw .unexpected(reading) }
            // Of one name, as while the row of a dead process stands, the newest comes last.
            let nodes = views.sorted {
                (ExactText($0.node.name), $0.node.startedAt)
                    < (ExactText($1.node.name), $1.node.startedAt)
            }
            let body = NodeListBody(
                server: ServerBody(about), nodes: nodes.map { NodeBody($0, now: now) })
            return .answer(.json(200, body))
        }
    }

    private static func drain(_ call: Call) throws(Problem) -> Step {
        order(.drain(name: call.parameter("name")), call)
    }

    private static func resume(_ call: Call) throws(Problem) -> Step {
        order(.resume(name: call.parameter("name")), call)
    }

    private static func rebalance(_ call: Call) throws(Problem) -> Step {
        order(.rebalance, call)
    }

    /// It is written down; each node finds it with its next beat, within 2 s.
    private static func order(_ order: NodeOrder, _ call: Call) -> Step {
        .commit(.order(order)) { answer throws(Problem) in
            guard case .ordered(let nodes) = answer else { throw .unexpected(answer) }
            switch order.refusal(of: nodes) {
            case .nobody: throw .noSuch("node")
            case .tooOld:
                throw Problem(
                    .conflict,
                    "a node of this name is of a version that takes no such order: stop its process"
                )
            case nil: break
            }
            let told = nodes.map { OrderedNodeBody(name: $0.name, boot: $0.boot.description) }
            return .answer(.json(202, OrderBody(nodes: told)))
        }
    }
}

struct NodeListBody: Encodable {
    let server: ServerBody
    /// Of a store in PostgreSQL; empty where one server has the file.
    let nodes: [NodeBody]
}

/// The server that answers.
struct ServerBody: Encodable {
    let name: String
    let boot: String
    let store: String
    let isShared: Bool
    let startedAt: String?

    init(_ about: ServerFacts) {
        name = about.name
        boot = about.boot
        store = about.store
        isShared = about.isShared
        startedAt = about.startedAt?.text
    }
}

struct NodeBody: Encodable {
    let name: String
    let boot: String
    /// Left out by a version that does not tell; the same goes for the connections.
    let version: String?
    let phase: String
    let startedAt: String
    let thereSince: String
    /// When it last said that it is there.
    let lastBeatAt: String
    let until: String
    /// When it was taken for gone, and its sessions with it.
    let goneAt: String?
    let isThere: Bool
    /// It is to have no devices, whether or not it is there.
    let isDraining: Bool
    /// By the audit log; left out where that does not know it any more.
    let drainsSince: String?
    let drainedBy: String?
    /// Devices with its last beat, and the sessions that stand in the store.
    let connections: UInt64?
    let sessions: Int
    let hasMoreSessions: Bool
    /// Devices that it is to send away with its next beat.
    let surplus: UInt64

    init(_ view: NodeView, now: Timestamp) {
        let record = view.node
        name = record.name
        boot = record.boot.description
        version = record.version
        startedAt = record.startedAt.text
        thereSince = record.thereSince.text
        let until = record.until.milliseconds
        lastBeatAt =
            Timestamp(milliseconds: until - min(until, RuleLimits().nodeLease)).text
        self.until = record.until.text
        goneAt = record.isGone ? record.goneAt?.text : nil
        isThere = record.until > now
        isDraining = record.drains == true
        drainsSince = view.drain?.at.text
        drainedBy = view.drain?.actor
        phase = Self.phase(of: record, isThere: isThere)
        connections = record.connections
        sessions = view.sessions
        hasMoreSessions = view.hasMoreSessions
        surplus = record.surplus ?? 0
    }

    private static func phase(of record: NodeRecord, isThere: Bool) -> String {
        if record.isGone { return "gone" }
        if !isThere { return "silent" }
        if record.ends == true { return "ending" }
        return record.drains == true ? "draining" : "serving"
    }
}

struct OrderBody: Encodable {
    /// Those that are told.
    let nodes: [OrderedNodeBody]
}

struct OrderedNodeBody: Encodable {
    let name: String
    let boot: String
}
