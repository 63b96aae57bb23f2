public import AppLife
public import Model
public import SyncClient
import Wire

// What a store says of the notifications that stand, and which it owes its user.
extension TableLocalStore {
    /// Answers `AppAction.look`: a process knows as much as one that was killed before it.
    ///
    /// - Parameters:
    ///   - delivered: the system's list, oldest first.
    ///   - time: a mute with an end has ended by then.
    public func screen(
        delivered: [DeliveredNotification], at time: Timestamp
    ) throws(LocalStoreError) -> AppScreen {
        var screen = AppScreen()
        for shown in delivered {
            var standing = NotificationStanding.unknown
            if let object = shown.object {
                standing = try self.standing(of: object, in: shown.conversation, at: time)
            }
            screen.delivered.append(
                AppScreen.Delivered(identifier: shown.identifier, standing: standing))
        }
        for owed in try owed() {
            let notice = owed.entry.flatMap { AppNotice(owed, $0) }
            screen.owed.append(
                AppScreen.Owed(
                    notice
                        ?? AppNotice(
                            object: owed.object, conversation: owed.conversation, title: "",
                            body: ""),
                    standing: notice == nil
                        ? .missing
                        : try standing(of: owed.object, in: owed.conversation, at: time),
                    isEdited: owed.entry.map { $0.isEdited } ?? false))
        }
        return screen
    }
}

extension AppNotice {
    /// `nil`: it has no text for alerts, and is shown inside the app only (MSG-3).
    fileprivate init?(_ owed: OwedEntry, _ entry: Entry) {
        switch entry.body {
        case .message(let message):
            guard let push = message.push else { return nil }
            self.init(
                object: owed.object, conversation: owed.conversation,
                title: push.title.isEmpty ? message.sender : push.title, body: push.body)
        case .announcement(let announcement):
            guard let push = announcement.push else { return nil }
            self.init(
                object: owed.object, conversation: nil, title: push.title, body: push.body)
        default: return nil
        }
    }
}

extension Entry {
    fileprivate var isEdited: Bool {
        if case .message(let message) = body { message.editedMs > 0 } else { false }
    }
}
