import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// Something that operations are about.
enum Thing: Hashable, CustomStringConvertible {
    case message(MessageID)
    case announcement(MessageID)
    case conversation(ConversationID)
    case user(Int)
    case device(DeviceID)
    case app(AppID)

    var kind: ObjectKind {
        switch self {
        case .message: .message
        case .announcement: .announcement
        case .conversation: .conversation
        case .user: .user
        case .device: .device
        case .app: .app
        }
    }

    var description: String {
        switch self {
        case .message(let id): "message \(id.low)"
        case .announcement(let id): "announcement \(id.low)"
        case .conversation(let id): "conversation \(id.low)"
        case .user(let who): PairWorld.names[who]
        case .device(let device): "device \(device.high) \(device.low)"
        case .app(let app): "app \(app.name)"
        }
    }
}

/// One request of an operation, with the objects it is about and whose doing it is on each.
struct Plan {
    var request: StoreRequest
    var touches: [(thing: Thing, party: Int?)] = []
}

/// A few users with two devices each, what they have said so far, and every operation there is.
final class PairWorld {
    let world: World
    var chance: SeededGenerator
    /// Two of them are the same to `String`, and not the same user.
    static let names = ["anna", "ben", "ren\u{E9}", "rene\u{301}", "zoe"]
    static let side = AppID("go")

    var conversations: [ConversationID] = []
    var messages: [MessageID] = []
    var announcements: [MessageID] = []
    var place: [MessageID: ConversationID] = [:]
    private(set) var devices: [DeviceID] = []
    /// Who last logged in on it.
    var owner: [DeviceID: Int] = [:]
    var sessions: [DeviceID: SessionKey] = [:]
    private var numbers: [SessionPlace: UInt64] = [:]
    /// What each device holds, which reads its feed now and then.
    var replicas: [DeviceID: Replica] = [:]
    /// As they were after the last step.
    var users: [UserRecord?] = []
    /// For each user a device that reads the feed after every step.
    var followers: [Follower] = []
    /// The conversations with a change on its way, and the oldest of these.
    var moving: [ConversationID: UInt64] = [:]
    var movingKinds: Set<FanOutKind> = []
    var isAppSuspended = false
    let store: WatchedStore
    var webhooks: [AppID: [WebhookKey]] = [:]
    var campaigns: [AppID: [CampaignID]] = [:]
    var jobs: [PushJob] = []
    var deliveries: [DeliveryJob] = []

    private struct SessionPlace: Hashable {
        var device: DeviceID
        var user: Int
    }

    init(seed: UInt64) throws {
        var limits = RuleLimits()
        limits.directRecipients = 3
        limits.directEntries = 12
        limits.fanOutStep = 3
        limits.receiptStep = 3
        limits.snapshotMessages = 100
        limits.snapshotMessagesMax = 100
        // Memory is not what is looked for here.
        limits.campaigns = 1000
        world = try World(limits: limits)
        store = WatchedStore(world.store)
        world.engine = store
        chance = SeededGenerator(seed: seed)
        try world.expectDone(.putApp(World.classic(createdAt: world.now)))
        try world.expectDone(.putPushCredential(credential(of: World.app, "plain")))
        for path in ["", "too"] {
            let hook = NewWebhook(
                key: WebhookKey(app: World.app, webhook: world.fresh()),
                url: "https://chess.example/\(path)", kinds: .all, secret: "first", series: 7)
            try world.ask(.webhooks(.create(hook)))
        }
        for who in Self.names.indices {
            for number in 0..<2 as Range<UInt64> {
                let device = DeviceID(high: UInt64(who) + 1, low: number + 1)
                devices.append(device)
                owner[device] = who
                replicas[device] = Replica(of: Self.names[who])
            }
        }
        users = Self.names.map { _ in nil }
        followers = Self.names.map { Follower(of: $0) }
    }

    func user(_ who: Int) -> UserID { UserID(Self.names[who]) }

    func who(_ user: UserID) -> Int? {
        Self.names.firstIndex { $0.isExactly(user.name) }
    }

