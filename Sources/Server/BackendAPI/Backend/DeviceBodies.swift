import Feed
import Model
import Wake

struct DeviceListBody: Encodable {
    let devices: [DeviceBody]
}

/// A device as backends and administrators see it. Its push token is never told.
struct DeviceBody: Encodable {
    struct Feed: Encodable {
        let applied: UInt64
        let head: UInt64
        let visibleHead: UInt64
        let isBehind: Bool
    }

    struct PushToken: Encodable {
        let isHeld: Bool
        let environment: String?
        let topic: String?
        let confirmedAt: String?
    }

    struct Client: Encodable {
        let name: String
        let version: String
    }

    /// As the device said it; left out where it did not.
    struct Place: Encodable {
        let locale: String?
        let timeZone: String?
        let utcOffsetMinutes: Int?

        init(_ device: DeviceRecord) {
            locale = device.locale.isEmpty ? nil : device.locale
            timeZone = device.timeZone.isEmpty ? nil : device.timeZone
            utcOffsetMinutes = device.utcOffset == 0 ? nil : Int(device.utcOffset) - 1_440
        }
    }

    struct Settings: Encodable {
        let notifications: String
        let backgroundRefresh: String
        let lowPower: String
    }

    struct Session: Encodable {
        let role: String
        let openedAt: String
        /// From then on it counts as none; left out in foreground.
        let dormantAt: String?
        /// The connection ended; it may come back until then.
        let expectedUntil: String?
    }

    let id: String
    let user: String
    let reachability: String
    let isPresumedGone: Bool
    /// What holds for it now, and whose wakes it is learned from: its own, the app's, nobody's.
    let graceSeconds: UInt64
    let graceSource: String
    let silentBudget: UInt64
    let feed: Feed
    let pushToken: PushToken
    let client: Client
    let settings: Settings
    let place: Place
    let sessions: [Session]
    let createdAt: String
    let lastSeenAt: String

    init(_ view: DeviceView) {
        let device = view.device
        id = device.device.description
        user = device.user.name
        reachability = view.reachability.rawValue
        isPresumedGone = view.isPresumedGone
        graceSeconds = (view.policy.grace + 999) / 1_000
        graceSource = view.graceSource.rawValue
        silentBudget = view.policy.silentBudget
        feed = Feed(
            applied: device.applied, head: view.head, visibleHead: view.visibleHead,
            isBehind: device.applied < view.head)
        let isHeld = device.pushToken != nil
        pushToken = PushToken(
            isHeld: isHeld, environment: isHeld ? device.pushEnvironment.name : nil,
            topic: isHeld ? device.pushTopic : nil, confirmedAt: device.tokenConfirmedAt?.text)
        client = Client(name: device.clientName, version: device.clientVersion)
        settings = Settings(
            notifications: device.notifications.name,
            backgroundRefresh: device.backgroundRefresh.name, lowPower: device.lowPower.name)
        place = Place(device)
        sessions = view.sessions.map { session in
            Session(
                role: session.role == .app ? "app" : "extension",
                openedAt: session.openedAt.text, dormantAt: session.dormantAt?.text,
                expectedUntil: session.expectedUntil?.text)
        }
        createdAt = device.createdAt.text
        lastSeenAt = device.lastSeenAt.text
    }
}

extension PushEnvironmentKind {
    /// The name in the APIs and on the command line.
    var name: String {
        switch self {
        case .production: "production"
        case .development: "development"
        }
    }
}

extension SettingKind {
    fileprivate var name: String {
        switch self {
        case .unknown: "unknown"
        case .on: "on"
        case .off: "off"
        }
    }
}

struct WakeListBody: Encodable {
    /// Newest first.
    let wakes: [WakeBody]
}

/// One push to a device: why, when, and what came of it.
struct WakeBody: Encodable {
    let id: String
    let kind: String
    let outcome: String
    /// The newest change of the feed it was sent for.
    let seq: UInt64
    /// Left out where it is of none, as an announcement.
    let conversationId: String?
    let messageId: String
    let attempts: UInt64
    let queuedAt: String
    let sentAt: String
    let acceptedAt: String?
    let connectedAt: String?
    let syncedAt: String?
    /// APNs' last refusal.
    let status: UInt64?
    let reason: String?
    let badge: UInt64?

    init(_ record: WakeHistoryRecord) {
        id = record.wake.description
        kind = "\(record.kind)"
        outcome = record.outcome.name
        seq = record.seq
        let isNone = record.conversation == ConversationID(high: 0, low: 0)
        conversationId = isNone ? nil : record.conversation.description
        messageId = record.message.description
        attempts = record.attempts
        queuedAt = record.queuedAt.text
        sentAt = record.sentAt.text
        acceptedAt = record.acceptedAt?.text
        connectedAt = record.connectedAt?.text
        syncedAt = record.syncedAt?.text
        status = record.status == 0 ? nil : record.status
        reason = record.reason.isEmpty ? nil : record.reason
        badge = record.badge
    }
}
