public import AppLife
public import Model
public import SyncClient
public import Wire

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
            let notice = owed.entry.flatMap {
                AppNotice($0, object: owed.object, conversation: owed.conversation)
            }
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
    /// The notification of a message or announcement. `nil`: it has no text for alerts, and is
    /// shown inside the app only (MSG-3).
    public init?(_ entry: Entry) {
        guard let object = MessageID(entry.object) else { return nil }
        self.init(entry, object: object, conversation: entry.conversation)
    }

    fileprivate init?(_ entry: Entry, object: MessageID, conversation: ConversationID?) {
        let (push, hints): (PushText?, PushHints?)
        switch entry.body {
        case .message(let message): (push, hints) = (message.push, message.hints)
        case .announcement(let announcement):
            (push, hints) = (announcement.push, announcement.hints)
        default: return nil
        }
        guard let push else { return nil }
        self.init(
            object: object, conversation: conversation, title: push.title, body: push.body,
            hints: hints ?? PushHints())
    }
}

extension Entry {
    fileprivate var isEdited: Bool {
        if case .message(let message) = body { message.editedMs > 0 } else { false }
    }
}
