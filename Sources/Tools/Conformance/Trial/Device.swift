import Model
import Wire

/// A device that behaves: logs in, applies what comes, acknowledges, counts its mutations. What a
/// case judges it does by hand on `peer`. Of one thread.
final class Device {
    let trial: Trial
    let user: String
    let id: DeviceID
    let role: Role
    var features: [String] = []
    var delivery = Delivery.whole
    var appState: AppState? = AppState(phase: .foreground)
    var push: PushRegistration?
    var locale = ""
    /// The newest connection; there is none before `logIn`.
    var peer: Peer {
        guard let connection else { preconditionFailure("\(user) has not logged in yet") }
        return connection
    }
    private var connection: Peer?
    var welcome = Welcome()
    var sessionToken: [UInt8] = []
    var cursor: Cursor?
    var replica = Replica()
    /// Where a DELTA did not fit what the device had (SYN-10, SYN-13).
    private(set) var gaps: [String] = []
    /// The newest `head` heard of.
    private(set) var head: UInt64 = 0
    /// `unread` of the newest DELTA.
    private(set) var unread: UInt32 = 0
    var nextNumber: UInt64 = 1
    private var lastRequest: UInt16 = 0

    init(trial: Trial, user: String, id: DeviceID, role: Role) {
        self.trial = trial
        self.user = user
        self.id = id
        self.role = role
    }

    var applied: UInt64 { cursor?.seq ?? 0 }

    func request() -> UInt16 {
        lastRequest += 1
        return lastRequest
    }

    // MARK: Login

    var hello: Hello {
        var hello = trial.hello(id, role: role, features: features, token: sessionToken)
        hello.appState = appState
        hello.push = push
        hello.locale = locale
        return hello
    }

    /// Connects and logs in, with the session token if there is one; without a SYNC.
    ///
    /// - Returns: whether the server asked for an identity token.
    @discardableResult
    func logIn() throws -> Bool {
        let peer = try trial.connect(delivery)
        connection = peer
        lastRequest = 0
        let number = request()
        try peer.send(.hello(hello), request: number)
        guard let arrival = try peer.next() else {
            throw CaseEnd.failed("no answer to HELLO")
        }
        var isChallenged = false
        guard case .frame(let frame) = arrival else {
            throw CaseEnd.failed("the server closed instead of answering HELLO")
        }
        switch frame.body {
        case .welcome(let body): welcome = body
        case .challenge(let challenge):
            isChallenged = true
            try authenticate(challenge)
            welcome = try peer.expect(.welcome)
        default: throw CaseEnd.failed("HELLO was answered with \(frame.summary)")
        }
        sessionToken = welcome.sessionToken
        if welcome.mutationFloor >= nextNumber { nextNumber = welcome.mutationFloor + 1 }
        return isChallenged
    }

    func authenticate(_ challenge: Challenge) throws {
        let token = try trial.issuer.token(user: user, nonce: challenge.nonce)
        try peer.send(.authenticate(Authenticate(identityToken: token)))
    }

    /// Comes back on a new connection; the old one is left as it is.
    func reconnect() throws { try logIn() }

    // MARK: Feed

    var syncFrame: SyncFrame {
        SyncFrame(cursor: cursor, applied: applied, mode: .advance, reason: .connect)
    }

    /// Sends a SYNC and gives its DELTA, which is not applied.
    func syncAnswer(_ frame: SyncFrame? = nil) throws -> Delta {
        let number = request()
        try peer.send(.sync(frame ?? syncFrame), request: number)
        return try peer.expect(.delta, request: number)
    }

    /// One page: SYNC, apply.
    @discardableResult
    func sync() throws -> Delta {
        let delta = try syncAnswer()
        apply(delta)
        return delta
    }

    /// Pages until there are no more, and the ACK.
    func syncToHead() throws {
        while try sync().more {}
        try acknowledge()
    }

    func acknowledge() throws { try peer.send(.ack(Ack(applied: applied))) }

