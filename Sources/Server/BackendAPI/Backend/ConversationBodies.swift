import Feed
import Foundation
import Model
import Wire

/// `POST /v1/conversations`.
struct NewConversation: Decodable {
    enum Key: String, CodingKey, CaseIterable { case id, participants }

    let id: ConversationID?
    let participants: [String]

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        id = try fields.identifier(.id)
        participants = try fields.users(.participants)
    }
}

/// `POST /v1/conversations/{id}/participants`.
struct NewParticipants: Decodable {
    enum Key: String, CodingKey, CaseIterable { case users }

    let users: [String]

    init(from decoder: any Decoder) throws {
        users = try Fields<Key>(decoder).users(.users)
    }
}

/// `POST /v1/conversations/{id}/messages`.
struct NewMessage: Decodable {
    enum Key: String, CodingKey, CaseIterable { case id, sender, parts, push }

    let id: MessageID?
    /// `nil`: the app itself.
    let sender: String?
    let parts: [NewPart]
    let push: NewPushText?

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        id = try fields.identifier(.id)
        sender = try fields.text(.sender, bytes: 1...UserID.bytesMax)
        parts = try fields.required(.parts)
        push = try fields.optional(.push)
    }
}

/// One part: `mime_type`, and its content as `text` or as `content` in base64.
struct NewPart: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case mimeType = "mime_type"
        case text, content
    }

    let part: Part

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        let mimeType = try fields.required(.mimeType, String.self)
        let text = try fields.optional(.text, String.self)
        let content = try fields.optional(.content, String.self)
        switch (text, content) {
        case (let text?, nil):
            part = Part(mimeType: mimeType, content: Array(text.utf8))
        case (nil, let content?):
            guard let bytes = Data(base64Encoded: content) else {
                throw fields.refusal(.content, "must be base64 with padding (RFC 4648 section 4)")
            }
            part = Part(mimeType: mimeType, content: Array(bytes))
        case (nil, nil): throw fields.missing(.text)
        case (_?, _?): throw fields.refusal(.content, "must not stand beside text")
        }
    }
}

/// What an alert about the message shows.
struct NewPushText: Decodable {
    enum Key: String, CodingKey, CaseIterable { case title, body }

    let text: PushText

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        text = PushText(
            title: try fields.optional(.title) ?? "", body: try fields.optional(.body) ?? "")
    }
}

extension Fields {
    fileprivate func identifier<Noun>(_ key: Key) throws -> Identifier<Noun>? {
        guard let text = try optional(key, String.self) else { return nil }
        guard let id = Identifier<Noun>(text: text) else {
            throw refusal(key, "must be 36 characters like \(Identifier<Noun>.example)")
        }
        return id
    }

    fileprivate func users(_ key: Key) throws -> [String] {
        let names = try required(key, [String].self)
        guard names.allSatisfy({ UserID($0).isValid }) else {
            throw refusal(
                key,
                "every user must have 1 to \(UserID.bytesMax) bytes without control characters")
        }
        return names
    }
}

/// A conversation as it stood when the request was carried out.
struct ConversationBody: Encodable {
    let id: String
    let createdAt: String
    let participantCount: UInt64

    init(_ record: ConversationRecord) {
        id = record.conversation.description
        createdAt = record.createdAt.text
        participantCount = record.participants
    }
}

/// A message that was published.
struct MessageBody: Encodable {
    let id: String
    let conversationId: String
    let position: UInt64
    /// Left out if it is the app itself.
    let sender: String?
    let sentAt: String

    init(_ record: MessageRecord) {
        id = record.message.description
        conversationId = record.conversation.description
        position = record.position
        sender = record.sender.isEmpty ? nil : record.sender
        sentAt = record.sentAt.text
    }
}
