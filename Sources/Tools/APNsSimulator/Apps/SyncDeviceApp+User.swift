internal import Model
internal import RouseClient
internal import SyncClient
internal import Wire

// What its user does, and what it holds.
extension SyncDeviceApp {
    func createConversation(
        _ conversation: ConversationID, participants: [String]
    ) throws(DeviceAppError) {
        try mutate(
            .createConversation(
                CreateConversation(conversation: conversation, participants: participants)))
    }

    func addParticipants(
        _ users: [String], to conversation: ConversationID
    ) throws(DeviceAppError) {
        try mutate(.addParticipants(AddParticipants(conversation: conversation, users: users)))
    }

    func send(
        _ text: String, title: String?, as message: MessageID, to conversation: ConversationID
    ) throws(DeviceAppError) {
        let part = Part(mimeType: "text/plain", content: Array(text.utf8))
        let push = PushText(
            title: title ?? configuration.user, body: String(text.prefix(Self.textMax)))
        try mutate(
            .sendMessage(
                SendMessage(
                    conversation: conversation, message: message, parts: [part], push: push)))
    }

    func read(
        _ conversation: ConversationID, through position: UInt64
    ) throws(DeviceAppError) {
        try with { rouse in try rouse.markRead(conversation, through: position) }
    }

    func read(_ conversation: ConversationID, only position: UInt64) throws(DeviceAppError) {
        try with { rouse in try rouse.read(conversation, only: position) }
    }

    func change(_ change: AppChange) throws(DeviceAppError) {
        switch change {
        case .remove(let users, let conversation):
            try mutate(
                .removeParticipants(
                    RemoveParticipants(conversation: conversation, users: users)))
        case .edit(let message, let text):
            let part = Part(mimeType: "text/plain", content: Array(text.utf8))
            try mutate(.editMessage(EditMessage(message: message, parts: [part])))
        case .delete(let message, let forEveryone):
            try mutate(
                .deleteMessage(DeleteMessage(message: message, forEveryone: forEveryone)))
        case .deleteConversation(let conversation, let forEveryone):
            try mutate(
                .deleteConversation(
                    DeleteConversation(conversation: conversation, forEveryone: forEveryone)))
        case .setTitle(let title, let conversation):
            try mutate(
                .changeMetadata(
                    ChangeMetadata(
                        conversation: conversation,
                        changes: [MetadataChange(path: ["title"], value: title)])))
        case .mute(let conversation, let isMuted):
            try mutate(
                .muteConversation(
                    MuteConversation(conversation: conversation, muted: isMuted)))
        case .block(let user, let isBlocked):
            try mutate(.blockUser(BlockUser(user: user, blocked: isBlocked)))
        }
    }

    func checkDigest() throws(DeviceAppError) { try with { rouse in rouse.checkDigest() } }

    func forget() throws(DeviceAppError) { try mutate(.forgetDevice(ForgetDevice())) }

    private func mutate(_ operation: Mutation.Operation) throws(DeviceAppError) {
        try with { rouse in try rouse.send(operation) }
    }

    private func with(
        _ body: @Sendable (isolated Rouse) throws -> Void
    ) throws(DeviceAppError) {
        guard isRunning, let life else {
            throw DeviceAppError("the app does not run: open it first")
        }
        guard hasNetwork else {
            throw DeviceAppError("without coverage the simulated app takes no commands")
        }
        do {
            // Its store may not be open yet.
            life.process.catchUp()
            try life.rouse.assumeIsolated { try body($0) }
        } catch {
            throw DeviceAppError("\(error)")
        }
    }

    // MARK: What it holds

    var status: DeviceAppStatus {
        var status = DeviceAppStatus()
        let standing = life?.rouse.assumeIsolated { $0.standing }
        status.isOnline = standing?.isOpen ?? false
        status.isInSync = standing?.isInSync ?? false
        status.hasUnanswered = standing?.hasUnanswered ?? false
        let cursor = standing?.cursor ?? (try? openStore().load().cursor)
        status.epoch = cursor?.epoch.description
        status.seq = cursor?.seq
        status.conversation = place?.description
        return status
    }

    func messages(
        _ conversation: ConversationID, above position: UInt64, limit: Int
    ) throws(DeviceAppError) -> [StoredMessage] {
        let entries: [Entry]
        do {
            entries = try openStore().messages(of: conversation, after: position, limit: limit)
        } catch {
            throw DeviceAppError("\(error)")
        }
        return entries.compactMap { entry in
            guard case .message(let message) = entry.body else { return nil }
            return StoredMessage(
                conversation: conversation.description,
                message: MessageID(entry.object)?.description ?? "", position: message.position,
                seq: entry.seq, sender: message.sender, text: Self.text(of: message))
        }
    }

    private static func text(of message: MessageState) -> String {
        let part = message.parts.first { $0.mimeType.hasPrefix("text/") }
        return part.map { String(decoding: $0.content, as: UTF8.self) } ?? ""
    }
}
