import EventLoop
import Feed
import Model
import StoreService
import Telemetry
import Wire

/// Where a connection lives.
struct ConnectionPlace: Hashable, Sendable {
    /// Index of the loop.
    let loop: Int
    /// Number of the connection on that loop, never used again.
    let number: UInt64
}

/// What the hub tells a loop about its connections.
enum HubMessage: Sendable {
    case committed(LoopNews)
    /// `mark`: of its audience when that was read.
    case signalled(connection: UInt64, Signal, app: AppID, mark: UInt64)
    /// Through another node; who gets it is to be read.
    case signalledElsewhere(NodeSignal)
}

/// What one commit means for the connections of one loop: one message, however many they are.
struct LoopNews: Sendable {
    var challenged: [(connection: UInt64, generation: UInt64)] = []
    var tokensDied: [(connection: UInt64, generation: UInt64)] = []
    var ended: [(connection: UInt64, generation: UInt64, code: Code)] = []
    /// Whose feed changed, and where in `changes` it says how.
    var moved: [(connection: UInt64, change: Int)] = []
    /// The changes of the whole commit.
    let changes: [FeedChange]
    /// What the entries take that `changes` hand over; 0: they are to be read.
    var tailBytes = 0
    /// Something was told before this that found no room.
    var followsLoss = false
    /// When the commit was told, by the monotonic clock.
    let at: Instant

    init(_ changes: [FeedChange], at: Instant) { (self.changes, self.at) = (changes, at) }

    var count: Int { challenged.count + tokensDied.count + ended.count + moved.count }

    /// The change, with its entries unless they found no room.
    func change(_ index: Int) -> FeedChange {
        var change = changes[index]
        if tailBytes == 0 { change.tail = nil }
        return change
    }
}

/// Who is connected, and on which loop. From any thread.
///
/// A hint that gets lost (too many wait) costs latency only: its loop looks at the heads of all
/// its connected users at its next turn, and at some of them at each (`LoopSessions`).
final class Hub: Sendable {
    /// Hints that may wait for one loop.
    static let mailboxLimit = 1 << 20

    /// Bytes of entries that may wait for one loop with their hints; what is above is read.
    static let tailBytesMax = 8 << 20

    /// A loop with more hints waiting gets no signals: they are the first to be dropped.
    static let signalBacklog = 1024

    struct UserKey: Hashable {
        let app: AppID
        let user: UserID

        init(app: AppID, user: UserID) {
            self.app = app
            self.user = user
        }

        init(_ session: SessionKey) { self.init(app: session.app, user: session.user) }
    }

    private struct Member {
        let session: SessionKey
        let place: ConnectionPlace
    }

    /// The way to one loop, and what waits there.
    private struct Door {
        let mailbox: Mailbox<HubMessage>
        var hints = 0
        var tailBytes = 0
        /// Hints found no room since the last that did.
        var hasLost = false
        /// Hints found no room since the loop last asked.
        var isBehind = false

        mutating func lost() {
            hasLost = true
            isBehind = true
        }
    }

    /// Connections of all loops, logged in or not.
    let connections = Gauge()
    private let lock = Lock()
    private nonisolated(unsafe) var members: [UserKey: [Member]] = [:]  // guarded by `lock`
    private nonisolated(unsafe) var doors: [Door] = []  // guarded by `lock`
    /// How often audiences of each bucket have changed: raised before the change is answered.
    /// Guarded by `lock`.
    private nonisolated(unsafe) var audienceMarks = [UInt64](repeating: 0, count: 4096)

    init() {}

    /// Adds a loop; its index is its place in the order of calls.
    func add(_ mailbox: Mailbox<HubMessage>) -> Int {
        lock.withLock {
            doors.append(Door(mailbox: mailbox))
            return doors.count - 1
        }
    }

    /// Called when the session row is committed and before the head is read: whoever commits
    /// later finds the session here, whoever committed earlier is in the head (protocol: connect
    /// and publish).
    func enter(_ session: SessionKey, at place: ConnectionPlace) {
        let key = UserKey(app: session.app, user: session.user)
        lock.withLock {
            members[key, default: []].append(Member(session: session, place: place))
        }
    }

    func leave(_ session: SessionKey, at place: ConnectionPlace) {
        let key = UserKey(app: session.app, user: session.user)
        lock.withLock {
            guard var all = members[key] else { return }
            all.removeAll { $0.place == place && $0.session == session }
            members[key] = all.isEmpty ? nil : all
        }
    }

    private func bucket(_ change: AudienceChange) -> Int {
        Int(UInt(bitPattern: change.hashValue) % 4096)
    }

    /// Stands for who gets this sender's signals in this conversation: after a change of that it
    /// is another, and stays another. An equal one says that what was read before still holds.
    func audienceMark(_ app: AppID, _ conversation: ConversationID, _ sender: UserID) -> UInt64 {
        let first = bucket(.conversation(app, conversation))
        let second = bucket(.sender(app, sender))
        return lock.withLock { audienceMarks[first] &+ audienceMarks[second] }
    }

