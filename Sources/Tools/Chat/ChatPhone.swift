import AppLife
import EventLoop
import RouseClient

/// The phone's screen and the icon, as the library fills them; they outlive the app's process.
final class ChatPhone: RousePhone, @unchecked Sendable {
    // @unchecked: `screen` is guarded by `lock`.

    struct Screen: Equatable, Sendable {
        /// Newest first.
        var notices: [AppNotice] = []
        var icon: UInt32 = 0
    }

    /// Notifications that stand at once; the oldest go.
    private static let noticesMax = 100

    private let lock = Lock()
    private var screen = Screen()
    private let changed: @Sendable (Screen) -> Void

    init(changed: @escaping @Sendable (Screen) -> Void) { self.changed = changed }

    func notice(_ number: Int) -> AppNotice? {
        lock.withLock {
            screen.notices.indices.contains(number - 1) ? screen.notices[number - 1] : nil
        }
    }

    func delivered() async -> [DeliveredNotification] {
        lock.withLock { screen.notices }.reversed().map { notice in
            DeliveredNotification(
                identifier: notice.identifier, object: notice.object,
                conversation: notice.conversation)
        }
    }

    func show(_ notice: AppNotice) async {
        change { screen in
            screen.notices.removeAll { $0.identifier == notice.identifier }
            screen.notices.insert(notice, at: 0)
            if screen.notices.count > Self.noticesMax { screen.notices.removeLast() }
        }
    }

    func remove(identifier: String) async { take(identifier) }

    func setBadge(_ count: UInt32) async { change { $0.icon = count } }

    /// As an alert says it; its change to 0 takes what stands off the screen.
    func alerted(icon: UInt32) {
        change { screen in
            if icon == 0, screen.icon > 0 { screen.notices = [] }
            screen.icon = icon
        }
    }

    /// The system does, when it was tapped.
    func take(_ identifier: String) {
        change { screen in screen.notices.removeAll { $0.identifier == identifier } }
    }

    private func change(_ body: (inout Screen) -> Void) {
        // In the order in which it changed.
        lock.withLock {
            body(&screen)
            changed(screen)
        }
    }
}
