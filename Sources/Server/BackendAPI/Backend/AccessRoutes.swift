import Feed
import HTTP1
import Model

/// Who is let in, as a backend decides it for its own users. None takes a body, and each done
/// again changes nothing more: no Idempotency-Key is needed.
enum AccessRoutes {
    static let all: [Route] = [
        Route(
            "POST", "/v1/users/{user}/sessions/revoke", query: ["reauthenticate"],
            takesBody: false, .keyed(revoke)),
        Route("POST", "/v1/users/{user}/suspend", takesBody: false, .keyed(suspend)),
        Route("POST", "/v1/users/{user}/resume", takesBody: false, .keyed(resume)),
    ]

    static func revoke(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let reauthenticate = try call.flag("reauthenticate")
        return administer(
            .revokeSessions(app, try call.user(), reauthenticate: reauthenticate))
    }

    static func suspend(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        administer(.suspendUser(app, try call.user()))
    }

    static func resume(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        administer(.resumeUser(app, try call.user()))
    }

    static func administer(_ request: Administration) -> Step {
        .commit(.administer(request)) { _ in .answer(HTTPResponse(status: 204)) }
    }
}
