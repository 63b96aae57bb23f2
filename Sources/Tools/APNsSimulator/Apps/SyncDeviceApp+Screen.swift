internal import AppLife
internal import EventLoop
internal import Model
internal import SyncClient
internal import Wire

// What stands on the screen, and what its user is owed.
extension SyncDeviceApp {
    /// Answers `.look`, by the system's list and by what is stored: a process knows as much as one
    /// that was killed before it.
    func look() {
        do {
            let screen = try seen()
            give(.looked(screen))
        } catch {
            fail("screen: \(error)")
            give(.storeFailed)
        }
    }

    private func seen() throws -> AppScreen {
        let store = try openStore()
        let time = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        var screen = AppScreen()
        for shown in hooks.screen() {
            var standing = NotificationStanding.unknown
            if let object = shown.object.flatMap({ MessageID(text: $0) }) {
                let conversation = shown.conversation.flatMap { ConversationID(text: $0) }
                standing = try store.standing(of: object, in: conversation, at: time)
            }
            screen.delivered.append(
                AppScreen.Delivered(identifier: shown.identifier, standing: standing))
        }
        for owed in try store.owed() {
            let text = owed.entry.flatMap { Self.notification(of: $0) }
            let notice = AppNotice(
                object: owed.object, conversation: owed.conversation, title: text?.title ?? "",
                body: text?.body ?? "")
            var standing = NotificationStanding.missing
            if text != nil {
                standing = try store.standing(of: owed.object, in: owed.conversation, at: time)
            }
            screen.owed.append(
                AppScreen.Owed(
                    notice, standing: standing,
                    isEdited: owed.entry.map { Self.isEdited($0) } ?? false))
        }
        return screen
    }

    /// `nil`: it has no text for alerts, and is shown inside the app only (MSG-3).
    private static func notification(of entry: Entry) -> (title: String, body: String)? {
        switch entry.body {
        case .message(let message):
            message.push.map { ($0.title.isEmpty ? message.sender : $0.title, $0.body) }
        case .announcement(let announcement): announcement.push.map { ($0.title, $0.body) }
        default: nil
        }
    }

    private static func isEdited(_ entry: Entry) -> Bool {
        guard case .message(let message) = entry.body else { return false }
        return message.editedMs > 0
    }
}
