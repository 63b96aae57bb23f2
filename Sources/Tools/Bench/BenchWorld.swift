import Feed
import Model
import Wake
import Wire

/// A device with a session: what its app would know.
struct BenchPhone {
    var session: SessionKey
    var tokenHash: [UInt8]
    var epoch: Epoch
    /// The last mutation number used.
    var mutation: UInt64 = 0
    var push: PushRegistration

    var app: AppID { session.app }
    var user: UserID { session.user }
}

/// Two users who write to each other.
struct BenchPair {
    var first: BenchPhone
    var second: BenchPhone
    var conversation: ConversationID
    /// A conversation of eight users, of whom `first` is one; made when it is first needed.
    var room: ConversationID?
}

/// Makes requests that nobody measures, and knows what came of them.
final class BenchWorld {
    static let app = AppID("bench")
    static let topic = "example.bench"
    let writer: BenchWriter
    let scale: BenchScale
    private(set) var boot = BootID(high: 1, low: 1)
    private var random = BenchRandom(state: 1)
    private var made: UInt64 = 0
    private var lastAlive = Timestamp(milliseconds: 0)

    init(_ writer: BenchWriter, _ scale: BenchScale) {
        self.writer = writer
        self.scale = scale
    }

    var now: Timestamp { writer.store.now() }

    /// As UUIDv7: rising with time, with chance below.
    func fresh<Noun>() -> Identifier<Noun> {
        made += 1
        return Identifier(high: 1 << 60 | made, low: random.next())
    }

    func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    // MARK: Asking

    /// As the server does every 2 s; else what follows would be taken for the end of an outage.
    func stayAlive() throws {
        guard now.since(lastAlive) >= 1_900 else { return }
        lastAlive = now
        _ = try writer.commit([.keepAlive])
    }

    /// The store's clock goes on, and the server stays alive on the way.
    func pass(_ duration: Milliseconds) throws {
        var left = duration
        while left > 0 {
            let step = min(left, 2_000)
            writer.store.ahead += step
            left -= step
            try stayAlive()
        }
    }

    @discardableResult
    func ask(_ request: StoreRequest) throws -> StoreAnswer {
        try ask([request])[0]
    }

    func ask(_ requests: [StoreRequest]) throws -> [StoreAnswer] {
        try stayAlive()
        let outcomes = try writer.commit(requests).outcomes
        return try zip(requests, outcomes).map { try sound($1, of: $0).answer }
    }

    /// The outcome, if it is one of a request that was carried out.
    func sound(
        _ outcome: Result<StoreOutcome, StoreError>, of request: StoreRequest
    ) throws -> StoreOutcome {
        let outcome = try outcome.get()
        let name = BenchRequest(request)
        switch outcome.answer {
        case .refused(let code, let detail):
            throw BenchError("\(name.rawValue) is refused: \(code.name), \(detail)")
        case .ended, .idempotencyMismatch, .pushFinished(nil), .deliveryFinished(nil):
            throw BenchError("\(name.rawValue): \(outcome.answer)")
        case .failed(let error): throw error
        case .mutated(let result, _) where result.code != 0:
            throw BenchError("\(name.rawValue) is refused: code \(result.code)")
        case .opened(let opened) where opened.sync.reset != nil && opened.sync.reset != .noCursor:
            throw BenchError("\(name.rawValue): the cursor is refused")
        default: return outcome
        }
    }

    /// A process begins: sessions are its own from now on.
    func nextBoot() -> BootID {
        boot = fresh()
        return boot
    }

    // MARK: Making

    func makeApp(_ app: AppID) throws {
        try ask(.administer(.putApp(AppRecord(app: app, createdAt: now))))
        try ask(.administer(.putPushCredential(credential(of: app))))
    }

    func credential(of app: AppID) -> PushCredentialRecord {
        PushCredentialRecord(
            app: app, environment: .development, keyID: "KEY", team: "TEAM", privateKeyPEM: "",
            topics: Self.topic, host: "", port: 443, changedAt: now)
    }

    func registration() -> PushRegistration {
        PushRegistration(token: bytes(32), environment: .development, topic: Self.topic)
    }

