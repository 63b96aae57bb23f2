import Crypto
import Model
import Wire

/// The server's side of one connection of the client under test. What a case does not judge is
/// answered as a good server does. Of one thread.
final class Link {
    let peer: Peer
    let trial: ClientTrial
    private(set) var hello = Hello()
    private(set) var helloRequest: UInt16 = 0
    /// The nonce of the newest CHALLENGE.
    var nonce: [UInt8] = []
    /// Entries of a page.
    var pageLimit = Int.max
    var answersSyncs = true
    var answersMutations = true
    var answersPings = true

    // What came.
    private(set) var acks: [Ack] = []
    private(set) var syncs: [(frame: SyncFrame, request: UInt16)] = []
    private(set) var mutations: [(mutation: Mutation, request: UInt16)] = []
    private(set) var appStates: [AppState] = []
    private(set) var pings = 0
    private(set) var close: Close?
    private(set) var isOver = false
    /// When each frame came.
    private(set) var times: [Moment] = []
    /// The highest `applied` of an ACK or a SYNC of this connection.
    private(set) var applied: UInt64 = 0

    init(_ peer: Peer, trial: ClientTrial) {
        self.peer = peer
        self.trial = trial
    }

    // MARK: Login

    /// HELLO, which must come first (SES-1).
    @discardableResult
    func greet() throws -> Hello {
        guard case .frame(let frame)? = try peer.next() else {
            throw CaseEnd.failed("no frame came on a new connection")
        }
        guard case .hello(let hello) = frame.body else {
            throw CaseEnd.failed("the first frame is \(frame.summary), not HELLO")
        }
        self.hello = hello
        helloRequest = frame.request
        times.append(.now)
        return hello
    }

    /// CHALLENGE, and the identity token that answers it; the token is judged.
    func challenge(_ reason: ChallengeReason, request: UInt16? = nil) throws {
        nonce = Random.bytes(32)
        try peer.send(
            .challenge(Challenge(nonce: nonce, lifetimeMs: 60_000, reason: reason)),
            request: request ?? helloRequest)
        try takeToken()
    }

    func takeToken() throws {
        let (answer, _) = try expect(.authenticate)
        if let fault = trial.fault(of: answer.identityToken, nonce: nonce) {
            throw CaseEnd.failed("the identity token: \(fault)")
        }
    }

    func welcome(
        features: [String] = ["live"], request: UInt16? = nil,
        _ change: (inout Welcome) -> Void = { _ in }
    ) throws {
        let token = Random.bytes(24)
        trial.tokens.insert(token)
        var welcome = Welcome(
            version: 1, sessionToken: token, sessionTokenLifetimeMs: 86_400_000,
            serverTimeMs: 1_700_000_000_000, epoch: trial.feed.epoch, mutationFloor: trial.floor,
            keepaliveMs: 180_000,
            limits: AdvertisedLimits(
                bodyBytes: 262_144, windowBytes: 262_144, windowDeltas: 256,
                mutationsUnanswered: 32, messageBytes: 65_536, participantsPerRequest: 256),
            features: features.filter { hello.features.contains($0) }, node: "script",
            user: trial.user)
        change(&welcome)
        try peer.send(.welcome(welcome), request: request ?? helloRequest)
    }

    /// HELLO to WELCOME, and the answer to the inline SYNC if it was not dropped (SES-8).
    func logIn(
        features: [String] = ["live"], _ change: (inout Welcome) -> Void = { _ in }
    ) throws {
        try greet()
        let isKnown = trial.tokens.contains(hello.sessionToken)
        if !isKnown { try challenge(hello.sessionToken.isEmpty ? .first : .revoked) }
        try welcome(features: features, change)
        if isKnown, let sync = hello.sync { try received(sync, request: helloRequest) }
    }

    /// Until the client has everything there is.
    func settle(within time: Duration? = nil) throws {
        try pump(until: "an ACK of \(trial.feed.head)", within: time) { link in
            !link.syncs.isEmpty && link.applied >= link.trial.feed.head
        }
    }

    // MARK: Telling

    /// Pushes what is new, as to a client in live mode (SYN-20).
    func push() throws {
        try peer.send(.delta(trial.feed.delta(from: trial.feed.cursor(applied))))
    }

    func answer(_ sync: SyncFrame, request: UInt16) throws {
        let results = sync.mutations.map { trial.take($0) }
        if sync.mode == .peek { return try answerPeek(sync, request: request) }
        var delta = trial.feed.delta(from: sync.cursor, limit: pageLimit, floor: trial.floor)
        delta.results = results
        try peer.send(.delta(delta), request: request)
    }