    func pick<C: Collection>(_ list: C) -> C.Element? { list.randomElement(using: &chance) }

    func anyone(but who: Int? = nil) -> Int {
        pick(Self.names.indices.filter { $0 != who }) ?? 0
    }

    func devices(of who: Int) -> [DeviceID] { devices.filter { owner[$0] == who } }

    /// A session of the user that is logged in, if there is one.
    func session(of who: Int, on device: DeviceID? = nil) -> SessionKey? {
        let own = device.map { [$0] } ?? devices(of: who)
        if let device, sessions[device]?.user != user(who) {
            // As if the device had not been taken over.
            return SessionKey(
                app: World.app, user: user(who), device: device, role: .app, generation: 1)
        }
        let open = own.compactMap { sessions[$0] }.filter { $0.user == user(who) }
        return open.first { isOpen($0) } ?? open.first
    }

    func isOpen(_ session: SessionKey) -> Bool {
        let key: [ColumnValue] = [
            .app(session.app), .user(session.user), .identifier(session.device),
            .unsigned(session.role.rawValue),
        ]
        let row = (try? world.record(SessionRecord.self, key)) ?? nil
        return row?.generation == session.generation
    }

    func members(_ id: ConversationID) -> [ParticipantRecord] {
        var found: [ParticipantRecord] = []
        try? world.store.read { snapshot throws(StoreError) in
            found = try snapshot.records(
                ParticipantRecord.self,
                Scan(prefix: [.app(World.app), .identifier(id)], limit: 100))
        }
        return found
    }

    func present(_ id: ConversationID) -> [Int] {
        members(id).filter { $0.leftRevision == nil }.compactMap { who($0.user) }
    }

    func message(_ id: MessageID) -> MessageRecord? {
        (try? world.record(MessageRecord.self, [.app(World.app), .identifier(id)])) ?? nil
    }

    func conversation(_ id: ConversationID) -> ConversationRecord? {
        (try? world.record(ConversationRecord.self, [.app(World.app), .identifier(id)])) ?? nil
    }

    func userRow(_ who: Int) throws -> UserRecord? {
        try world.record(UserRecord.self, [.app(World.app), .user(user(who))])
    }

    func messages(in id: ConversationID) -> [MessageID] { messages.filter { place[$0] == id } }

    // MARK: carrying out

    /// A mutation with the next number of its device.
    func mutate(_ session: SessionKey, _ operation: Mutation.Operation) -> StoreRequest {
        let place = SessionPlace(device: session.device, user: who(session.user) ?? 0)
        return .mutate(
            Mutate(
                session: session,
                mutation: Mutation(number: (numbers[place] ?? 0) + 1, operation: operation)))
    }

    /// - Returns: whether it had its effect.
    func carryOut(_ plan: Plan) throws -> Bool {
        try take(try world.ask(plan.request), of: plan)
    }

    /// - Returns: whether it had its effect.
    func take(_ answer: StoreAnswer, of plan: Plan) throws -> Bool {
        switch answer {
        case .mutated(let result, _):
            // Refused for now: its number comes again with the next one.
            if case .mutate(let request) = plan.request, result.code / 1000 != 1 {
                let session = request.session
                let place = SessionPlace(device: session.device, user: who(session.user) ?? 0)
                numbers[place] = request.mutation.number
            }
            if result.code == Code.internal.rawValue { throw Unexpected(answer: answer) }
            return result.code == 0
        case .acknowledged:
            let operation = Operation(plan.request)
            let isRead = operation == .read || operation == .readAnnouncement
            return !isRead || !world.changes.isEmpty
        case .opened(let opened):
            sessions[opened.session.device] = opened.session
            owner[opened.session.device] = who(opened.session.user)
            return true
        case .pushes(let claimed): jobs = claimed.jobs
        case .deliveries(let claimed): deliveries = claimed.jobs
        case .failed: throw Unexpected(answer: answer)
        case .refused, .ended, .idempotencyMismatch: return false
        default: break
        }
        return true
    }
}
