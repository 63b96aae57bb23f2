import EventLoop
import Feed
import Model
import StoreService
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
    case headMoved(connection: UInt64, head: UInt64, kinds: UInt32, isUrgent: Bool)
    case ended(connection: UInt64, generation: UInt64, code: Code)
    case challenged(connection: UInt64, generation: UInt64)
    case tokenDied(connection: UInt64, generation: UInt64)
    /// `mark`: of its audience when that was read.
    case signalled(connection: UInt64, Signal, app: AppID, mark: UInt64)
}

/// Who is connected, and on which loop. From any thread.
///
/// A hint that gets lost (a full mailbox) costs latency only: its loop looks at the heads of all
/// its connected users at its next turn, and at some of them at each (`LoopSessions`).
final class Hub: Sendable {
    /// Hints that may wait for one loop.
    static let mailboxLimit = 1 << 20

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

    private let lock = Lock()
    private nonisolated(unsafe) var members: [UserKey: [Member]] = [:]  // guarded by `lock`
    private nonisolated(unsafe) var loops: [Mailbox<HubMessage>] = []  // guarded by `lock`
    /// Loops whose mailbox took no more. Guarded by `lock`.
    private nonisolated(unsafe) var losses: Set<Int> = []
    /// How often audiences of each bucket have changed: raised before the change is answered.
    /// Guarded by `lock`.
    private nonisolated(unsafe) var audienceMarks = [UInt64](repeating: 0, count: 4096)

    init() {}

    /// Adds a loop; its index is its place in the order of calls.
    func add(_ mailbox: Mailbox<HubMessage>) -> Int {
        lock.withLock {
            loops.append(mailbox)
            return loops.count - 1
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
    func committed(_ committed: Committed) {
        if !committed.audiences.isEmpty {
            let changed = committed.audiences.map { bucket($0) }
            lock.withLock { for bucket in changed { audienceMarks[bucket] &+= 1 } }
        }
        for change in committed.changes {
            let key = UserKey(app: change.app, user: change.user)
            for (member, mailbox) in found(key) {
                tell(
                    member, mailbox,
                    .headMoved(
                        connection: member.place.number, head: change.head, kinds: change.kinds,
                        isUrgent: change.isUrgent))
            }
        }
        for session in committed.challenged {
            let key = UserKey(app: session.app, user: session.user)
            for (member, mailbox) in found(key) where member.session == session {
                tell(
                    member, mailbox,
                    .challenged(
                        connection: member.place.number, generation: session.generation))
            }
        }
        // SES-18: the app presents another, if it has one.
        for dropped in committed.wakes.dropped {
            let key = UserKey(app: dropped.app, user: dropped.user)
            for (member, mailbox) in found(key)
            where member.session.device == dropped.device && member.session.role == .app {
                tell(
                    member, mailbox,
                    .tokenDied(
                        connection: member.place.number, generation: member.session.generation))
            }
        }
        for ended in committed.ended {
            let key = UserKey(app: ended.session.app, user: ended.session.user)
            for (member, mailbox) in found(key) where member.session == ended.session {
                tell(
                    member, mailbox,
                    .ended(
                        connection: member.place.number, generation: ended.session.generation,
                        code: ended.code))
            }
        }
    }

    private func tell(_ member: Member, _ mailbox: Mailbox<HubMessage>, _ message: HubMessage) {
        guard !mailbox.post(message) else { return }
        _ = lock.withLock { losses.insert(member.place.loop) }
    }

    /// Whether something was not told to this loop since it was last asked.
    func takeLoss(loop: Int) -> Bool { lock.withLock { losses.remove(loop) != nil } }

    /// Hands a signal to the sessions of these users. It may be dropped on the way.
    func signal(_ signal: Signal, app: AppID, to users: [UserID], mark: UInt64) {
        for user in users {
            for (member, mailbox) in found(UserKey(app: app, user: user))
            where mailbox.count < Self.signalBacklog {
                mailbox.post(
                    .signalled(
                        connection: member.place.number, signal, app: app, mark: mark))
            }
        }
    }

    private func found(_ key: UserKey) -> [(Member, Mailbox<HubMessage>)] {
        lock.withLock {
            (members[key] ?? []).map { ($0, loops[$0.place.loop]) }
        }
    }

    /// Sessions in the hub. For metrics and tests.
    var count: Int { lock.withLock { members.values.reduce(0) { $0 + $1.count } } }
}
