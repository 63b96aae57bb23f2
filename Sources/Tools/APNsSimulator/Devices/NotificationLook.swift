internal import AppLife
internal import Foundation
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
    /// - Parameter members: of the payload.
    init(payload members: [String: Any]) {
        let aps = members["aps"] as? [String: Any] ?? [:]
        if let alert = aps["alert"] as? [String: Any] {
            subtitle = (alert["subtitle"] ?? alert["subtitle-loc-key"]) as? String
            func arguments(_ prefix: String) -> [String]? {
                guard alert[prefix + "loc-key"] is String else { return nil }
                return alert[prefix + "loc-args"] as? [String] ?? []
            }
            titleArguments = arguments("title-")
            subtitleArguments = arguments("subtitle-")
            bodyArguments = arguments("")
        }
        switch aps["sound"] {
        case let name as String: sound = Sound(name: name)
        case let critical as [String: Any]:
            sound = Sound(
                name: critical["name"] as? String ?? "default",
                criticalVolume: (critical["volume"] as? NSNumber)?.doubleValue ?? 1)
        default: break
        }
        category = aps["category"] as? String
        interruptionLevel = aps["interruption-level"] as? String
        relevance = (aps["relevance-score"] as? NSNumber)?.doubleValue
        targetContent = aps["target-content-id"] as? String
        var info = members
        info["aps"] = nil
        if var own = info["rouse"] as? [String: Any] {
            own["w"] = nil
            info["rouse"] = own
        }
        userInfo = Self.text(of: info)
    }

    private static func text(of info: [String: Any]) -> String {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        // What was read as JSON, or made of it, is JSON.
        guard let data = try? JSONSerialization.data(withJSONObject: info, options: options)
        else { return "{}" }
        return String(decoding: data, as: UTF8.self)
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
        userInfo = Self.text(of: notice.userInfo)
    }
}