    /// The newest first, and the cursor stays (SYN-12).
    private func answerPeek(_ sync: SyncFrame, request: UInt16) throws {
        var delta = trial.feed.delta(from: sync.cursor)
        delta.reset = nil
        delta.entries.reverse()
        if delta.entries.count > pageLimit {
            delta.entries = Array(delta.entries.prefix(pageLimit))
            delta.more = true
        }
        delta.to = delta.from
        try peer.send(.delta(delta), request: request)
    }

    /// CLOSE, and the end of the connection.
    func end(
        _ code: UInt32, _ retry: RetryClass? = nil, after milliseconds: UInt32 = 0
    ) throws {
        let close = Close(
            code: code, retry: retry ?? Code(rawValue: code)?.retryClass ?? .none,
            retryAfterMs: milliseconds)
        try peer.send(.close(close))
        peer.close()
    }

    // MARK: Taking

    /// Frames until one of the type comes; others are answered on the way.
    func expect<Body>(
        _ kind: Kind<Body>, within time: Duration? = nil
    ) throws -> (Body, UInt16) {
        let deadline = try trial.clock.deadline(within: time)
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero, let arrival = try peer.next(within: left) else {
                throw CaseEnd.failed("\(kind.type.name) was expected, nothing came in time")
            }
            guard case .frame(let frame) = arrival else {
                isOver = true
                throw CaseEnd.failed(
                    "\(kind.type.name) was expected, the client ended the connection")
            }
            if let body = frame.body.flatMap(kind.take) {
                times.append(.now)
                return (body, frame.request)
            }
            try take(frame)
        }
    }

    /// Takes and answers what comes until the condition holds.
    func pump(
        until what: String, within time: Duration? = nil, _ condition: (Link) throws -> Bool
    ) throws {
        let deadline = try trial.clock.deadline(within: time)
        while try !condition(self) {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero, let arrival = try peer.next(within: left) else {
                throw CaseEnd.failed("\(what) did not come")
            }
            guard case .frame(let frame) = arrival else {
                isOver = true
                if try condition(self) { return }
                throw CaseEnd.failed("the client ended the connection before \(what)")
            }
            try take(frame)
        }
    }

    /// Takes and answers what comes for so long, or until the connection ends.
    func serve(for time: Duration) throws {
        let end = ContinuousClock.now.advanced(by: time)
        while ContinuousClock.now < end, !isOver {
            guard let arrival = try peer.next(within: ContinuousClock.now.duration(to: end))
            else { return }
            guard case .frame(let frame) = arrival else {
                isOver = true
                return
            }
            try take(frame)
        }
    }

    /// The client ends the connection; what it said last is in `close`.
    func expectEnd(within time: Duration? = nil, _ why: String) throws {
        let deadline = try trial.clock.deadline(within: time)
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero, let arrival = try peer.next(within: left) else {
                throw CaseEnd.failed("the client did not end the connection \(why)")
            }
            guard case .frame(let frame) = arrival else {
                isOver = true
                return
            }
            if close != nil { throw CaseEnd.failed("\(frame.summary) came after CLOSE") }
            try take(frame)
        }
    }

    private func take(_ frame: ReceivedFrame) throws {
        times.append(.now)
        switch frame.body {
        case .ping:
            pings += 1
            if answersPings { try peer.send(.pong(Pong(nextMs: 60_000)), request: frame.request) }
        case .pong, .signal: break
        case .sync(let sync): try received(sync, request: frame.request)
        case .ack(let ack):
            acks.append(ack)
            applied = max(applied, ack.applied)
        case .mutate(let mutation):
            mutations.append((mutation, frame.request))
            guard answersMutations else { break }
            try peer.send(.mutationResult(trial.take(mutation)), request: frame.request)
        case .appState(let state): appStates.append(state)
        case .fetch, .snapshot:
            let code = Code.notFound
            try peer.send(
                .error(ErrorFrame(code: code.rawValue, name: code.name, retry: code.retryClass)),
                request: frame.request)
        case .digest:
            try peer.send(.digestResult(DigestResult()), request: frame.request)
        case .close(let close): self.close = close
        default: throw CaseEnd.failed("\(frame.summary) came")
        }
    }

    private func received(_ sync: SyncFrame, request: UInt16) throws {
        syncs.append((sync, request))
        if sync.cursor?.epoch == trial.feed.epoch { applied = max(applied, sync.applied) }
        if answersSyncs { try answer(sync, request: request) }
    }

    /// ERROR with a code of the registry.
    func refuse(_ code: Code, request: UInt16, after milliseconds: UInt32 = 0) throws {
        try peer.send(
            .error(
                ErrorFrame(
                    code: code.rawValue, name: code.name, retry: code.retryClass,
                    retryAfterMs: milliseconds)),
            request: request)
    }
}
