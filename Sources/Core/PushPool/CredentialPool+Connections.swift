import Feed
import Model
import Wake

/// The connections of a credential: when one is made, given up and replaced, and what happens to
/// its pushes.
extension CredentialPool {
    // MARK: - Making and giving up

    /// Begins a connection of a lane unless one is under way or it is too early.
    mutating func connect(
        _ index: Int, _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) {
        guard !lanes[index].isDialing, !isRetired, mayConnect(lanes[index], now: turn.now)
        else { return }
        // A provider token comes while the connection is made.
        if case .unusable(let problem) = authority(&turn, &tokens) {
            return rest(.max, reason: problem, &turn)
        }
        connectRate.began(now: turn.now)
        lastNumber += 1
        let id = ConnectionID(pool: serial, lane: lanes[index].kind, number: lastNumber)
        lanes[index].connections.append(
            PushConnection(id, usesTokens: provider != nil, turn))
        turn.actions.append(.dial(id, credential))
    }

    /// When the next connection of a lane may be begun; `nil`: now.
    func nextConnect(_ lane: Lane, now: Instant) -> Instant? {
        let times = [lane.redial.nextAt, connectRate.nextAt(lane.kind, now: now)]
        return times.compactMap { $0 }.filter { $0 > now }.max()
    }

    func mayConnect(_ lane: Lane, now: Instant) -> Bool { nextConnect(lane, now: now) == nil }

    /// Another connection takes the place of this one, which goes on until then.
    ///
    /// - Parameters:
    ///   - isUrgent: APNs will refuse everything on it.
    ///   - works: it takes pushes as ever: it goes on until the other one has had an answer.
    mutating func replace(
        _ connection: ConnectionID, reason: String, isUrgent: Bool = false, works: Bool = false,
        _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) {
        let index = Self.index(of: connection.lane)
        guard !lanes[index].settles(connection, isUrgent: isUrgent),
            mayConnect(lanes[index], now: turn.now)
        else { return }
        guard lanes[index].mayReplace(connection, isUrgent: isUrgent, turn) else { return }
        tell(.replaced(reason: reason), of: connection, &turn)
        connect(index, &turn, &tokens)
        lanes[index].succeeds(connection, waitsForAnswer: works)
    }

    /// A connection that APNs allows no stream on, while pushes wait, is given up as one that came
    /// to nothing.
    mutating func giveUpShut(
        _ index: Int, _ blocked: Set<PushLane>, _ turn: inout PushTurn
    ) {
        guard !lanes[index].waiting.isEmpty || blocked.contains(PushLane(key, lanes[index].kind)),
            let place = lanes[index].connections.firstIndex(where: { $0.isShut(turn) })
        else { return }
        let connection = lanes[index].connections[place]
        lanes[index].leaves(connection.id)
        lanes[index].connections[place].retire()
        if !connection.hasAnswered { lanes[index].lastFailure = ConnectionLoss.shut.explanation }
        let retry = lost(connection, &turn)
        tell(
            .lost(.shut, hasAnswered: connection.hasAnswered, retry: retry), of: connection.id,
            &turn)
        closeFinished(index, &turn)
    }

    /// Old connections are replaced, and of several idle ones all but one go.
    mutating func renew(
        _ index: Int, _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) {
        guard !isRetired else { return }
        if let old = lanes[index].aged(turn) {
            replace(old, reason: "age", works: true, &turn, &tokens)
        }
        if let refused = lanes[index].refused {
            replace(refused, reason: "refused streams", works: true, &turn, &tokens)
        }
        if let idle = lanes[index].surplus(turn) {
            lanes[index].leaves(lanes[index].connections[idle].id)
            lanes[index].connections[idle].retire()
            closeFinished(index, &turn)
        }
    }

    mutating func grow(
        _ index: Int, _ blocked: Set<PushLane>, _ turn: inout PushTurn,
        _ tokens: inout ProviderTokens
    ) {
        let lane = PushLane(key, lanes[index].kind)
        guard lanes[index].wantsToGrow(isBlocked: blocked.contains(lane), turn), pause == nil
        else { return }
        let count = lanes[index].connections.count(where: \.isActive) + 1
        turn.tell(place(lane.lane), .credential(.connectionAdded(count)))
        connect(index, &turn, &tokens)
    }

