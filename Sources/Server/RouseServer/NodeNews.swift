import Feed
import FoundationEssentials
import Model
import SyncService
import Wire

/// What one node tells the others in one text. JSON with short names, for a text has 8,000 bytes.
struct NodeText: Codable {
    let from: String
    var news: [NodeNews]
    /// Items of a kind, or in a form, that only a newer version knows.
    var unread = 0

    private enum CodingKeys: CodingKey { case from, news }

    private struct Item: Decodable {
        let news: NodeNews?

        init(from decoder: any Decoder) { news = try? NodeNews(from: decoder) }
    }

    init(from: String, news: [NodeNews]) { (self.from, self.news) = (from, news) }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        from = try members.decode(String.self, forKey: .from)
        let items = try members.decode([Item].self, forKey: .news)
        news = items.compactMap(\.news)
        unread = items.count - news.count
    }

    /// That the node is there, and nothing else.
    static func announcement(from: String) -> String {
        guard let text = try? JSONEncoder().encode(NodeText(from: from, news: [])) else {
            preconditionFailure("the name \(from) cannot be written as JSON")
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// All of it, in as many texts as it takes.
    ///
    /// - Parameter bytesMax: of one text.
    /// - Returns: also how much was left out, because one of it alone is more than a text takes.
    static func texts(
        from: String, _ news: [NodeNews], bytesMax: Int
    ) -> (texts: [String], leftOut: Int) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        func json(_ value: some Encodable) -> String? {
            (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
        }
        // Each is encoded once: a text is made of its items.
        guard let from = json(from) else { return ([], news.count) }
        let (head, tail) = ("{\"from\":\(from),\"news\":[", "]}")
        let empty = head.utf8.count + tail.utf8.count
        var (texts, leftOut): ([String], Int) = ([], 0)
        var items: [String] = []
        var bytes = empty
        func close() {
            guard !items.isEmpty else { return }
            texts.append(head + items.joined(separator: ",") + tail)
            (items, bytes) = ([], empty)
        }
        for one in news {
            guard let item = json(one), empty + item.utf8.count <= bytesMax else {
                leftOut += 1
                continue
            }
            // A comma goes before it.
            if bytes + item.utf8.count + 1 > bytesMax { close() }
            items.append(item)
            bytes += item.utf8.count + 1
        }
        close()
        return (texts, leftOut)
    }
}

/// One thing to tell.
enum NodeNews: Codable {
    case moved(Moved)
    case ended(Session, code: UInt32)
    case challenged(Session)
    case detached(Device)
    case work(UInt8)
    case deliveries
    case audience(Audience)
    case audiences
    case signal(Typing)

    /// A feed's newest head.
    struct Moved: Codable {
        let app, user: String
        let head: UInt64
        let kinds: UInt32
        let isUrgent: Bool

        init(_ change: FeedChange) {
            (app, user) = (change.app.name, change.user.name)
            (head, kinds, isUrgent) = (change.head, change.kinds, change.isUrgent)
        }

        var change: FeedChange {
            FeedChange(
                app: AppID(app), user: UserID(user), head: head, kinds: kinds,
                isUrgent: isUrgent)
        }
    }

    struct Session: Codable {
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

    struct Device: Codable {
        let app, user: String
        let device: [UInt64]

        init(_ key: DetachedDevice) {
            (app, user) = (key.app.name, key.user.name)
            device = [key.device.high, key.device.low]
        }

        var key: DetachedDevice? {
            guard device.count == 2 else { return nil }
            return DetachedDevice(
                app: AppID(app), user: UserID(user),
                device: DeviceID(high: device[0], low: device[1]))
        }
    }

    /// Of a conversation, or else of a sender.
    struct Audience: Codable {
        let app: String
        var room: [UInt64]?
        var user: String?

        init(_ change: AudienceChange) {
            switch change {
            case .conversation(let app, let conversation):
                self.app = app.name
                room = [conversation.high, conversation.low]
            case .sender(let app, let user):
                self.app = app.name
                self.user = user.name
            }
        }

        var change: AudienceChange? {
            if let room, room.count == 2 {
                return .conversation(
                    AppID(app), ConversationID(high: room[0], low: room[1]))
            }
            return user.map { .sender(AppID(app), UserID($0)) }
        }
    }

    struct Typing: Codable {
        let app, user: String
        let room: [UInt64]
        let kind, ttl: UInt32
        let to: [String]

        init(_ signal: NodeSignal) {
            (app, user) = (signal.app.name, signal.sender.name)
            room = [signal.conversation.high, signal.conversation.low]
            (kind, ttl) = (signal.kind.rawValue, signal.ttlMs)
            to = signal.users.map(\.name)
        }

        var signal: NodeSignal? {
            guard room.count == 2, let kind = SignalKind(rawValue: kind) else { return nil }
            return NodeSignal(
                app: AppID(app), conversation: ConversationID(high: room[0], low: room[1]),
                sender: UserID(user), kind: kind, ttlMs: ttl, users: to.map { UserID($0) })
        }
    }
}

/// What another node told.
struct NodeTold {
    var effects = Effects()
    var signals: [NodeSignal] = []
    /// Of more audiences than it told.
    var haveAudiencesChanged = false
    /// What names nothing that this version knows.
    var unread = 0

    init(_ news: [NodeNews]) {
        for one in news { take(one) }
    }

    private mutating func take(_ news: NodeNews) {
        switch news {
        case .moved(let moved): effects.changes.note(moved.change)
        case .ended(let session, let code):
            guard let key = session.key, let code = Code(rawValue: code) else { return skip() }
            effects.ended.append(EndedSession(session: key, code: code))
        case .challenged(let session):
            guard let key = session.key else { return skip() }
            effects.challenged.append(key)
        case .detached(let device):
            guard let key = device.key else { return skip() }
            effects.detached.append(key)
        case .work(let kinds): effects.background.formUnion(BackgroundWork(rawValue: kinds))
        case .deliveries: effects.hasDeliveries = true
        case .audience(let audience):
            guard let change = audience.change else { return skip() }
            effects.audiences.append(change)
        case .audiences: haveAudiencesChanged = true
        case .signal(let typing):
            guard let signal = typing.signal else { return skip() }
            signals.append(signal)
        }
    }

    private mutating func skip() { unread += 1 }
}
