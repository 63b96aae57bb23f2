// Pairs whose second operation is always refused. Each has been asked for all the same, and a test
// fails if one of them takes place.
extension OperationPair {
    /// Why the second cannot have its effect after the first; `nil`: both can.
    var impossible: String? {
        switch kind {
        case .message: impossibleOfMessages
        case .announcement: impossibleOfAnnouncements
        case .conversation: impossibleInConversations
        case .user: impossibleForUsers
        case .device: impossibleOnDevices
        case .app: impossibleOfApps
        case .store: nil
        }
    }

    private func second(_ operations: Operation...) -> Bool { operations.contains(second) }
    private func first(_ operations: Operation...) -> Bool { operations.contains(first) }

    private var impossibleOfMessages: String? {
        if second.makesMessages {
            if first == .cancel { return nil }
            // A message that waits for its time keeps no id.
            if first == .schedule, second != .schedule { return nil }
            return "the id is in use"
        }
        if first == .cancel, second == .cancel { return "nothing waits any more" }
        if second(.edit, .delete) {
            if first(.publish, .schedule) { return "it is no user's" }
            if relation == .otherUser, first(.send, .publishAs, .edit, .delete) {
                return "it is another user's"
            }
        }
        if first(.delete, .backendDelete), second(.edit, .backendEdit) {
            return "it was deleted"
        }
        return nil
    }

    private var impossibleOfAnnouncements: String? {
        switch (first, second) {
        case (.cancel, .announce), (.cancel, .scheduleAnnouncement): nil
        case (.scheduleAnnouncement, .announce): nil
        case (_, .announce), (_, .scheduleAnnouncement): "the id is in use"
        case (.cancel, .cancel): "nothing waits any more"
        case (.takeBack, .readAnnouncement): "it was taken back"
        case (.readAnnouncement, .readAnnouncement) where relation == .sameUser:
            "it is read already"
        default: nil
        }
    }

    private static let byMembers: Set<Operation> = [
        .add, .send, .edit, .delete, .remove, .leave, .end, .setMetadata, .mute, .unmute,
        .publishAs, .backendMute, .backendUnmute,
    ]
    private static let aboutMessages: Set<Operation> = [
        .edit, .delete, .hide, .read, .backendEdit, .backendDelete,
    ]

    private var impossibleInConversations: String? {
        if second(.create, .backendCreate) { return "the id is in use" }
        if first(.end, .backendEnd) {
            return second == .hide ? nil : "the conversation was deleted"
        }
        if first(.create, .backendCreate), Self.aboutMessages.contains(second) {
            return "there is no message yet"
        }
        if second == .end {
            if first == .backendCreate { return "no user made it" }
            if first == .create, relation == .otherUser { return "another user made it" }
        }
        if first(.leave, .backendRemove), relation == .sameUser, Self.byMembers.contains(second) {
            return "the user takes no part any more"
        }
        return nil
    }

    private static let ofSessions: Set<Operation> = Set(
        Operation.allCases.filter { $0.roles[.user] == .own && $0 != .open })

    private var impossibleForUsers: String? {
        switch first {
        case .deleteUser:
            if Self.ofSessions.contains(second) { return "nobody is logged in" }
            if second(
                .revoke, .challenge, .suspendUser, .resumeUser, .tagUser, .tagDevice, .removeDevice,
                .backendMute, .backendUnmute, .backendBlock, .backendUnblock)
            {
                return "there is no such user"
            }
        case .revoke:
            if Self.ofSessions.contains(second) { return "nobody is logged in" }
            if second(.removeDevice, .tagDevice) { return "no device is logged in" }
        case .suspendUser:
            if second(.open, .reauthenticate) { return "the user is suspended" }
        default: break
        }
        return nil
    }

    private var impossibleOnDevices: String? {
        if relation == .otherUser {
            return second == .open ? nil : "it is another user's until a login"
        }
        if first(.forget, .removeDevice), !second(.open, .abandon) {
            return "nobody is logged in on it"
        }
        return nil
    }

    private var impossibleOfApps: String? {
        if first == .removeApp {
            if second(
                .putIssuerKey, .putAPIKey, .putCredential, .createWebhook, .createCampaign,
                .pauseCampaign, .resumeCampaign, .cancelCampaign, .suspendApp, .resumeApp,
                .removeApp)
            {
                return "there is no such app"
            }
        }
        return nil
    }
}
