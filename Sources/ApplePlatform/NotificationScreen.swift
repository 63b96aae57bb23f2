#if canImport(UserNotifications)
    public import AppLife
    import Foundation
    import Model
    public import RouseClient
    public import UserNotifications
    import Wire

    /// The system's list of the app's notifications, and the icon.
    public struct NotificationScreen: RousePhone {
        public init() {}

        private var center: UNUserNotificationCenter { .current() }
        private let taken = TakenNotifications()

        public func delivered() async -> [DeliveredNotification] {
            await center.deliveredNotifications().sorted { $0.date < $1.date }.map {
                DeliveredNotification($0)
            }
        }

        public func show(_ notice: AppNotice) async {
            let content = UNMutableNotificationContent()
            content.take(notice)
            let request = UNNotificationRequest(
                identifier: notice.identifier, content: content, trigger: nil)
            taken.remove(notice.identifier)
            // The person has not permitted notifications: nothing is owed then either.
            try? await center.add(request)
        }

        public func remove(identifier: String) async {
            taken.insert(identifier)
            center.removeDeliveredNotifications(withIdentifiers: [identifier])
        }

        public func setBadge(_ count: UInt32) async {
            let stood = count == 0 ? await center.deliveredNotifications() : []
            try? await center.setBadgeCount(Int(count))
            guard !stood.isEmpty else { return }
            let stands = Set(await center.deliveredNotifications().map(\.request.identifier))
            for gone in stood.sorted(by: { $0.date < $1.date })
            where !stands.contains(gone.request.identifier)
                && !taken.contains(gone.request.identifier)
            {
                await putBack(gone.request)
            }
        }

        private func putBack(_ request: UNNotificationRequest) async {
            guard let content = request.content.mutableCopy() as? UNMutableNotificationContent
            else { return }
            content.quieten()
            // An alert's number is of the moment when it was sent.
            content.badge = nil
            let again = UNNotificationRequest(
                identifier: request.identifier, content: content, trigger: nil)
            try? await center.add(again)
        }
    }

    /// What the app has taken away: the system's list may hold it for a moment still, and it is not
    /// to be put back.
    private final class TakenNotifications: @unchecked Sendable {
        /// The most identifiers kept: for a newer one the oldest goes. The system's list holds
        /// fewer.
        private static let countMax = 256

        private let lock = NSLock()
        private var identifiers: [String] = []

        func insert(_ identifier: String) {
            lock.withLock {
                identifiers.removeAll { $0 == identifier }
                identifiers.append(identifier)
                identifiers.removeFirst(max(0, identifiers.count - Self.countMax))
            }
        }

        func remove(_ identifier: String) {
            lock.withLock { identifiers.removeAll { $0 == identifier } }
        }

        func contains(_ identifier: String) -> Bool {
            lock.withLock { identifiers.contains(identifier) }
        }
    }

    extension Rouse {
        /// `userNotificationCenter(_:willPresent:)`: an app that does not forward it sees none of
        /// what comes while it is in front, its own notifications among it.
        public nonisolated(nonsending) func presentation(
            of notification: UNNotification
        ) async -> UNNotificationPresentationOptions {
            switch await presents(DeliveredNotification(notification)) {
            case .nothing: []
            case .list: [.list]
            case .all: [.banner, .list, .sound]
            }
        }
    }

    extension DeliveredNotification {
        fileprivate init(_ notification: UNNotification) {
            let content = notification.request.content
            let subject = content.userInfo["rouse"] as? [String: Any]
            self.init(
                identifier: notification.request.identifier,
                object: (subject?["o"] as? String).flatMap { MessageID(text: $0) },
                conversation: (subject?["c"] as? String).flatMap { ConversationID(text: $0) },
                isQuiet: subject?["q"] as? Bool ?? false)
        }
    }

    extension UNMutableNotificationContent {
        /// PSH-12, field by field; also what a notification service extension does with a `Peek`.
        public func take(_ notice: AppNotice) {
            let hints = notice.hints
            title = Self.text(hints.titleKey, or: notice.title)
            subtitle = Self.text(hints.subtitleKey, or: hints.subtitle)
            body = Self.text(hints.bodyKey, or: notice.body)
            threadIdentifier = notice.thread ?? ""
            categoryIdentifier = hints.category
            targetContentIdentifier = hints.targetContent.isEmpty ? nil : hints.targetContent
            userInfo = notice.userInfo
            if let relevance = notice.relevance { relevanceScore = relevance }
            switch hints.interruptionLevel {
            case .unspecified, .active: interruptionLevel = .active
            case .passive: interruptionLevel = .passive
            case .timeSensitive: interruptionLevel = .timeSensitive
            case .critical: interruptionLevel = .critical
            }
            switch notice.sound {
            case nil: sound = nil
            case .standard: sound = .default
            case .named(let name): sound = UNNotificationSound(named: .init(name))
            case .critical(let name, let volume):
                sound = .criticalSoundNamed(.init(name), withAudioVolume: Float(volume))
            }
        }

        /// It takes the place of one that stands (`RouseExtension.isRepeat`): nothing is heard, the
        /// screen stays dark, and in front it goes into the list without a banner.
        public func quieten() {
            sound = nil
            interruptionLevel = .passive
            var subject = userInfo["rouse"] as? [String: Any] ?? [:]
            subject["q"] = true
            userInfo["rouse"] = subject
        }

        private static func text(_ localized: LocalizedText?, or text: String) -> String {
            guard let localized else { return text }
            return NSString.localizedUserNotificationString(
                forKey: localized.key, arguments: localized.arguments)
        }
    }
#endif
