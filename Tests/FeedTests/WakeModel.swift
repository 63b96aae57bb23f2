import MemoryStore
import Model
import Wake
import Wire

@testable import Feed

/// Random life of three phones, two of one user and one of another, and of their server over the
/// real rules, in virtual time; APNs, the phones and the people are the model's own.
///
/// There are two clocks: `time` is the true one, by which phones, people and APNs live; `now` is
/// the store's, which may be set ahead or back.
final class WakeModel {
    struct Phone {
        let id: DeviceID
        let user: UserID
        /// What iOS gave the app last; the server learns it at the next login.
        var token: [UInt8]
        /// What the last login presented.
        var presented: [UInt8] = []
        /// When it did, by the true clock, and how often the clock had jumped by then.
        var presentedAt = Timestamp(milliseconds: 0)
        var jumpsThen = 0
        var session: SessionKey?
        /// The socket is dead and the server does not know yet.
        var cutAt: Timestamp?
        var isForceQuit = false
        /// As the server was last told.
        var isRefreshOff = false
        var applied: UInt64 = 0
        /// What it has, as the server was told.
        var has: Set<MessageID> = []
        var connectAt: Timestamp?
        var wokenBy: WakeID?
        var syncAt: Timestamp?
        var sleepAt: Timestamp?
        var lastConnected = Timestamp(milliseconds: 0)
        /// The server turned it away then.
        var lastRefused = Timestamp(milliseconds: 0)

        // The screen.
        var icon: UInt64 = 0
        /// The app itself has set it since a push did.
        var isIconOwn = false
        /// An alert was shown since its last completed sync: the icon is the server's to mend.
        var wasAlerted = false
        var shown: Set<MessageID> = []
        var everShown: Set<MessageID> = []
        /// Alerts that spoke for others, too.
        var summaries: [Summary] = []
        /// Messages with a time of their own that the server owes it an alert of.
        var timed: Set<MessageID> = []

        // What the server may do, by the store's clock.
        var alertsAccepted: [Told: Int] = [:]
        var campaignsAccepted: [String: Int] = [:]
        var silents: [Timestamp] = []
        /// Silent pushes that left, but for those of which the server knows better.
        var spent: [Spent] = []
        var rings = Rings()
        var inFlight: PushJobKey?
        var leaseOf: Timestamp?
        /// APNs asked to leave it alone until then.
        var restUntil: Timestamp?
        var lastSilent: Silent?
    }

    struct Told: Hashable {
        let token: [UInt8]
        let message: MessageID
    }

    struct Summary {
        let named: MessageID
        let covers: Set<MessageID>
    }

    struct Spent {
        let push: WakeID
        let key: PushJobKey
        var at: Timestamp
    }

    /// A silent push and what came of it.
    struct Silent {
        let id: WakeID
        let token: [UInt8]
        /// The phone lacked something that everybody would want to see.
        let wasBehind: Bool
        let sentAt: Timestamp
        /// By the true clock.
        var acceptedAt: Timestamp?
        /// How often the clock had jumped by then.
        var jumpsThen = 0
    }

    /// The pace of alerts, counted again.
    struct Rings {
        var burst = 0
        var last = Timestamp(milliseconds: 0)
        var hour: [(key: PushJobKey, at: Timestamp)] = []
    }

    /// A message, as people know it.
    struct Said {
        let id: MessageID
        let room: ConversationID
        let position: UInt64
        let sender: UserID
        let urgency: Urgency
        let moment: Timestamp?
        /// How often the clock had been set back when it came.
        let setsBack: Int
        /// When it came, by the true clock, and how often the store's had jumped by then.
        let at: Timestamp
        let jumpsThen: Int
        var text: String
        var isDeleted = false
        /// An edit took its text away: it alerts no more, though it may be unread again.
        var isSilenced = false
    }

    struct Flight {
        let job: PushJob
        let phone: Int
        let reply: PushReply
        /// APNs takes nothing for the token any more.
        let isDead: Bool
        let at: Timestamp
    }

    struct Mark {
        var through: UInt64 = 0
        var alone: Set<UInt64> = []

        func contains(_ position: UInt64) -> Bool {
            position <= through || alone.contains(position)
        }
    }

    struct Place: Hashable {
        let user: UserID
        let room: ConversationID
    }

    /// How APNs speaks of a token that is no good.
    struct Death {
        let at: Timestamp
        let isTimed: Bool
    }

    let pushes: Pushes
    let sabotage: Sabotage?
    /// Messages are changed often, and phones sync in parts.
    let isBusy: Bool
    /// Phones stay connected for long, and hardly ever come to the end of a sync.
    let isSlow: Bool
    /// Two that all are in, and one without the second user.
    let rooms: [ConversationID]
    let members: [ConversationID: [UserID]]
    var random: SeededGenerator
    var time = Timestamp(milliseconds: 1_000_000)
    var phones: [Phone]
    var flights: [Flight] = []
    var said: [MessageID: Said] = [:]
    /// In the order in which they came.
    var order: [MessageID] = []
    /// Where each stands in each feed.
    var seqs: [UserID: [MessageID: UInt64]] = [:]
    var marks: [Place: Mark] = [:]
    var deaths: [[UInt8]: Death] = [:]
    /// APNs called them dead, and the server knows.
    var buried: Set<[UInt8]> = []
    var suspended: Set<UserID> = []
    var campaigns: [String] = []
    /// By the true clock.
    var outages: [(from: Timestamp, until: Timestamp)] = []
    var jumps: [Timestamp] = []
    var jumpCount = 0
    var setsBack = 0
    /// The clock will be put right.
    var rightAt: (time: Timestamp, size: Milliseconds, isBack: Bool)?
    /// By the store's clock: what was spent before it was set back counts for longer.
    var budgetIsKnownFrom = Timestamp(milliseconds: 0)
    var downUntil: Timestamp?
    var boots: UInt64 = 10
    var ids: UInt64 = 0
    var tokens: UInt8 = 0
    var mutations: UInt64 = 0
    var violations: [String] = []
    var counts: [String: Int] = [:]
    var position: [ConversationID: UInt64] = [:]

