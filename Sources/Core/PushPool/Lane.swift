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
    /// Gives way to the connection that is being made.
    var replaced: ConnectionID?
    private var replacedAt: Instant?
    /// When the next connection may be begun, by what came of the last ones.
    var redial: Redial
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

    func status(_ now: Instant) -> PushLaneStatus {
        let active = connections.filter(\.isActive)
        return PushLaneStatus(
            lane: kind, connections: active.count, open: openStreams,
            allowed: active.reduce(0) { $0 + $1.streamLimit }, waiting: waiting.count,
            oldestStream: connections.map { $0.oldestStream(now) }.max() ?? 0)
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
        for index in connections.indices {
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

    // MARK: - Connections

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
        connections.first {
            $0.isActive && $0.age(turn.now) >= turn.configuration.connectionAge
        }?.id
    }

    /// Of several connections, one that has had nothing to do for long.
    func surplus(_ turn: PushTurn) -> Int? {
        guard connections.count(where: \.isActive) > 1 else { return nil }
        return connections.lastIndex {
            $0.isActive && $0.idleTime(turn.now) >= turn.configuration.surplusIdle
        }
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