    /// A first login.
    func login(_ app: AppID, _ user: String) throws -> BenchPhone {
        try login(app, [user])[0]
    }

    func login(_ app: AppID, _ users: [String]) throws -> [BenchPhone] {
        let requests = users.map { user in
            OpenSession(
                app: app, device: fresh(), role: .app, credential: .identity(UserID(user)),
                newTokenHash: bytes(32), freshEpochHalf: random.next() >> 1, boot: boot,
                clientName: "bench", clientVersion: "1.0", push: registration(),
                place: DevicePlace(locale: "en", timeZone: "Europe/Berlin", utcOffset: 1_500),
                sync: SyncFrame(mode: .advance, reason: .connect))
        }
        let answers = try ask(requests.map { .openSession($0) })
        return try zip(requests, answers).map { request, answer in
            guard case .opened(let opened) = answer, let push = request.push else {
                throw BenchError("a login: \(answer)")
            }
            return BenchPhone(
                session: opened.session, tokenHash: request.newTokenHash,
                epoch: opened.sync.epoch, push: push)
        }
    }

    /// A reconnection with a session token, at the feed's head.
    func reopening(_ phone: inout BenchPhone, push: PushRegistration? = nil) throws -> OpenSession {
        let head = try head(of: phone)
        let presented = phone.tokenHash
        phone.tokenHash = bytes(32)
        phone.push = push ?? phone.push
        return OpenSession(
            app: phone.app, device: phone.session.device, role: .app,
            credential: .sessionToken(hash: presented), newTokenHash: phone.tokenHash,
            freshEpochHalf: random.next() >> 1, boot: boot, clientName: "bench",
            clientVersion: "1.0", push: phone.push,
            place: DevicePlace(locale: "en", timeZone: "Europe/Berlin", utcOffset: 1_500),
            sync: SyncFrame(
                cursor: Cursor(epoch: phone.epoch, seq: head), applied: head, mode: .advance,
                reason: .connect))
    }

    func reopen(_ phone: inout BenchPhone) throws {
        guard case .opened(let opened) = try ask(.openSession(try reopening(&phone))) else {
            throw BenchError("a login that opens nothing")
        }
        phone.session = opened.session
    }

    func head(of phone: BenchPhone) throws -> UInt64 { try head(phone.app, phone.user) }

    func head(_ app: AppID, _ user: UserID) throws -> UInt64 {
        try writer.read { snapshot throws(StoreError) in
            try snapshot.record(UserRecord.self, [.app(app), .user(user)])?.head ?? 0
        }
    }

    func converse(
        _ app: AppID, _ users: [UserID]
    ) throws -> ConversationID {
        let id: ConversationID = fresh()
        try ask(
            .createConversation(
                app: app,
                CreateConversation(conversation: id, participants: users.map(\.name)),
                idempotency: nil))
        return id
    }

    // MARK: Messages

    /// 100 bytes of content and a push text.
    func message(to conversation: ConversationID, _ id: MessageID? = nil) -> SendMessage {
        SendMessage(
            conversation: conversation, message: id ?? fresh(),
            parts: [Part(mimeType: "text/plain", content: bytes(100))],
            push: PushText(title: "Anna", body: "I shall be there at nine, wait for me"))
    }

    func publishing(
        _ message: SendMessage, _ app: AppID = BenchWorld.app, from sender: String
    ) -> StoreRequest {
        let key: MessageID = fresh()
        return .publish(
            app: app, Publication(message: message, sender: sender),
            idempotency: Idempotency(key: key.description, requestHash: bytes(32)))
    }

    func publishing(in pair: BenchPair, _ id: MessageID? = nil) -> StoreRequest {
        publishing(
            message(to: pair.conversation, id), pair.first.app, from: pair.first.user.name)
    }

    func mutation(_ phone: inout BenchPhone, _ operation: Mutation.Operation) -> StoreRequest {
        phone.mutation += 1
        return .mutate(
            Mutate(
                session: phone.session,
                mutation: Mutation(number: phone.mutation, operation: operation)))
    }
}

/// A seeded generator (SplitMix64): a run can be repeated.
struct BenchRandom {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
