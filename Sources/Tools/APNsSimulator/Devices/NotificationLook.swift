internal import AppLife
internal import FoundationEssentials
import JSONTree
internal import Model
internal import RouseClient
internal import Wire

/// What a notification shows beside title and body, and how, as the screen and the app get it:
/// from a push's payload, or from an app that shows one of its own.
public struct NotificationLook: Equatable, Codable, Sendable {
    public struct Sound: Equatable, Codable, Sendable {
        /// `default`: the system's.
        public var name: String
        /// From 0 to 1, of one that is heard although the device is muted; `nil`: any other.
        public var criticalVolume: Double?

        public init(name: String, criticalVolume: Double? = nil) {
            self.name = name
            self.criticalVolume = criticalVolume
        }
    }

    public var subtitle: String?
    /// The title is a name in the app's string table, and this goes into what it stands for;
    /// `nil`: it is the text itself.
    public var titleArguments: [String]?
    public var subtitleArguments: [String]?
    public var bodyArguments: [String]?
    /// `nil`: none.
    public var sound: Sound?
    public var category: String?
    public var interruptionLevel: String?
    public var relevance: Double?
    public var targetContent: String?
    /// What the app reads of it when it is opened, but for a wake id: JSON with sorted names.
    public var userInfo = "{}"

    public init() {}
}

// MARK: From a payload

extension NotificationLook {
    init(payload: JSONValue) {
        let aps = payload["aps"]
        if case .object(let alert) = aps["alert"] {
            subtitle = (alert["subtitle"] ?? alert["subtitle-loc-key"])?.text
            func arguments(_ prefix: String) -> [String]? {
                guard alert[prefix + "loc-key"]?.text != nil else { return nil }
                return alert[prefix + "loc-args"]?.items.compactMap(\.text) ?? []
            }
            titleArguments = arguments("title-")
            subtitleArguments = arguments("subtitle-")
            bodyArguments = arguments("")
        }
        switch aps["sound"] {
        case .text(let name): sound = Sound(name: name)
        case .object(let critical):
            sound = Sound(
                name: critical["name"]?.text ?? "default",
                criticalVolume: critical["volume"]?.double ?? 1)
        default: break
        }
        category = aps["category"].text
        interruptionLevel = aps["interruption-level"].text
        relevance = aps["relevance-score"].double
        targetContent = aps["target-content-id"].text
        var info = payload.members
        info["aps"] = nil
        if case .object(var own) = info["rouse"] {
            own["w"] = nil
            info["rouse"] = .object(own)
        }
        userInfo = Self.text(of: info)
    }

    /// As a notification service extension has it, or the app's presentation, of what takes the
    /// place of one that stands: nothing is heard, and nothing lights up.
    mutating func quieten() {
        sound = nil
        interruptionLevel = "passive"
        var info = information
        var own = info["rouse"]?.members ?? [:]
        own["q"] = .flag(true)
        info["rouse"] = .object(own)
        userInfo = Self.text(of: info)
    }

    fileprivate var isQuiet: Bool { information["rouse"]?["q"] == .flag(true) }

    private var information: [String: JSONValue] {
        (try? JSONDecoder().decode(JSONValue.self, from: Data(userInfo.utf8)))?.members ?? [:]
    }

    private static func text(of info: [String: JSONValue]) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // What was read as JSON, or made of it, is JSON.
        return (try? encoder.encode(info)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}

extension DeliveredNotification {
    /// As the system's list has it.
    init(_ shown: ScreenNotification) {
        self.init(
            identifier: shown.identifier, object: shown.object.flatMap { MessageID(text: $0) },
            conversation: shown.conversation.flatMap { ConversationID(text: $0) },
            isQuiet: shown.look.isQuiet)
    }
}

// MARK: From the app

extension ScreenNotification {
    /// What an app gives the system to show.
    init(_ notice: AppNotice) {
        let hints = notice.hints
        self.init(
            identifier: notice.identifier, title: hints.titleKey?.key ?? notice.title,
            body: hints.bodyKey?.key ?? notice.body, threadID: notice.thread, shownAtMs: 0,
            isLocal: true, object: notice.object.description,
            conversation: notice.conversation?.description, look: NotificationLook(notice))
    }
}

extension NotificationLook {
    fileprivate init(_ notice: AppNotice) {
        let hints = notice.hints
        func present(_ text: String) -> String? { text.isEmpty ? nil : text }
        subtitle = hints.subtitleKey?.key ?? present(hints.subtitle)
        titleArguments = hints.titleKey?.arguments
        subtitleArguments = hints.subtitleKey?.arguments
        bodyArguments = hints.bodyKey?.arguments
        switch notice.sound {
        case nil: break
        case .standard: sound = Sound(name: "default")
        case .named(let name): sound = Sound(name: name)
        case .critical(let name, let volume): sound = Sound(name: name, criticalVolume: volume)
        }
        category = present(hints.category)
        interruptionLevel =
            switch hints.interruptionLevel {
            case .unspecified: nil
            case .passive: "passive"
            case .active: "active"
            case .timeSensitive: "time-sensitive"
            case .critical: "critical"
            }
        relevance = notice.relevance
        targetContent = present(hints.targetContent)
        userInfo = Self.text(of: notice.information)
    }
}
