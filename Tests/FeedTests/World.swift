import Foundation
import MemoryStore
import Model
import Testing
import Wake
import Wire
import WorkingSet

@testable import Feed

/// A store with one app, and the requests tests make of it.
final class World {
    static let app = AppID("chess")
    /// With `ROUSE_MANY_WRITERS` nothing is known from one request to the next, each read is the
    /// engine's, and what was read before its guard was locked is not to be written over.
    static let isSole = ProcessInfo.processInfo.environment["ROUSE_MANY_WRITERS"] == nil
    let store: MemoryStore
    /// Where requests are committed: the store, unless a test puts something before it.
    var engine: any Store
    /// What is known of the store from one request to the next, some answers compared
    /// with the store's; too little room for everything, so that rows go, too.
    let known = WorkingSet(carrying: 64 * 1024, verifiedEvery: 5)
    /// Does the same as if the store were far away.
    let twin = DistantTwin()
    /// Does the same in PostgreSQL; `nil`: nobody does.
    let mirror: PostgresMirror?
    /// Worlds that are made within have a database beside their store.
    @TaskLocal static var isMirrored = false
    var limits = RuleLimits()
    var zones: any ZoneClock = OnlyUTC()
    /// What the last request told the hub.
    var changes: [FeedChange] = []
    var ended: [EndedSession] = []
    var challenged: [SessionKey] = []
    var audiences: [AudienceChange] = []
    /// What the last request or query passed over.
    private(set) var unreadable: [UnreadableRow] = []
    /// What it told the node whose beat it was.
    private(set) var node: NodeStanding?
    /// The devices that lost their push token by the last request.
    private(set) var detached: [DetachedDevice] = []
    /// Whether the last request left something for webhooks.
    private(set) var hasDeliveries = false
    /// What it cost.
    var rows = RowCount()
    /// Told of each transaction.
    var committed: ([StoreOutcome]) throws -> Void = { _ in }
    private var nextNumber: UInt64 = 1000

