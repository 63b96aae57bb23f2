internal import FoundationEssentials
import JSONTree

/// What a payload asks of a device.
public struct PushContent: Equatable, Sendable {
    /// Title and body of the alert; `nil`: nothing to show.
    public var title: String?
    public var body: String?
    public var badge: UInt64?
    public var sound: Bool
    public var contentAvailable: Bool
    public var mutableContent: Bool
    public var threadID: String?
    /// `rouse.w`: the wake id that the app puts into HELLO (Protocol/push.md, PSH-2).
    public var wake: String?
    /// `rouse.o`: the object, for people who read the log.
    public var object: String?
    /// `rouse.c`: the object's conversation.
    public var conversation: String?
    /// As it came.
    public var payload: [UInt8] = []

    public init(
        title: String? = nil, body: String? = nil, badge: UInt64? = nil, sound: Bool = false,
        contentAvailable: Bool = false, mutableContent: Bool = false, threadID: String? = nil,
        wake: String? = nil, object: String? = nil, conversation: String? = nil
    ) {
        self.title = title
        self.body = body
        self.badge = badge
        self.sound = sound
        self.contentAvailable = contentAvailable
        self.mutableContent = mutableContent
        self.threadID = threadID
        self.wake = wake
        self.object = object
        self.conversation = conversation
    }

    public var showsAlert: Bool { title != nil || body != nil }

    /// What else a notification of it shows. Looked for where it is shown: most pushes of a load
    /// are for no device.
    public var look: NotificationLook {
        guard let payload = try? JSONDecoder().decode(JSONValue.self, from: Data(payload))
        else { return NotificationLook() }
        return NotificationLook(payload: payload)
    }

    /// Keys of `aps` (Apple: Generating a remote notification).
    private static let known: Set<String> = [
        "alert", "badge", "sound", "thread-id", "category", "content-available",
        "mutable-content", "target-content-id", "interruption-level", "relevance-score",
        "filter-criteria", "stale-date", "content-state", "timestamp", "event",
        "dismissal-date", "attributes-type", "attributes",
    ]

    /// Reads a payload. `nil`: not JSON, or without `aps`: Apple says only that it must not be.
    static func read(_ payload: [UInt8], lints: inout [Lint]) -> PushContent? {
        guard let members = try? JSONDecoder().decode(JSONValue.self, from: Data(payload)),
            case .object(let keys) = members["aps"]
        else { return nil }
        let aps = members["aps"]
        var content = PushContent()
        switch aps["alert"] {
        case .text(let text): content.body = text
        case .object(let alert):
            content.title = (alert["title"] ?? alert["title-loc-key"])?.text
            content.body = (alert["body"] ?? alert["loc-key"])?.text
        default: break
        }
        content.badge = aps["badge"].integer.flatMap(UInt64.init(exactly:))
        content.sound = keys["sound"] != nil
        content.threadID = aps["thread-id"].text
        content.mutableContent = aps["mutable-content"].integer == 1
        if let flag = aps["content-available"].integer {
            content.contentAvailable = flag == 1
            if flag == 0 { lints.append(.contentAvailableZero) }
        }
        if keys.keys.contains(where: { !known.contains($0) }) { lints.append(.unknownKeyInAPS) }
        let own = members["rouse"]
        content.wake = own["w"].text
        content.object = own["o"].text
        content.conversation = own["c"].text
        content.payload = payload
        return content
    }
}
