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
        let known = delivered.compactMap { shown in
            shown.object.map { (object: $0, conversation: shown.conversation) }
        }
        var standings = try standings(of: known, at: time)[...]
        for shown in delivered {
            let standing = shown.object == nil ? nil : standings.popFirst()
            screen.delivered.append(
                AppScreen.Delivered(
                    identifier: shown.identifier, standing: standing ?? .unknown))
        }
        let owed = try owed().map { owed in
            let notice = owed.entry.flatMap {
                AppNotice($0, object: owed.object, conversation: owed.conversation)
            }
            return (owed, notice)
        }
        let told = owed.filter { $0.1 != nil }.map {
            (object: $0.0.object, conversation: $0.0.conversation)
        }
        standings = try self.standings(of: told, at: time)[...]
        for (owed, notice) in owed {
            let standing = notice == nil ? nil : standings.popFirst()
            screen.owed.append(
                AppScreen.Owed(
                    notice
                        ?? AppNotice(
                            object: owed.object, conversation: owed.conversation, title: "",
                            body: ""),
                    standing: standing ?? .missing,
                    isEdited: owed.entry.map { $0.isEdited } ?? false,
                    wasTold: owed.wasAlerted))
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
    var isEdited: Bool {
        if case .message(let message) = body { message.editedMs > 0 } else { false }
    }
}
