import Feed
import FoundationEssentials
import Model
import Wake
import Wire

/// `POST /v1/conversations`.
struct NewConversation: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case id, participants, distinct, metadata
        case receiptsOff = "receipts_off"
    }

    let id: ConversationID?
    let participants: [String]
    let distinct: Bool
    let receiptsOff: Bool
    let metadata: [NewValue]

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        id = try fields.identifier(.id)
        participants = try fields.users(.participants)
        distinct = try fields.optional(.distinct) ?? false
        receiptsOff = try fields.optional(.receiptsOff) ?? false
        metadata = try fields.optional(.metadata) ?? []
    }
}

/// A value of metadata that a conversation begins with.
struct NewValue: Decodable {
    enum Key: String, CodingKey, CaseIterable { case path, value }

    let change: MetadataChange

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        change = MetadataChange(
            path: try fields.required(.path), value: try fields.required(.value))
    }
}

/// `PATCH /v1/conversations/{id}/metadata`.
struct NewMetadataChanges: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case changes
        case baseVersion = "base_version"
    }

    let changes: [NewMetadataChange]
    let baseVersion: UInt64

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        changes = try fields.required(.changes)
        baseVersion = try fields.number(.baseVersion, in: 1...UInt64(Int64.max)) ?? 0
    }
}

/// One change: `path` gets `value`, or is removed with everything below it.
struct NewMetadataChange: Decodable {
    enum Key: String, CodingKey, CaseIterable { case path, value, removed }

    let change: MetadataChange

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        let path = try fields.required(.path, [String].self)
        let value = try fields.optional(.value, String.self)
        let removed = try fields.optional(.removed, Bool.self)
        switch (value, removed) {
        case (let value?, nil): change = MetadataChange(path: path, value: value)
        case (nil, true?): change = MetadataChange(path: path, removed: true)
        case (nil, nil):
            throw fields.refusal("must hold value, or removed: true", .missingField)
        case (nil, false?): throw fields.refusal(.removed, "must be true, or left out")
        case (_?, _?): throw fields.refusal(.removed, "must not stand beside value")
        }
    }
}

/// `POST /v1/conversations/{id}/participants` and `.../participants/remove`.
struct NamedUsers: Decodable {
    enum Key: String, CodingKey, CaseIterable { case users }

    let users: [String]

    init(from decoder: any Decoder) throws {
        users = try Fields<Key>(decoder).users(.users)
    }
}

/// `POST /v1/conversations/{id}/messages`.
struct NewMessage: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case id, sender, parts, push, urgency
        case sendAt = "send_at"
    }

    let id: MessageID?
    /// `nil`: the app itself.
    let sender: String?
    let parts: [NewPart]
    let push: NewPush?
    let urgency: Urgency
    /// `nil`: now.
    let sendAt: Timestamp?

    /// How its alert shows itself, and how soon.
    var options: PushOptions {
        var options = push?.options ?? PushOptions()
        options.urgency = urgency
        return options
    }

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        id = try fields.identifier(.id)
        urgency = try fields.urgency(.urgency)
        sendAt = try fields.time(.sendAt)
        sender = try fields.text(.sender, bytes: 1...UserID.bytesMax)
        parts = try fields.required(.parts)
        push = try fields.optional(.push)
    }
}

/// `PUT /v1/messages/{id}`.
struct MessageEdit: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case parts, push
        case baseVersion = "base_version"
    }

    let parts: [NewPart]
    let push: NewPushText?
    /// 0: any.
    let baseVersion: UInt64

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        parts = try fields.required(.parts)
        push = try fields.optional(.push)
        baseVersion = try fields.number(.baseVersion, in: 1...UInt64(Int64.max)) ?? 0
    }
}

