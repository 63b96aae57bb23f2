import Feed
import HTTP1
import Model
import StoreService
import Wake
import Wire

/// Campaigns and tags, as an app's backend administers its own and operators any app's: the same
/// handlers.
enum CampaignRoutes {
    typealias Handler = @Sendable (Call, AppID) throws(Problem) -> Step

    private struct Line: Sendable {
        let method: String
        let path: String
        var query: Set<String> = []
        var takesBody: Bool?
        var answerBytes = 0
        let handler: Handler
    }

    private static let one = "/campaigns/{campaign}"
    private static let userTags = "/users/{user}/tags"
    private static let deviceTags = "/users/{user}/devices/{device}/tags"

    private static let table: [Line] = [
        Line(
            method: "GET", path: "/campaigns", query: ["cursor", "limit"],
            answerBytes: HTTPResponse.listBytesMax
        ) { call, app throws(Problem) in try list(call, app) },
        Line(method: "POST", path: "/campaigns") { call, app throws(Problem) in
            try create(call, app)
        },
        Line(method: "GET", path: one) { call, app throws(Problem) in try show(call, app) },
        Line(method: "POST", path: one + "/pause", takesBody: false) { call, app throws(Problem) in
            try control(call, app, .pause)
        },
        Line(method: "POST", path: one + "/resume", takesBody: false) { call, app throws(Problem) in
            try control(call, app, .resume)
        },
        Line(method: "POST", path: one + "/cancel", takesBody: false) { call, app throws(Problem) in
            try control(call, app, .cancel)
        },
        Line(method: "GET", path: one + "/users/{user}") { call, app throws(Problem) in
            try explain(call, app)
        },
        Line(method: "GET", path: userTags) { call, app throws(Problem) in
            try tags(call, app, nil)
        },
        Line(method: "POST", path: userTags) { call, app throws(Problem) in
            try changeTags(call, app, nil)
        },
        Line(method: "GET", path: deviceTags) { call, app throws(Problem) in
            try tags(call, app, try device(call))
        },
        Line(method: "POST", path: deviceTags) { call, app throws(Problem) in
            try changeTags(call, app, try device(call))
        },
    ]

    /// Of the backend API: the app is the key's.
    static let keyed: [Route] = table.map {
        Route(
            $0.method, "/v1" + $0.path, query: $0.query, takesBody: $0.takesBody,
            answerBytes: $0.answerBytes, .keyed($0.handler))
    }

    /// Of the admin API: the app is the path's.
    static let admin: [Route] = table.map { line in
        Route(
            line.method, "/apps/{app}" + line.path, query: line.query,
            takesBody: line.takesBody,
            .open({ call throws(Problem) in
                try line.handler(call, try call.configuration().app.app)
            }))
    }

    static let listDefault = 50
    static let listMax = 200
    /// Devices that one read of a dry run looks at: other reads get between.
    static let countStep = 2_000

    private static func id(_ call: Call) throws(Problem) -> CampaignID {
        try call.identifier("campaign", as: CampaignID.self)
    }

    private static func device(_ call: Call) throws(Problem) -> DeviceID {
        try call.identifier("device", as: DeviceID.self)
    }

    private static func list(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let limit = try call.limit(default: listDefault, max: listMax)
        let query = CampaignQuery.list(before: try call.campaignCursor(), limit: limit)
        let address = call.address
        return .read(.campaigns(app, query)) { reading throws(Problem) in
            guard case .campaigns(.list(let views, let next)) = reading else {
                throw .unexpected(reading)
            }
            return .answer(
                try .list(
                    "campaigns", views,
                    next: next.map { PageCursor(.campaigns, of: address, $0.bytes).text },
                    after: {
                        PageCursor(.campaigns, of: address, $0.campaign.campaign.bytes).text
                    },
                    body: { CampaignBody($0) }))
        }
    }

    private static func show(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .read(.campaigns(app, .show(try id(call)))) { reading throws(Problem) in
            switch reading {
            case .nothing: throw .noSuch("campaign")
            case .campaigns(.show(let view)): return .answer(.json(200, CampaignBody(view)))
            default: throw .unexpected(reading)
            }
        }
    }

    private static func create(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let body = try call.body(NewCampaignBody.self)
        let idempotency = try call.idempotency()
        let new = body.campaign(of: app, at: call.now)
        if body.isDryRun {
            if let (code, detail) = new.refusal(now: call.now) { throw Problem(code, detail) }
            let kinds = call.surroundings.apps[app]?.app.eventKinds
            if let detail = kinds?.refusal(of: new.options.event) {
                throw Problem(.unknownKind, detail)
            }
            return count(new, after: nil, CampaignTally())
        }
        return .commit(.campaigns(.create(new, idempotency: idempotency))) {
            answer throws(Problem) in
            guard case .campaign(let record) = answer else { throw .unexpected(answer) }
            return .answer(
                .json(201, CampaignBody(record, filter: new.filter, options: new.options)))
        }
    }

    private static func count(
        _ new: NewCampaign, after: CampaignPlace?, _ counted: CampaignTally
    ) -> Step {
        .read(.campaigns(new.app, .count(new, after: after, devices: countStep))) {
            reading throws(Problem) in
            guard case .campaigns(.count(let part, let next)) = reading else {
                throw .unexpected(reading)
            }
            var tally = counted
            tally += part
            if let next { return count(new, after: next, tally) }
            return .answer(.json(200, CampaignTallyBody(tally)))
        }
    }

    private static func control(
        _ call: Call, _ app: AppID, _ control: CampaignControl
    ) throws(Problem) -> Step {
        let idempotency = try call.idempotency()
        let request = CampaignRequest.control(
            app, try id(call), control, idempotency: idempotency)
        return .commit(.campaigns(request)) { answer throws(Problem) in
            guard case .campaignState(let id, let state) = answer else {
                throw .unexpected(answer)
            }
            return .answer(
                .json(200, CampaignStateBody(id: id.description, state: state.rawValue)))
        }
    }

    private static func explain(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .read(.campaigns(app, .explain(try id(call), try call.user()))) {
            reading throws(Problem) in
            switch reading {
            case .nothing: throw .noSuch("campaign or user")
            case .campaigns(.explain(let fates)):
                return .answer(
                    .json(200, CampaignFatesBody(devices: fates.map { CampaignFateBody($0) })))
            default: throw .unexpected(reading)
            }
        }
    }

    // MARK: Tags

    private static func tags(
        _ call: Call, _ app: AppID, _ device: DeviceID?
    ) throws(Problem) -> Step {
        .read(.campaigns(app, .tags(try call.user(), device))) { reading throws(Problem) in
            switch reading {
            case .nothing: throw .noSuch("user or device")
            case .campaigns(.tags(let tags)): return .answer(.json(200, TagsBody(tags: tags)))
            default: throw .unexpected(reading)
            }
        }
    }

    private static func changeTags(
        _ call: Call, _ app: AppID, _ device: DeviceID?
    ) throws(Problem) -> Step {
        let body = try call.body(NewTagsBody.self)
        let change = ChangeTags(
            app: app, user: try call.user(), device: device, add: body.add,
            remove: body.remove)
        let idempotency = try call.idempotency()
        return .commit(.campaigns(.tag(change, idempotency: idempotency))) {
            answer throws(Problem) in
            guard case .done = answer else { throw .unexpected(answer) }
            return .answer(HTTPResponse(status: 204))
        }
    }
}