    init(limits: RuleLimits = RuleLimits()) throws {
        store = MemoryStore(
            tables: Schema.tables, lockRanks: Schema.lockRanks,
            clock: Timestamp(milliseconds: 1_000_000))
        self.limits = limits
        mirror = Self.isMirrored ? try PostgresMirror() : nil
        store.isSoleWriter = Self.isSole
        engine = store
        let boot = BootID(high: 9, low: 9)
        #expect(
            try ask(.start(boot: boot, epochHalf: 77)) == .started(storeEpochHalf: 77))
        try expectDone(.putApp(Self.classic(createdAt: store.now())))
    }

    /// The app with the classic policy: a minute of grace, a minute between silent pushes, and
    /// nothing is learned. Transcripts of the default policy choose it.
    static func classic(createdAt: Timestamp, locale: String = "") -> AppRecord {
        AppRecord(
            app: app, createdAt: createdAt, grace: 60_000, silentSpacing: 60_000, locale: locale,
            adaptive: AdaptivePolicy())
    }

    var now: Timestamp { store.clock }

    func pass(_ duration: Milliseconds) { store.clock = store.clock + duration }

    func fresh<Noun>() -> Identifier<Noun> {
        nextNumber += 1
        return Identifier(high: 1, low: nextNumber)
    }

    @discardableResult
    func ask(_ request: StoreRequest) throws -> StoreAnswer {
        let results = try askTogether([request])
        let outcome = try #require(results.first).get()
        changes = outcome.effects.changes.all
        ended = outcome.effects.ended
        challenged = outcome.effects.challenged
        audiences = outcome.effects.audiences
        unreadable = outcome.effects.unreadable
        node = outcome.effects.node
        hasDeliveries = outcome.effects.hasDeliveries
        detached = outcome.effects.detached
        rows = outcome.rows
        return outcome.answer
    }

    func commit(_ requests: [StoreRequest]) throws(StoreError) -> [Result<StoreOutcome, StoreError>]
    {
        let results = try twin.commit(
            requests, on: engine, over: store, limits: limits, zones: zones
        ) { engine throws(StoreError) in
            try engine.commit(
                requests, through: self.known, limits: self.limits, zones: self.zones)
        }
        try mirror?.commit(requests, at: now, limits: limits, zones: zones, expecting: results)
        return results
    }

    /// What the database holds by now is what the store does.
    func compareMirror() throws { try mirror?.compare(with: store) }

    /// In one transaction.
    func askTogether(
        _ requests: [StoreRequest]
    ) throws -> [Result<StoreOutcome, StoreError>] {
        let results = try commit(requests)
        try committed(results.compactMap { try? $0.get() })
        return results
    }

    func expectDone(_ request: Administration) throws {
        #expect(try ask(.administer(request)) == .done)
    }

    // MARK: sessions

    /// Opens a session with a fresh identity and returns it.
    @discardableResult
    func login(
        _ user: String, _ device: DeviceID, role: RoleKind = .app, token: UInt8 = 0,
        push: PushRegistration? = nil, sync: SyncFrame? = nil
    ) throws -> OpenedSession {
        let answer = try open(
            .identity(UserID(user)), device, role: role, token: token, push: push, sync: sync)
        guard case .opened(let opened) = answer else {
            throw Unexpected(answer: answer)
        }
        return opened
    }

    func open(
        _ credential: Credential, _ device: DeviceID, app: AppID = World.app,
        role: RoleKind = .app, token: UInt8 = 0, push: PushRegistration? = nil,
        sync: SyncFrame? = nil, appState: AppState? = nil
    ) throws -> StoreAnswer {
        nextNumber += 1
        let hash = token == 0 ? fresh(as: Noun.Push.self).bytes : [token]
        return try ask(
            .openSession(
                OpenSession(
                    app: app, device: device, role: role, credential: credential,
                    newTokenHash: hash, freshEpochHalf: nextNumber, boot: BootID(high: 9, low: 9),
                    appState: appState, push: push, sync: sync)))
    }

    private func fresh<Noun>(as: Noun.Type) -> Identifier<Noun> { fresh() }

    // MARK: conversations

    @discardableResult
    func converse(_ users: [String]) throws -> ConversationID {
        let id: ConversationID = fresh()
        let answer = try ask(
            .createConversation(
                app: Self.app, CreateConversation(conversation: id, participants: users),
                idempotency: nil))
        guard case .conversation = answer else { throw Unexpected(answer: answer) }
        return id
    }

    func add(_ users: [String], to conversation: ConversationID) throws -> StoreAnswer {
        try ask(
            .addParticipants(
                app: Self.app, AddParticipants(conversation: conversation, users: users),
                idempotency: nil))
    }

    @discardableResult
    func publish(
        _ text: String, to conversation: ConversationID, from sender: String = "",
        idempotency: Idempotency? = nil, message: MessageID? = nil, push: String? = nil
    ) throws -> MessageRecord {
        let answer = try ask(
            .publish(
                app: Self.app,
                Publication(
                    message: message0(text, to: conversation, message ?? fresh(), push: push),
                    sender: sender, isIDFresh: message == nil),
                idempotency: idempotency))
        guard case .published(let record) = answer else { throw Unexpected(answer: answer) }
        return record
    }

    func message0(
        _ text: String, to conversation: ConversationID, _ id: MessageID, push: String? = nil
    ) -> SendMessage {
        SendMessage(
            conversation: conversation, message: id,
            parts: [Part(mimeType: "text/plain", content: Array(text.utf8))],
            push: PushText(title: "", body: push ?? text))
    }

    func mutate(
        _ session: SessionKey, _ number: UInt64, _ operation: Mutation.Operation,
        waited: UInt32 = 0
    ) throws -> MutationResult {
        let mutation = Mutation(number: number, delayMs: waited, operation: operation)
        let answer = try ask(.mutate(Mutate(session: session, mutation: mutation)))
        guard case .mutated(let result, _) = answer else { throw Unexpected(answer: answer) }
        return result
    }

    // MARK: reading

    func page(
        _ user: String, after: UInt64 = 0, bytes: Int = 1 << 20, device: DeviceID? = nil,
        isForgiving: Bool = false
    ) throws -> Page {
        let query = PageQuery(
            app: Self.app, user: UserID(user), device: device ?? DeviceID(high: 0, low: 0),
            after: after, bytes: bytes)
        guard case .page(let page) = try read(.page(query), isForgiving: isForgiving) else {
            throw Unexpected(answer: .done)
        }
        return page
    }

    func read(_ query: StoreQuery, isForgiving: Bool = false) throws -> StoreReading {
        var reading = StoreReading.nothing
        unreadable = []
        try store.read { snapshot throws(StoreError) in
            reading = try Rules.read(
                query, in: isForgiving ? ForgivingSnapshot(snapshot) : snapshot,
                now: self.store.now(), limits: self.limits
            ) { self.unreadable.append($0) }
            guard case .page = query, !isForgiving else { return }
            var unreadable: [UnreadableRow] = []
            let oneByOne = try Rules.read(
                query, in: PointReads(snapshot), now: self.store.now(), limits: self.limits
            ) { unreadable.append($0) }
            #expect(reading == oneByOne)
            #expect(self.unreadable == unreadable)
        }
        return reading
    }

    func record<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws -> R? {
        var found: R?
        try store.read { snapshot throws(StoreError) in
            found = try snapshot.record(type, key)
        }
        return found
    }

    func all<R: Record>(_ type: R.Type) throws -> [R] {
        var found: [R] = []
        try store.read { snapshot throws(StoreError) in
            found = try snapshot.records(type, Scan(limit: 100_000))
        }
        return found
    }

    /// The memberships with something unread.
    func unread() throws -> [ParticipantRecord] {
        try all(ParticipantRecord.self).filter { $0.unread > 0 }
    }

    /// The rows of a feed.
    func rows(_ user: String) throws -> [EntryRecord] {
        var found: [EntryRecord] = []
        try store.read { snapshot throws(StoreError) in
            found = try snapshot.records(
                EntryRecord.self, Scan(prefix: [.app(Self.app), .text(user)], limit: 100_000))
        }
        return found
    }

    func head(_ user: String) throws -> UInt64 {
        try record(UserRecord.self, [.app(Self.app), .text(user)])?.head ?? 0
    }

    func finishFanOut() throws {
        while case .progressed(_, let more) = try ask(.continueFanOut(recipients: 50)), more {}
    }
}

struct Unexpected: Error { let answer: StoreAnswer }

extension StoreAnswer {
    var refusal: Code? {
        if case .refused(let code, _) = self { return code }
        return nil
    }
}

extension Entry {
    /// A short word for transcripts: kind and what it is about.
    var word: String {
        switch body {
        case .conversationState: "conversation"
        case .participant(let state): "participant \(state.user)"
        case .message(let state): "message \(state.position)"
        case .receipt(let state):
            "receipt \(state.user) \(state.deliveredThrough) \(state.readThrough)"
        case .readMark(let state): "read \(state.through)"
        case .tombstone(let state): "tombstone \(state.position)"
        case .metadata(let state): "metadata \(state.values.count)"
        case .announcement: "announcement"
        case .conversationSettings(let state): state.muted ? "muted" : "not muted"
        case .block(let state): state.blocked ? "block \(state.user)" : "unblock \(state.user)"
        case nil: "nothing"
        }
    }
}
