import Feed
import HTTP1
import Model
import Wire

/// What a backend reads of conversations, messages and users.
enum ReadRoutes {
    static let all: [Route] = [
        Route("GET", "/v1/conversations/{conversation}", .keyed(conversation)),
        Route(
            "GET", "/v1/conversations/{conversation}/participants", query: paging,
            answerBytes: HTTPResponse.listBytesMax, .keyed(participants)),
        Route(
            "GET", "/v1/conversations/{conversation}/messages", query: paging.union(["order"]),
            answerBytes: HTTPResponse.listBytesMax, .keyed(messages)),
        Route(
            "GET", "/v1/conversations/{conversation}/receipts", query: paging,
            answerBytes: HTTPResponse.listBytesMax, .keyed(receipts)),
        Route("GET", "/v1/messages/{message}", answerBytes: messageBytes, .keyed(message)),
        Route(
            "GET", "/v1/users", query: paging.union(["prefix"]),
            answerBytes: HTTPResponse.listBytesMax, .keyed(users)),
        Route(
            "GET", "/v1/conversations", query: paging, answerBytes: HTTPResponse.listBytesMax,
            .keyed(allConversations)),
        Route("GET", "/v1/users/{user}", .keyed(user)),
        Route(
            "GET", "/v1/users/{user}/conversations", query: paging,
            answerBytes: HTTPResponse.listBytesMax, .keyed(conversations)),
        Route(
            "GET", "/v1/users/{user}/messages", query: paging,
            answerBytes: HTTPResponse.listBytesMax, .keyed(written)),
    ]

    static let paging: Set<String> = ["limit", "cursor"]

    /// Rows of a list unless the request says how many, and the most it can say.
    static let rowsDefault = 100
    static let rowsMax = 1000
    /// The same for messages, which are larger.
    static let messagesDefault = 50
    static let messagesMax = 100
    /// Content that is read for one list of messages: no more of it than an answer can hold.
    static let messagesBytes = HTTPResponse.listBytesMax

    /// What one message becomes in JSON, where each of its bytes is a control character.
    static let messageBytes = 512 * 1024

    static func read(
        _ app: AppID, _ query: BackendQuery, orNo thing: String,
        _ answer: @escaping (BackendReading) throws(Problem) -> HTTPResponse?
    ) -> Step {
        .read(.backend(app, query)) { reading throws(Problem) in
            switch reading {
            case .nothing: throw .noSuch(thing)
            case .backend(let found):
                guard let response = try answer(found) else { throw .unexpected(reading) }
                return .answer(response)
            default: throw .unexpected(reading)
            }
        }
    }

    static func conversation(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        return read(app, .conversation(id), orNo: "conversation") { reading throws(Problem) in
            guard case .conversation(let record, let metadata) = reading else { return nil }
            return .json(200, ConversationStateBody(record, try MetadataBody(metadata)))
        }
    }

    static func participants(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let query = BackendQuery.participants(
            id, after: try call.userCursor(.participants), limit: try rows(call))
        let address = call.address
        return read(app, query, orNo: "conversation") { reading throws(Problem) in
            guard case .participants(let records, let next) = reading else { return nil }
            return try .list(
                "participants", records, next: next.map { .name(.participants, address, $0) },
                after: { .name(.participants, address, $0.user) }, body: { ParticipantBody($0) })
        }
    }

    static func messages(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let descending: Bool
        switch call.request.queryValue("order") {
        case nil, "descending": descending = true
        case "ascending": descending = false
        default: throw .malformed("order: must be ascending or descending")
        }
        let list = descending ? PageCursor.List.messagesFalling : .messagesRising
        let range = MessageRange(
            descending: descending,
            beside: try call.positionCursor(.messagesRising, .messagesFalling),
            limit: try call.limit(default: messagesDefault, max: messagesMax),
            bytes: messagesBytes)
        let address = call.address
        return read(app, .messages(id, range), orNo: "conversation") { reading throws(Problem) in
            guard case .messages(let records, let next) = reading else { return nil }
            return try .list(
                "messages", records,
                next: next.map { PageCursor(list, of: address, position: $0).text },
                after: { PageCursor(list, of: address, position: $0.position).text },
                body: { record throws(Problem) in try FullMessageBody(record) })
        }
    }

