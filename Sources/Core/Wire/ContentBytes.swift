// What mutations and entries weigh in memory and on the wire, for limits: estimates, never less
// than the content itself.

extension Mutation {
    /// Bytes of content that wait in memory with this mutation, at least.
    public var contentBytes: Int {
        switch operation {
        case .sendMessage(let message):
            128 + message.parts.approximateBytes + (message.push?.bytes ?? 0)
        case .editMessage(let edit): 128 + edit.parts.approximateBytes + (edit.push?.bytes ?? 0)
        case .createConversation(let create):
            create.participants.reduce(64) { $0 + 16 + $1.utf8.count } + create.metadata.bytes
        case .addParticipants(let add):
            add.users.reduce(64) { $0 + 16 + $1.utf8.count }
        case .removeParticipants(let remove):
            remove.users.reduce(64) { $0 + 16 + $1.utf8.count }
        case .changeMetadata(let change): 64 + change.changes.bytes
        case .blockUser(let block): 64 + block.user.utf8.count
        case .forgetDevice, .deleteMessage, .deleteConversation, .muteConversation, nil: 64
        }
    }
}

extension Entry {
    /// Encoded size, a little overestimated: fixed fields and tags count as 96 bytes.
    public var approximateBytes: Int {
        switch body {
        case .message(let message):
            96 + message.sender.utf8.count + message.partsApproximateBytes
                + (message.push?.bytes ?? 0) + (message.hints?.approximateBytes ?? 0)
        case .announcement(let announcement):
            96 + announcement.parts.approximateBytes + (announcement.push?.bytes ?? 0)
                + (announcement.hints?.approximateBytes ?? 0)
        case .metadata(let metadata):
            metadata.values.reduce(96) { sum, value in
                sum + 16 + value.value.utf8.count
                    + value.path.reduce(0) { $0 + 8 + $1.utf8.count }
            }
        case .tombstone(let tombstone): 96 + tombstone.by.utf8.count
        case .block(let block): 96 + block.user.utf8.count
        case .readMark(let mark): 96 + mark.ranges.count * 24
        case .participant(let participant): 96 + participant.user.utf8.count
        case .receipt(let receipt): 96 + receipt.user.utf8.count
        case .conversationState(let conversation): 96 + conversation.creator.utf8.count
        case .conversationSettings, nil: 96
        }
    }
}

extension PushText {
    fileprivate var bytes: Int { title.utf8.count + body.utf8.count }
}

extension PushHints {
    /// Encoded size, a little overestimated: tags, lengths and numbers count as 96 bytes, and as
    /// 4 more for each argument.
    public var approximateBytes: Int {
        let texts = [titleKey, subtitleKey, bodyKey].reduce(0) { sum, text in
            guard let text else { return sum }
            return text.arguments.reduce(sum + text.key.utf8.count) { $0 + 4 + $1.utf8.count }
        }
        return [subtitle, sound?.name ?? "", thread, category, targetContent, event, object, data]
            .reduce(96 + texts) { $0 + $1.utf8.count }
    }

    /// Elements of repeated fields.
    public var elements: Int {
        [titleKey, subtitleKey, bodyKey].reduce(0) { $0 + ($1?.arguments.count ?? 0) }
    }
}

extension [MetadataChange] {
    fileprivate var bytes: Int {
        reduce(0) { sum, change in
            sum + 16 + change.value.utf8.count
                + change.path.reduce(0) { $0 + 8 + $1.utf8.count }
        }
    }
}