/// One part: `mime_type`, and its content as `text`, as `content` in base64, or as a `reference`.
struct NewPart: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case mimeType = "mime_type"
        case text, content, reference
    }

    let part: Part

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        let mimeType = try fields.required(.mimeType, String.self)
        let text = try fields.optional(.text, String.self)
        let content = try fields.optional(.content, String.self)
        if let reference = try fields.optional(.reference, NewReference.self) {
            if content != nil { throw fields.refusal(.content, "must not stand beside reference") }
            if text != nil { throw fields.refusal(.text, "must not stand beside reference") }
            part = Part(mimeType: mimeType, reference: reference.reference)
            return
        }
        switch (text, content) {
        case (let text?, nil):
            part = Part(mimeType: mimeType, content: Array(text.utf8))
        case (nil, let content?):
            guard let bytes = Data(wholeBase64: content) else {
                throw fields.refusal(.content, "must be base64 with padding (RFC 4648 section 4)")
            }
            part = Part(mimeType: mimeType, content: Array(bytes))
        case (nil, nil):
            throw fields.refusal("must hold text, content or reference", .missingField)
        case (_?, _?): throw fields.refusal(.content, "must not stand beside text")
        }
    }
}

extension Data {
    /// Base64 with padding (RFC 4648 section 4). Foundation takes padding alone for nothing, too.
    init?(wholeBase64 text: String) {
        let padding = text.utf8.suffix(3).count { $0 == UInt8(ascii: "=") }
        guard let bytes = Data(base64Encoded: text),
            bytes.count == text.utf8.count / 4 * 3 - padding
        else { return nil }
        self = bytes
    }
}

/// Content that is kept elsewhere (MSG-23).
struct NewReference: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case url, size, digest
        case expiresAt = "expires_at"
    }

    let reference: PartReference

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        let url = try fields.required(.url, String.self)
        guard let size = try fields.number(.size, in: 1...UInt64(Int64.max)) else {
            throw fields.missing(.size)
        }
        guard let digest = Data(wholeBase64: try fields.required(.digest, String.self)),
            digest.count == 32
        else {
            throw fields.refusal(.digest, "must be a SHA-256, 32 bytes, in base64 with padding")
        }
        let expires = try fields.time(.expiresAt)
        // What devices are told has no word for it but the one for a time that is not known.
        if expires?.milliseconds == 0 {
            throw fields.refusal(.expiresAt, "must be after 1970-01-01T00:00:00Z, or left out")
        }
        reference = PartReference(
            url: url, size: size, digest: Array(digest), expiresMs: expires?.milliseconds ?? 0)
    }
}

/// What an alert about an edited message shows.
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
    func identifier<Noun>(_ key: Key) throws -> Identifier<Noun>? {
        guard let text = try optional(key, String.self) else { return nil }
        guard let id = Identifier<Noun>(text: text) else {
            throw refusal(key, "must be 36 characters like \(Identifier<Noun>.example)")
        }
        return id
    }

    func time(_ key: Key) throws -> Timestamp? {
        guard let text = try optional(key, String.self) else { return nil }
        guard let time = Timestamp(text: text) else {
            throw refusal(
                key, "must be a time like \(Timestamp(milliseconds: 1_795_000_000_000).text)")
        }
        return time
    }

    func users(_ key: Key) throws -> [String] {
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
    let distinct: Bool
    let receiptsOff: Bool

    init(_ record: ConversationRecord) {
        id = record.conversation.description
        createdAt = record.createdAt.text
        participantCount = record.participants
        distinct = !record.distinctKey.isEmpty
        receiptsOff = record.receiptsOff
    }
}

/// The metadata of a conversation, all of it.
struct MetadataBody: Encodable {
    struct Value: Encodable {
        let path: [String]
        let value: String
    }

    /// 0: it never had any.
    let version: UInt64
    let values: [Value]

    init(_ record: MetadataRecord) throws(Problem) {
        version = record.version
        do throws(WireError) {
            values = try MetadataState(encoded: record.state).values.map {
                Value(path: $0.path, value: $0.value)
            }
        } catch {
            throw Problem(StoreError.corrupt("metadata: \(error)"))
        }
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

/// A message as an edit left it.
struct EditedMessageBody: Encodable {
    let id: String
    let conversationId: String
    let position: UInt64
    /// Left out if it is the app itself.
    let sender: String?
    let sentAt: String
    let version: UInt64
    let editedAt: String?

    init(_ record: MessageRecord) {
        let message = MessageBody(record)
        id = message.id
        conversationId = message.conversationId
        position = message.position
        sender = message.sender
        sentAt = message.sentAt
        version = record.version
        editedAt = record.editedAt?.text
    }
}
