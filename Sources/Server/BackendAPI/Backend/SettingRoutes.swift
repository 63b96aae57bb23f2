import Feed
import HTTP1
import Model

/// What a user's devices set, as a backend reads it and sets it for them: blocks and mutes.
enum SettingRoutes {
    static let all: [Route] = [
        Route(
            "GET", "/v1/users/{user}/blocks", query: ReadRoutes.paging,
            answerBytes: HTTPResponse.listBytesMax, .keyed(blocks)),
        Route("PUT", block, takesBody: false, .keyed(startBlock)),
        Route("DELETE", block, .keyed(endBlock)),
        Route(
            "GET", "/v1/users/{user}/mutes", query: ReadRoutes.paging,
            answerBytes: HTTPResponse.listBytesMax, .keyed(mutes)),
        Route("PUT", mute, .keyed(setMute)),
        Route("DELETE", mute, .keyed(endMute)),
    ]

    private static let block = "/v1/users/{user}/blocks/{other}"
    private static let mute = "/v1/users/{user}/conversations/{conversation}/mute"

    static func blocks(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let query = BackendQuery.blocks(
            try call.user(), after: try call.userCursor(.blocks), limit: try ReadRoutes.rows(call))
        let address = call.address
        return ReadRoutes.read(app, query, orNo: "user") { reading throws(Problem) in
            guard case .blocks(let all, let next) = reading else { return nil }
            return try .list(
                "blocks", all, next: next.map { .name(.blocks, address, $0) },
                after: { .name(.blocks, address, $0.other) }, body: { BlockBody($0) })
        }
    }

    static func mutes(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let query = BackendQuery.mutes(
            try call.user(), after: try call.conversationCursor(.mutes),
            limit: try ReadRoutes.rows(call))
        let address = call.address
        return ReadRoutes.read(app, query, orNo: "user") { reading throws(Problem) in
            guard case .mutes(let all, let next) = reading else { return nil }
            return try .list(
                "mutes", all, next: next.map { PageCursor(.mutes, of: address, $0.bytes).text },
                after: { PageCursor(.mutes, of: address, $0.conversation.bytes).text },
                body: { MuteBody($0) })
        }
    }

    static func startBlock(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        try change(call, app, isBlocked: true)
    }

    static func endBlock(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        try change(call, app, isBlocked: false)
    }

    private static func change(
        _ call: Call, _ app: AppID, isBlocked: Bool
    ) throws(Problem) -> Step {
        let block = BlockChange(try call.user(), try call.user("other"), isBlocked: isBlocked)
        return done(.block(app: app, block, idempotency: try call.idempotency()))
    }

    static func setMute(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let until = try call.body(NewMute.self).until
        return try change(call, app, isMuted: true, until: until)
    }

    static func endMute(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        try change(call, app, isMuted: false, until: nil)
    }

    private static func change(
        _ call: Call, _ app: AppID, isMuted: Bool, until: Timestamp?
    ) throws(Problem) -> Step {
        let id = try call.identifier("conversation", as: ConversationID.self)
        let mute = MuteChange(try call.user(), id, isMuted: isMuted, until: until)
        return done(.mute(app: app, mute, idempotency: try call.idempotency()))
    }

    private static func done(_ request: StoreRequest) -> Step {
        .commit(request) { answer throws(Problem) in
            guard case .done = answer else { throw .unexpected(answer) }
            return .answer(HTTPResponse(status: 204))
        }
    }
}

private struct NewMute: Decodable {
    enum Key: String, CodingKey, CaseIterable { case until }

    /// `nil`: until it is ended.
    let until: Timestamp?

    init(from decoder: any Decoder) throws {
        until = try Fields<Key>(decoder).time(.until)
    }
}

private struct BlockBody: Encodable {
    let user: String

    init(_ record: BlockRecord) { user = record.other.name }
}

private struct MuteBody: Encodable {
    let conversationId: String
    /// Left out: until it is ended.
    let until: String?

    init(_ record: SettingsRecord) {
        conversationId = record.conversation.description
        until = record.mutedUntil?.text
    }
}