    static func message(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("message", as: MessageID.self)
        return read(app, .message(id), orNo: "message") { reading throws(Problem) in
            guard case .message(let record) = reading else { return nil }
            return .json(200, try FullMessageBody(record))
        }
    }

    static func receipts(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let query = BackendQuery.receipts(
            id, after: try call.userCursor(.receipts), limit: try rows(call))
        let address = call.address
        return read(app, query, orNo: "conversation") { reading throws(Problem) in
            guard case .receipts(let all, let next) = reading else { return nil }
            return try .list(
                "receipts", all, next: next.map { .name(.receipts, address, $0) },
                after: { .name(.receipts, address, $0.user) }, body: { ReceiptBody($0) })
        }
    }

    static func user(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        read(app, .user(try call.user()), orNo: "user") { reading throws(Problem) in
            guard case .user(let view) = reading else { return nil }
            return .json(200, UserBody(view))
        }
    }

    static func users(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let query = BackendQuery.users(
            prefix: try call.namePrefix(), after: try call.userCursor(.users),
            limit: try rows(call))
        let address = call.address
        return read(app, query, orNo: "app") { reading throws(Problem) in
            guard case .users(let users, let next) = reading else { return nil }
            return try .list(
                "users", users, next: next.map { .name(.users, address, $0) },
                after: { .name(.users, address, $0.user) }, body: { ListedUserBody($0) })
        }
    }

    static func allConversations(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let query = BackendQuery.allConversations(
            after: try call.conversationCursor(.allConversations), limit: try rows(call))
        let address = call.address
        return read(app, query, orNo: "app") { reading throws(Problem) in
            guard case .allConversations(let all, let next) = reading else { return nil }
            return try .list(
                "conversations", all,
                next: next.map { PageCursor(.allConversations, of: address, $0.bytes).text },
                after: {
                    PageCursor(.allConversations, of: address, $0.conversation.bytes).text
                }, body: { ConversationStateBody($0) })
        }
    }

    static func conversations(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let query = BackendQuery.conversations(
            try call.user(), after: try call.conversationCursor(.conversations),
            limit: try rows(call), bytes: messagesBytes)
        let address = call.address
        return read(app, query, orNo: "user") { reading throws(Problem) in
            guard case .conversations(let all, let next) = reading else { return nil }
            return try .list(
                "conversations", all,
                next: next.map { PageCursor(.conversations, of: address, $0.bytes).text },
                after: {
                    let id = $0.conversation.conversation
                    return PageCursor(.conversations, of: address, id.bytes).text
                }, body: { entry throws(Problem) in try UserConversationBody(entry) })
        }
    }

    static func written(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let query = BackendQuery.written(
            try call.user(), after: try call.writtenCursor(),
            limit: try call.limit(default: messagesDefault, max: messagesMax),
            bytes: messagesBytes)
        let address = call.address
        return read(app, query, orNo: "user") { reading throws(Problem) in
            guard case .written(let all, let next) = reading else { return nil }
            return try .list(
                "messages", all, next: next.map { PageCursor(.written, of: address, $0).text },
                after: {
                    let place = WrittenPlace(conversation: $0.conversation, position: $0.position)
                    return PageCursor(.written, of: address, place).text
                }, body: { record throws(Problem) in try FullMessageBody(record) })
        }
    }

    static func rows(_ call: Call) throws(Problem) -> Int {
        try call.limit(default: rowsDefault, max: rowsMax)
    }
}

extension String {
    static func name(
        _ list: PageCursor.List, _ address: PageCursor.Address, _ user: UserID
    ) -> String {
        PageCursor(list, of: address, Array(user.name.utf8)).text
    }
}
