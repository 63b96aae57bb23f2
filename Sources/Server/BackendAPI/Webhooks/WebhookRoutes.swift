import Crypto
import Feed
import HTTP1
import Model
import Wire

/// Webhooks, as an app's backend administers its own and operators any app's: the same handlers.
enum WebhookRoutes {
    typealias Handler = @Sendable (Call, AppID) throws(Problem) -> Step

    private static let table: [(method: String, path: String, handler: Handler)] = [
        ("GET", "/webhooks", { call, app throws(Problem) in try list(call, app) }),
        ("POST", "/webhooks", { call, app throws(Problem) in try create(call, app) }),
        ("GET", "/webhooks/{webhook}", { call, app throws(Problem) in try show(call, app) }),
        ("PATCH", "/webhooks/{webhook}", { call, app throws(Problem) in try change(call, app) }),
        ("DELETE", "/webhooks/{webhook}", { call, app throws(Problem) in try remove(call, app) }),
        (
            "POST", "/webhooks/{webhook}/secrets",
            { call, app throws(Problem) in try rotate(call, app) }
        ),
        (
            "DELETE", "/webhooks/{webhook}/secrets/second",
            { call, app throws(Problem) in try endRotation(call, app) }
        ),
        (
            "DELETE", "/webhooks/{webhook}/secrets/newest",
            { call, app throws(Problem) in try undoRotation(call, app) }
        ),
        ("POST", "/webhooks/{webhook}/test", { call, app throws(Problem) in try test(call, app) }),
    ]

    /// Of the backend API: the app is the key's.
    static let keyed: [Route] = table.map {
        Route(
            $0.method, "/v1" + $0.path, takesBody: takesBody($0.path), .keyed($0.handler))
    }

    /// `nil`: as is usual with the method.
    private static func takesBody(_ path: String) -> Bool? {
        path.hasSuffix("/test") ? false : nil
    }

    /// Of the admin API: the app is the path's.
    static let admin: [Route] = table.map { method, path, handler in
        Route(
            method, "/apps/{app}" + path, takesBody: takesBody(path),
            .open({ call throws(Problem) in try handler(call, try call.configuration().app.app) }))
    }

    private static func list(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .read(.backend(app, .webhooks)) { reading throws(Problem) in
            guard case .backend(.webhooks(let all)) = reading else { throw .unexpected(reading) }
            return .answer(.json(200, WebhookListBody(webhooks: all.map { WebhookBody($0) })))
        }
    }

    private static func create(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let body = try call.body(NewWebhookBody.self)
        let drawn = body.secret == nil ? String.drawnWebhookSecret() : nil
        let series = Random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
        let new = NewWebhook(
            key: WebhookKey(app: app, webhook: body.id ?? .fresh(at: call.now)), url: body.url,
            kinds: body.kinds, secret: body.secret ?? drawn ?? "", series: series)
        return commit(.create(new), status: 201, secret: drawn)
    }

    private static func show(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .read(.backend(app, .webhook(try key(call, app).webhook))) { reading throws(Problem) in
            switch reading {
            case .nothing: throw .noSuch("webhook")
            case .backend(.webhook(let record)): return .answer(.json(200, WebhookBody(record)))
            default: throw .unexpected(reading)
            }
        }
    }

    private static func change(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let key = try key(call, app)
        return commit(.change(key, try call.body(WebhookChangeBody.self).change), status: 200)
    }

    private static func remove(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .commit(.webhooks(.remove(try key(call, app)))) { answer throws(Problem) in
            guard case .done = answer else { throw .unexpected(answer) }
            return .answer(HTTPResponse(status: 204))
        }
    }

    private static func rotate(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let key = try key(call, app)
        let given = try call.body(NewWebhookSecret.self).secret
        let drawn = given == nil ? String.drawnWebhookSecret() : nil
        return commit(.rotate(key, secret: given ?? drawn ?? ""), status: 201, secret: drawn)
    }

    private static func endRotation(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        commit(.endRotation(try key(call, app)), status: 200)
    }

    private static func undoRotation(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        commit(.undoRotation(try key(call, app)), status: 200)
    }

    /// What comes of it stands in the webhook, as of any delivery.
    private static func test(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .commit(.webhooks(.test(try key(call, app)))) { answer throws(Problem) in
            guard case .webhookTested(let event) = answer else { throw .unexpected(answer) }
            return .answer(.json(202, WebhookTestBody(event)))
        }
    }

    private static func commit(
        _ request: WebhookRequest, status: Int, secret: String? = nil
    ) -> Step {
        .commit(.webhooks(request)) { answer throws(Problem) in
            guard case .webhook(let record) = answer else { throw .unexpected(answer) }
            return .answer(.json(status, WebhookBody(record, secret: secret)))
        }
    }

    private static func key(_ call: Call, _ app: AppID) throws(Problem) -> WebhookKey {
        WebhookKey(app: app, webhook: try call.identifier("webhook", as: WebhookID.self))
    }
}