    /// Tells the loops what was committed. Runs on the store's thread: it only posts.
    func committed(_ effects: Effects) {
        if !effects.audiences.isEmpty {
            let changed = effects.audiences.map { bucket($0) }
            lock.withLock { for bucket in changed { audienceMarks[bucket] &+= 1 } }
        }
        for (loop, mailbox, news) in lock.withLock({ news(of: effects) }) {
            if !mailbox.post(.committed(news)) {
                took(news, on: loop)
                lock.withLock { doors[loop].lost() }
            }
        }
    }

    /// What each loop concerned is told: what it has room for.
    private func news(
        of effects: Effects
    ) -> [(loop: Int, mailbox: Mailbox<HubMessage>, news: LoopNews)] {
        let now = Instant(milliseconds: SystemClock.monotonicMilliseconds())
        let none = LoopNews(effects.changes.all, at: now)
        var all = doors.map { _ in none }
        for (index, change) in effects.changes.all.enumerated() {
            for member in members[UserKey(app: change.app, user: change.user)] ?? [] {
                all[member.place.loop].moved.append((member.place.number, index))
            }
        }
        for session in effects.challenged {
            for member in members[UserKey(session)] ?? [] where member.session == session {
                all[member.place.loop].challenged.append(
                    (member.place.number, session.generation))
            }
        }
        // SES-18: the app presents another, if it has one.
        for dropped in effects.wakes.dropped {
            for member in members[UserKey(app: dropped.app, user: dropped.user)] ?? []
            where member.session.device == dropped.device && member.session.role == .app {
                all[member.place.loop].tokensDied.append(
                    (member.place.number, member.session.generation))
            }
        }
        for ended in effects.ended {
            for member in members[UserKey(ended.session)] ?? []
            where member.session == ended.session {
                all[member.place.loop].ended.append(
                    (member.place.number, ended.session.generation, ended.code))
            }
        }
        return all.indices.compactMap { loop in
            admit(all[loop], to: loop, tailBytes: effects.changes.tailBytes).map {
                (loop, doors[loop].mailbox, $0)
            }
        }
    }

    /// - Returns: `nil`: nothing is to be told, or too much waits already.
    private func admit(_ news: LoopNews, to loop: Int, tailBytes: Int) -> LoopNews? {
        guard news.count > 0 else { return nil }
        guard doors[loop].hints + news.count <= Self.mailboxLimit else {
            doors[loop].lost()
            return nil
        }
        var news = news
        doors[loop].hints += news.count
        if doors[loop].tailBytes + tailBytes <= Self.tailBytesMax {
            doors[loop].tailBytes += tailBytes
            news.tailBytes = tailBytes
        }
        news.followsLoss = doors[loop].hasLost
        doors[loop].hasLost = false
        return news
    }

    /// What other nodes told may not have come: all heads are looked at, and so is who gets
    /// signals.
    func lostHints() {
        lock.withLock { for loop in doors.indices { doors[loop].lost() } }
        audiencesChanged()
    }

    /// Nothing that was read of audiences holds any more.
    func audiencesChanged() {
        lock.withLock { for bucket in audienceMarks.indices { audienceMarks[bucket] &+= 1 } }
    }

    /// Whether something was not told to this loop since it was last asked.
    func takeLoss(loop: Int) -> Bool {
        lock.withLock {
            defer { doors[loop].isBehind = false }
            return doors[loop].isBehind
        }
    }

    /// The loop has carried it out.
    func took(_ news: LoopNews, on loop: Int) {
        lock.withLock {
            doors[loop].hints -= news.count
            doors[loop].tailBytes -= news.tailBytes
        }
    }

    /// Hands a signal to the sessions of these users. It may be dropped on the way.
    func signal(_ signal: Signal, app: AppID, to users: [UserID], mark: UInt64) {
        for user in users {
            for (member, mailbox) in ready(UserKey(app: app, user: user)) {
                mailbox.post(
                    .signalled(
                        connection: member.place.number, signal, app: app, mark: mark))
            }
        }
    }

    /// A signal of another node. One loop reads who gets it, always the same of a conversation.
    func signalledElsewhere(_ signal: NodeSignal) {
        let mailbox: Mailbox<HubMessage>? = lock.withLock {
            let isHere =
                signal.users.isEmpty
                || signal.users.contains { members[UserKey(app: signal.app, user: $0)] != nil }
            guard isHere, !doors.isEmpty, !members.isEmpty else { return nil }
            let door = doors[Int(signal.conversation.low % UInt64(doors.count))]
            return door.hints + door.mailbox.count < Self.signalBacklog ? door.mailbox : nil
        }
        mailbox?.post(.signalledElsewhere(signal))
    }

    /// The user's sessions on loops that can take a signal.
    private func ready(_ key: UserKey) -> [(Member, Mailbox<HubMessage>)] {
        lock.withLock {
            (members[key] ?? []).compactMap { member in
                let door = doors[member.place.loop]
                let waiting = door.hints + door.mailbox.count
                return waiting < Self.signalBacklog ? (member, door.mailbox) : nil
            }
        }
    }

    /// Sessions in the hub. For metrics and tests.
    var count: Int { lock.withLock { members.values.reduce(0) { $0 + $1.count } } }
}