    /// Closes what is retired and has no stream left.
    mutating func closeFinished(_ index: Int, _ turn: inout PushTurn) {
        lanes[index].connections.removeAll { connection in
            guard connection.isRetired, connection.openStreams == 0 else { return false }
            turn.actions.append(.close(connection.id, saysGoodbye: true))
            return true
        }
    }

    // MARK: - Time

    mutating func tickConnections(
        _ index: Int, _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) {
        for id in lanes[index].connections.map(\.id) {
            guard let place = lanes[index].index(of: id) else { continue }
            let expiry = lanes[index].connections[place].tick(&turn)
            for push in expiry.unanswered { unanswered(push, id, &turn) }
            if expiry.isSuspect { replace(id, reason: "silent streams", &turn, &tokens) }
            if let loss = expiry.loss {
                turn.actions.append(.close(id, saysGoodbye: false))
                ended(id, loss, inOrder: false, &turn)
            }
        }
        closeFinished(index, &turn)
    }

    // MARK: - Events

    /// - Returns: whether streams may have become free.
    mutating func receive(
        _ events: [ConnectionEvent], on id: ConnectionID, _ turn: inout PushTurn,
        _ tokens: inout ProviderTokens
    ) -> Bool {
        var hasRoom = false
        let index = Self.index(of: id.lane)
        for event in events {
            // It may have ended with the event before.
            guard let place = lanes[index].index(of: id) else { break }
            if receive(event, at: (index, place), &turn, &tokens) { hasRoom = true }
        }
        closeFinished(index, &turn)
        return hasRoom
    }

    private mutating func receive(
        _ event: ConnectionEvent, at spot: (lane: Int, place: Int), _ turn: inout PushTurn,
        _ tokens: inout ProviderTokens
    ) -> Bool {
        let (lane, place) = spot
        let id = lanes[lane].connections[place].id
        switch event {
        case .up: up(lane, place, &turn)
        case .heard:
            lanes[lane].connections[place].heard(turn.now)
            return false
        case .allows(let count): lanes[lane].connections[place].allows(count, turn.now)
        case .answered(let tag, let response?):
            answered(tag, response, lane, place, &turn, &tokens)
        case .answered(let tag, nil), .reset(let tag):
            guard let push = lanes[lane].connections[place].take(tag) else { return false }
            unanswered(push, id, &turn)
        case .refused(let tags):
            let (pushes, wait) = lanes[lane].connections[place].refused(tags, turn)
            if lanes[lane].connections[place].isActive, !pushes.isEmpty {
                tell(.refused(streams: pushes.count, wait: wait), of: id, &turn)
            }
            returned(pushes, lane, &turn)
        case .goAway(let reason, let code): goAway(reason, code, lane, place, &turn, &tokens)
        case .pingAnswered: lanes[lane].connections[place].pingAnswered()
        case .notTaken(let tag):
            guard let push = lanes[lane].connections[place].notTaken(tag) else { return false }
            giveBack([push], lane, &turn)
            return false
        case .impossible(let tag, let text):
            guard let push = lanes[lane].connections[place].take(tag) else { return false }
            turn.tell(self.place(id.lane), .push(push, .impossible(text)))
            // There is no HTTP status: the request was never made, and never can be.
            finish(push, .answered(status: 0, reason: "Unsendable", timestamp: nil), &turn)
        case .behind:
            lanes[lane].connections[place].isBehind = true
            return false
        case .caughtUp: lanes[lane].connections[place].isBehind = false
        case .ended(let loss, let inOrder): ended(id, loss, inOrder: inOrder, &turn)
        case .unusable(let problem): notBegun(spot, rest: .max, problem, &turn)
        case .untimely(let problem):
            notBegun(spot, rest: turn.configuration.pause, problem, &turn)
        }
        return true
    }

    private mutating func notBegun(
        _ spot: (lane: Int, place: Int), rest pause: Milliseconds, _ problem: String,
        _ turn: inout PushTurn
    ) {
        let ended = lanes[spot.lane].connections.remove(at: spot.place)
        lanes[spot.lane].leaves(ended.id)
        rest(pause, reason: problem, &turn)
    }