    /// As SYN-13 asks, but for what breaks it: that is noted and applied all the same.
    func apply(_ delta: Delta) {
        head = max(head, delta.head)
        unread = delta.unread
        guard let from = delta.from, let to = delta.to else {
            gaps.append("a DELTA without from or to")
            return
        }
        if delta.reset != nil {
            replica.reset()
        } else if let cursor {
            if to.epoch != cursor.epoch { gaps.append("another epoch without a reset") }
            if from.seq > cursor.seq { gaps.append("from \(from.seq), but \(cursor.seq) is held") }
            if to.seq <= cursor.seq { return }
        }
        for entry in delta.entries { replica.apply(entry) }
        cursor = to
    }

    /// Takes what the server tells, as a client does, until the condition holds.
    func pump(until what: String, _ condition: (Replica) -> Bool) throws {
        try wait(until: what) { condition($0.replica) }
    }

    /// The same, with the whole device to look at.
    func wait(until what: String, _ condition: (Device) -> Bool) throws {
        let deadline = try trial.clock.deadline(within: nil)
        while true {
            let told = peer.passed
            peer.passed = []
            for frame in told { try take(frame) }
            if condition(self) { return }
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero, let arrival = try peer.next(within: left) else {
                throw CaseEnd.failed("\(user): \(what) did not come")
            }
            guard case .frame(let frame) = arrival else {
                throw CaseEnd.failed("\(user): the server ended the connection before \(what)")
            }
            try take(frame)
        }
    }

    /// Syncs again and again until the condition holds: for what brings no SYNC_REQUEST of its own
    /// (MSG-21).
    func poll(until what: String, _ condition: (Replica) -> Bool) throws {
        let deadline = try trial.clock.deadline(within: nil)
        while true {
            try syncToHead()
            if condition(replica) { return }
            guard ContinuousClock.now < deadline else {
                throw CaseEnd.failed("\(user): \(what) did not come")
            }
            _ = try peer.frames(during: .milliseconds(200))
        }
    }

    private func take(_ frame: ReceivedFrame) throws {
        switch frame.body {
        case .ping: try peer.send(.pong(Pong(nextMs: 60_000)), request: frame.request)
        case .delta(let delta):
            apply(delta)
            try acknowledge()
        case .syncRequest(let asked):
            head = max(head, asked.head)
            if asked.head > applied { try syncToHead() } else { try acknowledge() }
        case .signal, .drain: break
        default:
            guard frame.body == nil, frame.problem == nil, frame.isIgnorable else {
                throw CaseEnd.failed("\(user): \(frame.summary) came unasked")
            }
        }
    }

    // MARK: Mutations

    /// Carries an operation out under the next number.
    @discardableResult
    func mutate(_ operation: Mutation.Operation) throws -> MutationResult {
        let number = nextNumber
        nextNumber += 1
        return try mutate(Mutation(number: number, operation: operation))
    }

    /// MUTATE and its result.
    @discardableResult
    func mutate(_ mutation: Mutation) throws -> MutationResult {
        let request = request()
        try peer.send(.mutate(mutation), request: request)
        return try peer.expect(.mutationResult, request: request)
    }

    func createConversation(with users: [String]) throws -> ConversationID {
        let conversation: ConversationID = trial.newID()
        let result = try mutate(
            .createConversation(
                CreateConversation(conversation: conversation, participants: users)))
        try requireEqual(result.code, 0, "create conversation")
        return conversation
    }

    static func message(
        _ text: String, _ id: MessageID, to conversation: ConversationID
    ) -> Mutation.Operation {
        .sendMessage(
            SendMessage(
                conversation: conversation, message: id,
                parts: [Part(mimeType: "text/plain", content: Array(text.utf8))],
                push: PushText(title: "conform", body: text)))
    }

    /// Sends a line, which must be taken.
    @discardableResult
    func say(_ text: String, in conversation: ConversationID) throws -> MessageID {
        let id: MessageID = trial.newID()
        let result = try mutate(Self.message(text, id, to: conversation))
        try requireEqual(result.code, 0, "send message `\(text)`")
        return id
    }

    func close() throws {
        try peer.send(.close(Close(code: Code.goingAway.rawValue, applied: applied)))
        peer.close()
    }
}
