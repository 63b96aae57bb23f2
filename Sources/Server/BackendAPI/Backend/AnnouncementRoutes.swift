import Feed
import HTTP1
import Model
import Wake
import Wire

/// What a backend tells listed users.
enum AnnouncementRoutes {
    static let all: [Route] = [
        Route("POST", "/v1/announcements", .keyed(announce)),
        Route("DELETE", "/v1/announcements/{announcement}", .keyed(takeBack)),
    ]

    static func announce(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let body = try call.body(NewAnnouncement.self)
        var options = body.options
        options.trace = call.request.trace
        let request = Announcement(
            announcement: body.id ?? .fresh(at: call.now), users: body.users,
            parts: body.parts.map(\.part), push: body.push?.text, options: options)
        let idempotency = try call.idempotency()
        if let sendAt = body.sendAt {
            return ScheduleRoutes.add(
                NewScheduled(.announcement(request), sendAt: sendAt), app, idempotency)
        }
        return .commit(.announce(app: app, request, idempotency: idempotency)) {
            answer throws(Problem) in
            guard case .announced(let record) = answer else { throw .unexpected(answer) }
            return .answer(.json(201, AnnouncementBody(record)))
        }
    }
}

extension AnnouncementRoutes {
    /// From everybody who has it.
    fileprivate static func takeBack(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let id = try call.identifier("announcement", as: MessageID.self)
        let idempotency = try call.idempotency()
        return .commit(.takeBackAnnouncement(app: app, id, idempotency: idempotency)) {
            answer throws(Problem) in
            guard case .done = answer else { throw .unexpected(answer) }
            return .answer(HTTPResponse(status: 204))
        }
    }
}

struct NewAnnouncement: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case id, users, parts, push, urgency
        case sendAt = "send_at"
    }

    let id: MessageID?
    let users: [String]
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
        users = try fields.users(.users)
        parts = try fields.required(.parts)
        push = try fields.optional(.push)
        urgency = try fields.urgency(.urgency)
        sendAt = try fields.time(.sendAt)
    }
}

struct AnnouncementBody: Encodable {
    let id: String
    let sentAt: String
    let recipientCount: UInt64

    init(_ record: AnnouncementRecord) {
        id = record.announcement.description
        sentAt = record.sentAt.text
        recipientCount = record.recipients
    }
}
