import Feed
import HTTP1
import Model

/// Who is let in, as operators decide it for any app.
enum AdminAccessRoutes {
    static let all: [Route] = [
        Route("POST", "/apps/{app}/suspend", takesBody: false, .open(suspendApp)),
        Route("POST", "/apps/{app}/resume", takesBody: false, .open(resumeApp)),
        Route(
            "POST", "/apps/{app}/users/{user}/sessions/revoke", query: ["reauthenticate"],
            takesBody: false, .open(revoke)),
        Route("POST", "/apps/{app}/users/{user}/suspend", takesBody: false, .open(suspend)),
        Route("POST", "/apps/{app}/users/{user}/resume", takesBody: false, .open(resume)),
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