    /// Lives from this one on are busy.
    static let firstBusySeed: UInt64 = 1_000
    /// Lives from this one on are busy, and slow.
    static let firstSlowSeed: UInt64 = 2_000

    static let people = ["anna", "bob", "carl"].map { UserID($0) }
    static let anna = people[0]
    static let classic = AppRecord(
        app: World.app, createdAt: Timestamp(milliseconds: 0), grace: 20_000,
        silentWindow: 600_000, silentSpacing: 20_000)
    let policy: AppRecord

    var world: World { pushes.world }
    var now: Timestamp { world.now }

    init(
        seed: UInt64, sabotage: Sabotage? = nil, adaptive: AdaptivePolicy = AdaptivePolicy()
    ) throws {
        var policy = Self.classic
        policy.adaptive = adaptive
        self.policy = policy
        pushes = try Pushes()
        self.sabotage = sabotage
        isBusy = seed >= Self.firstBusySeed
        isSlow = seed >= Self.firstSlowSeed
        random = SeededGenerator(seed: seed)
        let world = pushes.world
        // Long enough ago for any clock that is set back.
        world.pass(400 * 86_400_000)
        _ = try world.ask(.keepAlive)
        try world.expectDone(.putApp(policy))
        let names = [["anna", "bob", "carl"], ["anna", "bob", "carl"], ["anna", "bob"]]
        let made = try names.map { try world.converse($0) }
        rooms = made
        members = Dictionary(
            uniqueKeysWithValues: zip(made, names.map { $0.map { UserID($0) } }))
        phones = [1, 2, 3].map {
            Phone(
                id: DeviceID(high: 2, low: $0), user: Self.people[$0 == 3 ? 2 : 1],
                token: [0, UInt8($0)])
        }
        try meetAnna()
        for index in phones.indices {
            try connect(index)
            try synchronize(index, isComplete: true)
        }
    }

    func fail(_ text: String) { violations.append("\(time.milliseconds / 1_000) s: \(text)") }
    func count(_ name: String) { counts[name, default: 0] += 1 }
    func chance(_ probability: Double) -> Bool { random.unit() < probability }

    func pass(_ duration: Milliseconds) {
        time = time + duration
        world.pass(duration)
    }

    var boot: BootID { BootID(high: 9, low: boots) }

    func wakeKey(_ index: Int) -> [ColumnValue] {
        [.app(World.app), .user(phones[index].user), .identifier(phones[index].id)]
    }

    func device(_ index: Int) throws -> DeviceRecord? {
        try world.record(DeviceRecord.self, wakeKey(index))
    }

    func wake(_ index: Int) throws -> WakeRecord? {
        try world.record(WakeRecord.self, wakeKey(index))
    }

    // MARK: schedules

    /// One or two seconds of a random life.
    func chaos() throws {
        pass(200 + random.below(1_800))
        if let right = rightAt, right.time <= time {
            rightAt = nil
            jump(right.size, isBack: right.isBack)
        }
        if let until = downUntil {
            if time >= until { try restart() }
            return
        }
        try livePeople()
        for index in phones.indices { try live(index) }
        try serve(calm: false)
        if chance(0.005) { crash() }
        if chance(0.003) { jumpSomehow() }
    }

    /// Everybody falls asleep for good, pushes work, and time passes: then everything that can be
    /// told has been told.
    func calm() throws {
        if downUntil != nil {
            pass(90_000)
            try restart()
        }
        if let right = rightAt {
            rightAt = nil
            jump(right.size, isBack: right.isBack)
        } else if chance(0.4) {
            jump([3_600_000, 86_400_000, 30 * 86_400_000][Int(random.below(3))], isBack: true)
        }
        for user in suspended { try resume(user) }
        for index in phones.indices {
            phones[index].connectAt = nil
            phones[index].isForceQuit = true
            if let session = phones[index].session {
                phones[index].session = nil
                phones[index].cutAt = nil
                try end(session, within: 10_000)
            }
        }
        let end = time + 2_400_000
        while time < end, violations.isEmpty {
            pass(6_000)
            _ = try ask(.keepAlive)
            pass(6_000)
            try serve(calm: true)
        }
        try checkEnd()
    }

    func run(steps: Int) throws {
        for _ in 0..<steps where violations.isEmpty { try chaos() }
        if violations.isEmpty { try calm() }
    }
}

extension SeededGenerator {
    mutating func below(_ bound: UInt64) -> UInt64 { next() % bound }
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }
}
