import Feed
import Model
import Wake

/// The pushes and connections of one class of one credential.
///
/// It starts with one connection, gets more while all streams are taken, and replaces one by
/// making another before it gives the old one up.
struct Lane {
    let kind: PushClass
    var waiting = WaitingPushes()
    /// In the order in which they were begun; at most one is being made. Pushes are sent on the
    /// oldest first.
    var connections: [PushConnection] = []
    /// A connection that is to take the place of another one.
    struct Succession: Equatable {
        let old: ConnectionID
        let new: ConnectionID
        /// The old one, which works, goes on until the new one has had its first answer: before,
        /// one stream that hangs would stop the class. Else it goes once the new one is up.
        var waitsForAnswer: Bool
    }

    /// The one that is under way.
    private(set) var succession: Succession?
    private var replacedAt: Instant?
    /// When the next connection may be begun, by what came of the last ones.
    var redial: Redial
    /// How the last connection ended that never had an answer; empty: there was one since.
    var lastFailure = ""
    private var growth: LaneGrowth

    init(_ kind: PushClass, _ configuration: PushGatewayConfiguration) {
        self.kind = kind
        redial = Redial(
            delay: configuration.reconnectDelay, delayMax: configuration.reconnectDelayMax,
            soundAge: configuration.soundAge)
        growth = LaneGrowth(
            after: configuration.growAfter, spacing: configuration.growSpacing)
    }

    // MARK: - How it stands

    var openStreams: Int { connections.reduce(0) { $0 + $1.openStreams } }
    /// Whether streams can be opened, now or once one is free.
    var isUsable: Bool { connections.contains(where: \.isActive) }
    var isDialing: Bool { connections.contains(where: \.isDialing) }

    /// How many more pushes could be sent now.
    func freeStreams(waitingMax: Int, now: Instant) -> Int {
        guard waiting.count < waitingMax else { return 0 }
        let free = connections.reduce(0) { $0 + $1.freeStreams(now) }
        // The first push has the connection made.
        return max(0, (isUsable ? free : 1) - waiting.count)
    }

    /// Why nothing can be sent; empty: it can, as far as is known.
    private var failure: String {
        connections.contains { $0.isActive && $0.hasAnswered } ? "" : lastFailure
    }

    /// - Parameter nextTry: when another connection may be begun; `nil`: now.
    func status(_ now: Instant, nextTry: Instant?) -> PushLaneStatus {
        let active = connections.filter(\.isActive)
        // Where nothing is to be sent and another may be begun, none is wanted.
        let isWanted = !waiting.isEmpty || openStreams > 0 || nextTry != nil
        let failure = isWanted ? failure : ""
        return PushLaneStatus(
            lane: kind, connections: active.count, open: openStreams,
            allowed: active.reduce(0) { $0 + $1.streamLimit }, waiting: waiting.count,
            oldestStream: connections.map { $0.oldestStream(now) }.max() ?? 0,
            failures: redial.failures, failure: failure,
            nextTry: failure.isEmpty ? nil : nextTry.map { $0.since(now) } ?? 0)
    }

    func index(of connection: ConnectionID) -> Int? {
        connections.firstIndex { $0.id == connection }
    }

    // MARK: - Sending

    /// Puts pushes that wait on streams.
    ///
    /// - Parameters:
    ///   - token: `nil`: the connections are of a client certificate.
    ///   - most: so many, and no more.
    /// - Returns: those that have waited for too long; they are not sent.
    mutating func fill(token: String?, most: Int, _ turn: inout PushTurn) -> [HeldPush] {
        var left = most
        var tooLate: [HeldPush] = []
        for index in order {
            guard left > 0, !waiting.isEmpty else { break }
            guard connections[index].isReady(&turn) else { continue }
            while left > 0, connections[index].freeStreams(turn.now) > 0,
                let push = waiting.takeFirst()
            {
                guard turn.now < push.sendBefore(turn.configuration) else {
                    tooLate.append(push)
                    continue
                }
                connections[index].send(push, token: token, &turn)
                left -= 1
            }
        }
        return tooLate
    }

    /// The oldest first, but before all one that has yet to prove itself: it has one stream.
    private var order: [Int] {
        guard let new = succession.flatMap({ index(of: $0.new) }), connections[new].isActive
        else { return Array(connections.indices) }
        return [new] + connections.indices.filter { $0 != new }
    }

    // MARK: - Connections