    private mutating func up(_ lane: Int, _ place: Int, _ turn: inout PushTurn) {
        lanes[lane].connections[place].up(turn)
        let id = lanes[lane].connections[place].id
        tell(.connected, of: id, &turn)
        lanes[lane].cameForward(id)
    }

    /// A push was written, and nothing comes.
    mutating func unanswered(
        _ push: HeldPush, _ id: ConnectionID, _ turn: inout PushTurn
    ) {
        turn.tell(place(id.lane), .push(push, .unanswered(connection: id.number)))
        finish(push, .unanswered, &turn)
    }

    /// APNs did nothing with these: they are offered again, but not without end.
    private mutating func returned(
        _ pushes: [HeldPush], _ lane: Int, _ turn: inout PushTurn
    ) {
        var again: [HeldPush] = []
        for var push in pushes {
            push.offers += 1
            if push.offers >= turn.configuration.offersMax {
                unsent(push, &turn)
            } else {
                again.append(push)
            }
        }
        giveBack(again, lane, &turn)
    }

    /// They wait again, before all others.
    private mutating func giveBack(
        _ pushes: [HeldPush], _ lane: Int, _ turn: inout PushTurn
    ) {
        var waiting: [HeldPush] = []
        for push in pushes {
            if pause != nil || isRetired || push.isWithdrawn
                || topics.rests(push.job.request.topic, now: turn.now)
            {
                unsent(push, &turn)
            } else {
                waiting.append(push)
            }
        }
        lanes[lane].waiting.giveBack(waiting)
    }

    private mutating func goAway(
        _ reason: String, _ code: UInt32, _ lane: Int, _ place: Int, _ turn: inout PushTurn,
        _ tokens: inout ProviderTokens
    ) {
        let connection = lanes[lane].connections[place]
        tell(
            .goAway(reason: reason, code: code, open: connection.openStreams),
            of: connection.id, &turn)
        lanes[lane].connections[place].leave()
        lanes[lane].leaves(connection.id)
        if connection.isActive {
            if connection.isInVain(turn) {
                lanes[lane].lastFailure = "GOAWAY" + (reason.isEmpty ? "" : " \(reason)")
            }
            lost(connection, &turn)
        }
        lastGoAway = reason
        act(onGoAway: reason, connection, &turn, &tokens)
    }

    // MARK: - The end of one

    /// A connection takes no more pushes, or could not be made.
    ///
    /// - Returns: after how long another may be begun.
    @discardableResult
    private mutating func lost(
        _ connection: PushConnection, _ turn: inout PushTurn
    ) -> Milliseconds {
        let index = Self.index(of: connection.id.lane)
        lanes[index].redial.lost(
            age: connection.age(turn.now), hasAnswered: connection.hasAnswered,
            chance: turn.chance.next(), now: turn.now)
        return nextConnect(lanes[index], now: turn.now).map { $0.since(turn.now) } ?? 0
    }

    private mutating func ended(
        _ id: ConnectionID, _ loss: ConnectionLoss, inOrder: Bool, _ turn: inout PushTurn
    ) {
        let index = Self.index(of: id.lane)
        guard let place = lanes[index].index(of: id) else { return }
        var connection = lanes[index].connections.remove(at: place)
        let isInVain = connection.isInVain(turn)
        lanes[index].leaves(id)
        for push in connection.takeAll() { unanswered(push, id, &turn) }
        switch connection.standing {
        case .dialing:
            lanes[index].lastFailure = loss.explanation
            let retry = lost(connection, &turn)
            tell(.notMade(loss, retry: retry), of: id, &turn)
        case .active:
            if isInVain { lanes[index].lastFailure = loss.explanation }
            let retry = lost(connection, &turn)
            tell(
                .lost(loss, hasAnswered: connection.hasAnswered, retry: retry), of: id, &turn)
        case .leaving(let isRetired):
            if !(isRetired && inOrder) { tell(.left(loss), of: id, &turn) }
        }
    }

    private func tell(
        _ report: ConnectionReport, of id: ConnectionID, _ turn: inout PushTurn
    ) {
        turn.tell(place(id.lane), .connection(id.number, report))
    }
}
