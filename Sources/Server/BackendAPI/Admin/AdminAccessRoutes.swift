import Feed
import HTTP1
import Model

/// Who is let in, as operators decide it for any app.
enum AdminAccessRoutes {
    static let all: [Route] = [
        Route("POST", "/apps/{app}/suspend", .open(suspendApp)),
        Route("POST", "/apps/{app}/resume", .open(resumeApp)),
        Route(
            "POST", "/apps/{app}/users/{user}/sessions/revoke", query: ["reauthenticate"],
            .open(revoke)),
        Route("POST", "/apps/{app}/users/{user}/suspend", .open(suspend)),
        Route("POST", "/apps/{app}/users/{user}/resume", .open(resume)),
    ]

    static func suspendApp(_ call: Call) throws(Problem) -> Step {
        AccessRoutes.administer(.suspendApp(try call.configuration().app.app))
    }

    static func resumeApp(_ call: Call) throws(Problem) -> Step {
        AccessRoutes.administer(.resumeApp(try call.configuration().app.app))
    }

    static func revoke(_ call: Call) throws(Problem) -> Step {
        try AccessRoutes.revoke(call, try call.configuration().app.app)
    }

    static func suspend(_ call: Call) throws(Problem) -> Step {
        try AccessRoutes.suspend(call, try call.configuration().app.app)
    }

    static func resume(_ call: Call) throws(Problem) -> Step {
        try AccessRoutes.resume(call, try call.configuration().app.app)
    }
}