    /// Another connection, the last one begun, is to take the place of this one.
    mutating func succeeds(_ old: ConnectionID, waitsForAnswer: Bool) {
        guard isDialing, let new = connections.last?.id else { return }
        succession = Succession(old: old, new: new, waitsForAnswer: waitsForAnswer)
    }

    /// A connection is up, or has answered: whether the one before it goes now.
    mutating func cameForward(_ new: ConnectionID) {
        guard let succession, succession.new == new, let place = index(of: new),
            !succession.waitsForAnswer || connections[place].isTrusted
        else { return }
        self.succession = nil
        if let old = index(of: succession.old), connections[old].isActive {
            connections[old].retire()
        }
    }

    /// What one of two that take turns is to be replaced for, while they do: the one that has not
    /// proved itself goes, and the other stays; or the old one goes sooner.
    ///
    /// - Returns: whether that is all there is to do.
    mutating func settles(_ connection: ConnectionID, isUrgent: Bool) -> Bool {
        guard let succession else { return false }
        if succession.new == connection, let place = index(of: connection) {
            connections[place].retire()
            self.succession = nil
            return true
        }
        guard succession.old == connection else { return false }
        if isUrgent {
            self.succession?.waitsForAnswer = false
            if let new = index(of: succession.new), connections[new].isActive {
                cameForward(succession.new)
            }
        }
        return true
    }

    /// A connection takes no more pushes: if it was one of two that take turns, the other is alone.
    mutating func leaves(_ connection: ConnectionID) {
        if succession?.old == connection || succession?.new == connection { succession = nil }
    }

    /// Whether a connection may be replaced now by another one, which is to be made.
    ///
    /// - Parameter isUrgent: APNs will refuse everything on it; a pattern of connects is
    ///   prevented by the pause of the push that told so.
    mutating func mayReplace(
        _ connection: ConnectionID, isUrgent: Bool, _ turn: PushTurn
    ) -> Bool {
        guard let index = index(of: connection), connections[index].isActive, !isDialing else {
            return false
        }
        if !isUrgent, let replacedAt,
            turn.now.since(replacedAt) < turn.configuration.replaceSpacing
        {
            return false
        }
        replacedAt = turn.now
        return true
    }

    /// The connection that is so old that its name should be looked up again.
    func aged(_ turn: PushTurn) -> ConnectionID? {
        guard succession == nil else { return nil }
        return connections.first {
            $0.isActive && $0.age(turn.now) >= turn.configuration.connectionAge
        }?.id
    }

    /// A connection that APNs has refused streams on for long: another may reach a better host.
    var refused: ConnectionID? {
        guard succession == nil else { return nil }
        return connections.first { $0.isActive && $0.isRefusedForLong }?.id
    }

    /// Of several connections, one that has had nothing to do for long.
    func surplus(_ turn: PushTurn) -> Int? {
        guard connections.count(where: \.isActive) > 1 else { return nil }
        let idle = connections.indices.filter {
            connections[$0].isActive
                && connections[$0].idleTime(turn.now) >= turn.configuration.surplusIdle
        }
        // The one whose place is taken goes: the other would be made again for its age.
        let replaced = succession.flatMap { index(of: $0.old) }
        return replaced.flatMap { idle.contains($0) ? $0 : nil } ?? idle.last
    }

    /// Whether it needs another connection.
    ///
    /// - Parameter isBlocked: more of it waits in the store.
    mutating func wantsToGrow(isBlocked: Bool, _ turn: PushTurn) -> Bool {
        let active = connections.filter(\.isActive)
        let isStuck = active.allSatisfy {
            $0.streamLimit <= 1 && $0.oldestStream(turn.now) >= turn.configuration.streamDeadline
        }
        let isFull =
            !active.isEmpty
            && active.allSatisfy {
                // One stream is what APNs leaves to a connection it does not trust yet, or any
                // more: another one would be treated no better, unless this one is stuck.
                $0.openStreams >= $0.streamLimit
                    && ($0.streamLimit > 1
                        || $0.oldestStream(turn.now) >= turn.configuration.streamDeadline)
            }
        // Who refuses streams is not to be asked on more connections.
        let isRefused = active.contains(where: \.holdsBack)
        let isPressed = isFull && !isRefused && (!waiting.isEmpty || isBlocked)
        let wants = growth.observe(isPressed: isPressed, now: turn.now)
        // Wrong tokens are asked about slowly; one connection does, if it answers.
        let most = kind == .probe ? (isStuck ? 2 : 1) : turn.configuration.connectionsMax
        return wants && active.count < most && !isDialing
    }
}
