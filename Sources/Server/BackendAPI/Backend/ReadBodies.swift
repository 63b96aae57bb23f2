import Feed
import FoundationEssentials
import Model
import Wire

/// A conversation as it stands.
struct ConversationStateBody: Encodable {
    let id: String
    let createdAt: String
    /// Left out if it is the app itself.
    let creator: String?
    let participantCount: UInt64
    let distinct: Bool
    let receiptsOff: Bool
    /// Of the newest message; 0: there is none.
    let position: UInt64
    /// Left out in the list of all conversations.
    let metadata: MetadataBody?

    init(_ record: ConversationRecord, _ metadata: MetadataBody? = nil) {
        id = record.conversation.description
        createdAt = record.createdAt.text
        creator = record.creator.isEmpty ? nil : record.creator
        participantCount = record.participants
        distinct = !record.distinctKey.isEmpty
        receiptsOff = record.receiptsOff
        position = record.position
        self.metadata = metadata
    }
}

struct ParticipantBody: Encodable {
    let user: String
    /// Sees the messages above it.
    let joinedPosition: UInt64

    init(_ record: ParticipantRecord) {
        user = record.user.name
        joinedPosition = record.joinedPosition
    }
}

/// A message with its content.
struct FullMessageBody: Encodable {
    let id: String
    let conversationId: String
    let position: UInt64
    /// Left out if it is the app itself.
    let sender: String?
    let sentAt: String
    let version: UInt64
    /// Left out once it is deleted.
    let parts: [PartBody]?
    let push: PushTextBody?
    let editedAt: String?
    let deletedAt: String?
    /// Left out if it is the app itself, or nobody.
    let deletedBy: String?

    init(_ record: MessageRecord) throws(Problem) {
        id = record.message.description
        conversationId = record.conversation.description
        position = record.position
        sender = record.sender.isEmpty ? nil : record.sender
        sentAt = record.sentAt.text
        version = record.version
        editedAt = record.editedAt?.text
        deletedAt = record.deletedAt?.text
        deletedBy = record.deletedBy.isEmpty ? nil : record.deletedBy
        push =
            record.pushTitle.isEmpty && record.pushBody.isEmpty
            ? nil : PushTextBody(title: record.pushTitle, body: record.pushBody)
        guard record.deletedAt == nil else {
            parts = nil
            return
        }
        do throws(WireError) {
            parts = try MessageState(encoded: record.parts).parts.map { PartBody($0) }
        } catch {
            throw Problem(StoreError.corrupt("message: parts: \(error)"))
        }
    }
}

struct PushTextBody: Encodable {
    let title: String
    let body: String
}

/// A part as it is given back: `text` where the MIME type says text and the bytes are UTF-8.
struct PartBody: Encodable {
    struct Reference: Encodable {
        let url: String
        let size: UInt64
        let digest: String
        let expiresAt: String?
    }

    let mimeType: String
    let text: String?
    let content: String?
    let reference: Reference?

    init(_ part: Part) {
        mimeType = part.mimeType
        reference = part.reference.map {
            Reference(
                url: $0.url, size: $0.size, digest: Data($0.digest).base64EncodedString(),
                expiresAt: $0.expiresMs == 0 ? nil : Timestamp(milliseconds: $0.expiresMs).text)
        }
        let isText = part.mimeType.lowercased().hasPrefix("text/")
        text =
            reference == nil && isText ? String(validating: part.content, as: UTF8.self) : nil
        content =
            reference == nil && text == nil ? Data(part.content).base64EncodedString() : nil
    }
}

struct ReceiptBody: Encodable {
    let user: String
    let delivered: UInt64
    let read: UInt64

    init(_ progress: ParticipantProgress) {
        user = progress.user.name
        delivered = progress.delivered
        read = progress.read
    }
}

struct UserBody: Encodable {
    struct Feed: Encodable {
        let head: UInt64
        let visibleHead: UInt64
    }

    let user: String
    let createdAt: String
    let suspended: Bool
    let deviceCount: Int
    let feed: Feed
    /// The number on the icon.
    let unread: UInt64

    init(_ view: UserView) {
        user = view.user.user.name
        createdAt = view.user.createdAt.text
        suspended = view.user.isSuspended
        deviceCount = view.devices
        feed = Feed(head: view.user.head, visibleHead: view.user.visibleHead)
        unread = view.unread
    }
}

/// A user in the list of them.
struct ListedUserBody: Encodable {
    let user: String
    let createdAt: String
    let suspended: Bool

    init(_ record: UserRecord) {
        user = record.user.name
        createdAt = record.createdAt.text
        suspended = record.isSuspended
    }
}

struct UserConversationBody: Encodable {
    let id: String
    let createdAt: String
    let participantCount: UInt64
    let distinct: Bool
    let receiptsOff: Bool
    /// Of the newest message; 0: there is none.
    let position: UInt64
    /// The user sees the messages above it.
    let joinedPosition: UInt64
    /// Of this conversation, muted or not.
    let unread: UInt64
    /// Left out if there is none, or none that the user is shown among the newest.
    let lastMessage: FullMessageBody?

    init(_ entry: UserConversation) throws(Problem) {
        id = entry.conversation.conversation.description
        createdAt = entry.conversation.createdAt.text
        participantCount = entry.conversation.participants
        distinct = !entry.conversation.distinctKey.isEmpty
        receiptsOff = entry.conversation.receiptsOff
        position = entry.conversation.position
        joinedPosition = entry.participant.joinedPosition
        unread = entry.participant.unread
        lastMessage = if let newest = entry.newest { try FullMessageBody(newest) } else { nil }
    }
}
