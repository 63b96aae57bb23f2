import EventLoop
import Feed
import Foundation
import Model
import PostgresStore
import StoreService
import Wire

/// What the nodes of a store tell each other of their commits, so that a device is told at once
/// whichever node it is connected to. A hint may be lost: the turn over heads finds what moved
/// within 10 s, and a session that was ended elsewhere finds that its row is gone with its next
/// page.
final class NodeHints: Sendable {
    /// One thing to tell. JSON with short names, for a hint has 8,000 bytes.
    private enum News: Codable {
        case moved(Moved)
        case ended(Session, code: UInt32)
        case challenged(Session)
        case work(UInt8)
        case deliveries
    }

    /// A feed's newest head.
    private struct Moved: Codable {
        let app, user: String
        let head: UInt64
        let kinds: UInt32
        let isUrgent: Bool
    }

    private struct Session: Codable {
        let app, user: String
        let device: [UInt64]
        let role: UInt64
        let generation: UInt64

        init(_ key: SessionKey) {
            (app, user) = (key.app.name, key.user.name)
            device = [key.device.high, key.device.low]
            (role, generation) = (key.role.rawValue, key.generation)
        }

        var key: SessionKey? {
            guard device.count == 2, let role = RoleKind(rawValue: role) else { return nil }
            return SessionKey(
                app: AppID(app), user: UserID(user),
                device: DeviceID(high: device[0], low: device[1]), role: role,
                generation: generation)
        }
    }

    private struct Message: Codable {
        let from: String
        var news: [News]
    }

    private struct User: Hashable {
        let app: AppID
        let user: UserID
    }

    private struct Pending {
        var moved: [User: FeedChange] = [:]
        var ended: [EndedSession] = []
        var challenged: [SessionKey] = []
        var work: BackgroundWork = []
        var hasDeliveries = false

        var count: Int { moved.count + ended.count + challenged.count }

        /// Of each user the newest head is enough.
        mutating func add(_ change: FeedChange) {
            let user = User(app: change.app, user: change.user)
            guard var known = moved[user] else {
                moved[user] = change
                return
            }
            known.head = max(known.head, change.head)
            known.kinds |= change.kinds
            known.isUrgent = known.isUrgent || change.isUrgent
            moved[user] = known
        }

        var news: [News] {
            var news: [News] = ended.map { .ended(Session($0.session), code: $0.code.rawValue) }
            news += challenged.map { .challenged(Session($0)) }
            if !work.isEmpty { news.append(.work(work.rawValue)) }
            if hasDeliveries { news.append(.deliveries) }
            return news
                + moved.values.map { change in
                    .moved(
                        Moved(
                            app: change.app.name, user: change.user.name, head: change.head,
                            kinds: change.kinds, isUrgent: change.isUrgent))
                }
        }
    }

    /// Users and sessions that wait to be told; what is above is left to the turn over heads.
    private static let pendingMax = 20_000

    private let from: String
    private let lock = Lock()
    private nonisolated(unsafe) var pending = Pending()  // guarded by `lock`
    private nonisolated(unsafe) var way: PostgresHints?  // set before any thread begins

    /// - Parameters:
    ///   - told: Called with what another node tells, on the hints' thread.
    ///   - lost: Called there when something that others told may not have come.
    init(
        _ place: StorePlace, boot: BootID, told: @escaping @Sendable (Effects) -> Void,
        lost: @escaping @Sendable () -> Void
    ) {
        from = "\(boot)"
        let own = from
        way = PostgresHints(
            place.postgresOptions, next: { [weak self] in self?.next() ?? [] },
            received: { text in
                guard
                    let message = try? JSONDecoder().decode(Message.self, from: Data(text.utf8)),
                    message.from != own
                else { return }
                told(Self.effects(message.news))
            }, lost: lost)
    }

    func start() {
        guard let way else { return }
        let thread = Thread { way.run() }
        thread.name = "hints"
        thread.start()
    }

    func stop() { way?.stop() }

    /// Told by the store's writer after each commit of this node.
    func committed(_ effects: Effects) {
        lock.withLock {
            // A change of the number of unread messages alone is told by the next page.
            for change in effects.changes.all where change.kinds != 0 {
                guard pending.count < Self.pendingMax else { break }
                pending.add(change)
            }
            let room = max(0, Self.pendingMax - pending.count)
            pending.ended += effects.ended.prefix(room)
            pending.challenged += effects.challenged.prefix(room)
            pending.work.formUnion(effects.background)
            pending.hasDeliveries = pending.hasDeliveries || effects.hasDeliveries
        }
        way?.ring()
    }

    private func next() -> [String] {
        let news = lock.withLock {
            defer { pending = Pending() }
            return pending.news
        }
        var texts: [String] = []
        var message = Message(from: from, news: [])
        var bytes = 0
        for one in news {
            // Each is told by itself to learn its size.
            guard let size = try? JSONEncoder().encode(one).count else { continue }
            if bytes + size + 1 > PostgresHints.bytesMax - 100 {
                texts.append(Self.text(message))
                (message.news, bytes) = ([], 0)
            }
            message.news.append(one)
            bytes += size + 1
        }
        if !message.news.isEmpty { texts.append(Self.text(message)) }
        return texts
    }

    private static func text(_ message: Message) -> String {
        guard let data = try? JSONEncoder().encode(message) else { return "" }
        return String(decoding: data, as: UTF8.self)
    }

    private static func effects(_ news: [News]) -> Effects {
        var effects = Effects()
        for one in news {
            switch one {
            case .moved(let moved):
                effects.changes.note(
                    FeedChange(
                        app: AppID(moved.app), user: UserID(moved.user), head: moved.head,
                        kinds: moved.kinds, isUrgent: moved.isUrgent))
            case .ended(let session, let code):
                guard let key = session.key, let code = Code(rawValue: code) else { continue }
                effects.ended.append(EndedSession(session: key, code: code))
            case .challenged(let session):
                if let key = session.key { effects.challenged.append(key) }
            case .work(let kinds): effects.background.formUnion(BackgroundWork(rawValue: kinds))
            case .deliveries: effects.hasDeliveries = true
            }
        }
        return effects
    }
}
