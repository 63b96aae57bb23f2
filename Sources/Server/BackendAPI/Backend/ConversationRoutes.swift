import Feed
import HTTP1
import Model
import Wake
import Wire

/// What a backend changes. Each is one request of the store, so a retry with the same
/// Idempotency-Key has one effect and one answer (promise P2).
enum ConversationRoutes {
    static let all: [Route] = [
        Route("POST", "/v1/conversations", .keyed(create)),
        Route("POST", "/v1/conversations/{conversation}/participants", .keyed(addParticipants)),
        Route(
            "POST", "/v1/conversations/{conversation}/participants/remove",
            .keyed(removeParticipants)),
        Route("DELETE", "/v1/conversations/{conversation}", .keyed(deleteConversation)),
        Route("POST", "/v1/conversations/{conversation}/messages", .keyed(publish)),
        Route("PATCH", "/v1/conversations/{conversation}/metadata", .keyed(changeMetadata)),
        Route("PUT", "/v1/messages/{message}", .keyed(edit)),
        Route("DELETE", "/v1/messages/{message}", .keyed(deleteMessage)),
    ]

    static func create(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let body = try call.body(NewConversation.self)
        let request = CreateConversation(
            conversation: body.id ?? .fresh(at: call.now), participants: body.participants,
            distinct: body.distinct, metadata: body.metadata.map(\.change),
            receiptsOff: body.receiptsOff)
        let idempotency = try call.idempotency()
        return .commit(.createConversation(app: app, request, idempotency: idempotency)) {
            answer throws(Problem) in
            try conversation(answer, status: 201)
        }
    }

    static func addParticipants(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let request = AddParticipants(
            conversation: id, users: try call.body(NamedUsers.self).users)
        let idempotency = try call.idempotency()
        return .commit(.addParticipants(app: app, request, idempotency: idempotency)) {
            answer throws(Problem) in
            try conversation(answer, status: 200)
        }
    }

    static func removeParticipants(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let request = RemoveParticipants(
            conversation: id, users: try call.body(NamedUsers.self).users)
        let idempotency = try call.idempotency()
        return .commit(.removeParticipants(app: app, request, idempotency: idempotency)) {
            answer throws(Problem) in
            try conversation(answer, status: 200)
        }
    }

    /// For everyone.
    static func deleteConversation(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let idempotency = try call.idempotency()
        return .commit(.deleteConversation(app: app, id, idempotency: idempotency)) {
            answer throws(Problem) in try done(answer)
        }
    }

    static func edit(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("message", as: MessageID.self)
        let body = try call.body(MessageEdit.self)
        let request = EditMessage(
            message: id, parts: body.parts.map(\.part), push: body.push?.text,
            baseVersion: body.baseVersion)
        let idempotency = try call.idempotency()
        return .commit(.editMessage(app: app, request, idempotency: idempotency)) {
            answer throws(Problem) in
            guard case .edited(let record) = answer else { throw .unexpected(answer) }
            return .answer(.json(200, EditedMessageBody(record)))
        }
    }

    /// For everyone.
    static func deleteMessage(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("message", as: MessageID.self)
        let idempotency = try call.idempotency()
        return .commit(.deleteMessage(app: app, id, idempotency: idempotency)) {
            answer throws(Problem) in try done(answer)
        }
    }

    private static func done(_ answer: StoreAnswer) throws(Problem) -> Step {
        guard case .done = answer else { throw .unexpected(answer) }
        return .answer(HTTPResponse(status: 204))
    }

    private static func conversation(
        _ answer: StoreAnswer, status: Int
    ) throws(Problem) -> Step {
        guard case .conversation(let record) = answer else { throw .unexpected(answer) }
        return .answer(.json(status, ConversationBody(record)))
    }

    static func publish(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let body = try call.body(NewMessage.self)
        let message = SendMessage(
            conversation: id, message: body.id ?? .fresh(at: call.now),
            parts: body.parts.map(\.part), push: body.push?.text)
        var options = body.options
        options.trace = call.request.trace
        let publication = Publication(
            message: message, sender: body.sender ?? "", options: options,
            isIDFresh: body.id == nil && body.sendAt == nil)
        let idempotency = try call.idempotency()
        if let sendAt = body.sendAt {
            return ScheduleRoutes.add(
                NewScheduled(.message(publication), sendAt: sendAt), app, idempotency)
        }
        return .commit(.publish(app: app, publication, idempotency: idempotency)) {
            answer throws(Problem) in
            guard case .published(let record) = answer else { throw .unexpected(answer) }
            return .answer(.json(201, MessageBody(record)))
        }
    }

    static func changeMetadata(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let body = try call.body(NewMetadataChanges.self)
        let request = ChangeMetadata(
            conversation: id, changes: body.changes.map(\.change), baseVersion: body.baseVersion)
        let idempotency = try call.idempotency()
        return .commit(.changeMetadata(app: app, request, idempotency: idempotency)) {
            answer throws(Problem) in
            guard case .metadata(let record) = answer else { throw .unexpected(answer) }
            return .answer(.json(200, try MetadataBody(record)))
        }
    }
}

extension Problem {
    /// The store answered another question: our fault.
    static func unexpected(_ answer: StoreAnswer) -> Problem {
        .internalFault("the store gave an answer of another kind")
    }

    static func unexpected(_ reading: StoreReading) -> Problem {
        .internalFault("the store gave a reading of another kind")
    }
}
