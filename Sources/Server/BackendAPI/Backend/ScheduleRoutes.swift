import Feed
import HTTP1
import Model
import Wake
import Wire

/// What a backend has asked to be published at a time.
enum ScheduleRoutes {
    static let all: [Route] = [
        Route(
            "GET", "/v1/scheduled", query: ["state", "limit", "cursor"],
            answerBytes: HTTPResponse.listBytesMax, .keyed(list)),
        Route(
            "GET", "/v1/scheduled/{scheduled}", answerBytes: ReadRoutes.messageBytes,
            .keyed(show)),
        Route("DELETE", "/v1/scheduled/{scheduled}", .keyed(cancel)),
    ]

    static let rowsDefault = 100
    static let rowsMax = 1000

    /// A message or an announcement that came with a time.
    static func add(_ new: NewScheduled, _ app: AppID, _ idempotency: Idempotency?) -> Step {
        .commit(.schedules(.add(app: app, new, idempotency: idempotency))) {
            answer throws(Problem) in
            guard case .scheduled(let record) = answer else { throw .unexpected(answer) }
            return .answer(.json(202, ScheduledBody(record)))
        }
    }

    private static func list(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let states = ScheduledRecord.State.allCases
        let name = call.request.queryValue("state") ?? ScheduledRecord.State.pending.name
        guard let state = states.first(where: { $0.name == name }) else {
            throw .malformed(
                "state: must be one of " + states.map(\.name).joined(separator: ", "))
        }
        let query = BackendQuery.schedule(
            state, after: try call.scheduleCursor(.schedule),
            limit: try call.limit(default: rowsDefault, max: rowsMax))
        let address = call.address
        return .read(.backend(app, query)) { reading throws(Problem) in
            guard case .backend(.schedule(let records, let next)) = reading else {
                throw .unexpected(reading)
            }
            return .answer(
                try .list(
                    "scheduled", records,
                    next: next.map { PageCursor(.schedule, of: address, $0).text },
                    after: {
                        let place = SchedulePlace(sendAt: $0.sendAt, message: $0.message)
                        return PageCursor(.schedule, of: address, place).text
                    }, body: { ScheduledBody($0) }))
        }
    }

    private static func show(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .read(.backend(app, .scheduled(try id(call)))) { reading throws(Problem) in
            switch reading {
            case .nothing: throw .noSuch("scheduled message or announcement")
            case .backend(.scheduled(let record)):
                return .answer(.json(200, try ScheduledBody(content: record)))
            default: throw .unexpected(reading)
            }
        }
    }

    private static func cancel(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let request = ScheduleRequest.cancel(
            app: app, try id(call), idempotency: try call.idempotency())
        return .commit(.schedules(request)) { answer throws(Problem) in
            guard case .done = answer else { throw .unexpected(answer) }
            return .answer(HTTPResponse(status: 204))
        }
    }

    private static func id(_ call: Call) throws(Problem) -> MessageID {
        try call.identifier("scheduled", as: MessageID.self)
    }
}

struct ScheduledBody: Encodable {
    struct Failure: Encodable {
        /// Of the code registry.
        let code: UInt64
        let name: String
        let detail: String
    }

    /// The one it has, or will have, as a message or an announcement.
    let id: String
    let kind: String
    let state: String
    let sendAt: String
    let createdAt: String
    /// Of a message.
    let conversationId: String?
    /// Left out if it is the app itself.
    let sender: String?
    /// Of an announcement: how many users were named.
    let recipientCount: UInt64?
    let publishedAt: String?
    /// Of a message that was published.
    let position: UInt64?
    let failedAt: String?
    let failure: Failure?
    /// Of one alone, unless it was published.
    private(set) var parts: [PartBody]?
    private(set) var push: PushTextBody?

    init(_ record: ScheduledRecord) {
        id = record.message.description
        kind = record.isAnnouncement ? "announcement" : "message"
        state = record.state.name
        sendAt = record.sendAt.text
        createdAt = record.createdAt.text
        conversationId = record.isAnnouncement ? nil : record.conversation.description
        sender = record.sender?.name
        recipientCount = record.isAnnouncement ? record.recipients : nil
        let settledAt = record.settledAt?.text
        publishedAt = record.state == .published ? settledAt : nil
        position = record.position == 0 ? nil : record.position
        failedAt = record.state == .failed ? settledAt : nil
        guard record.state == .failed else {
            failure = nil
            return
        }
        let code = UInt32(exactly: record.code).flatMap { Code(rawValue: $0) } ?? .internal
        failure = Failure(code: record.code, name: code.name, detail: record.detail)
    }

    /// With its content.
    init(content record: ScheduledRecord) throws(Problem) {
        self.init(record)
        guard record.state != .published else { return }
        do throws(WireError) {
            let all =
                record.isAnnouncement
                ? try AnnouncementState(encoded: record.parts).parts
                : try MessageState(encoded: record.parts).parts
            parts = all.map { PartBody($0) }
        } catch {
            throw Problem(StoreError.corrupt("scheduled: parts: \(error)"))
        }
        guard !(record.pushTitle.isEmpty && record.pushBody.isEmpty) else { return }
        push = PushTextBody(title: record.pushTitle, body: record.pushBody)
    }
}
