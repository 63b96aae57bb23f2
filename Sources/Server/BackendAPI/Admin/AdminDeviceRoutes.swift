import Feed
import HTTP1
import Model

/// Devices, as operators see and remove them.
enum AdminDeviceRoutes {
    static let all: [Route] = [
        Route("GET", "/apps/{app}/users/{user}/devices", .open(list)),
        Route("GET", "/apps/{app}/devices/{device}", .open(show)),
        Route("DELETE", "/apps/{app}/devices/{device}", .open(remove)),
        Route("GET", "/apps/{app}/devices/{device}/wakes", query: ["limit"], .open(wakes)),
        Route("GET", "/apps/{app}/messages/{message}/explain", .open(explain)),
        Route("GET", "/apps/{app}/users/{user}/messages/{message}/explain", .open(explain)),
    ]

    static func list(_ call: Call) throws(Problem) -> Step {
        try DeviceRoutes.list(call, try call.configuration().app.app)
    }

    static func show(_ call: Call) throws(Problem) -> Step {
        try DeviceRoutes.show(call, try call.configuration().app.app)
    }

    static func wakes(_ call: Call) throws(Problem) -> Step {
        try DeviceRoutes.wakes(call, try call.configuration().app.app)
    }

    static func explain(_ call: Call) throws(Problem) -> Step {
        try ExplainRoutes.explain(call, try call.configuration().app.app)
    }

    static func remove(_ call: Call) throws(Problem) -> Step {
        try DeviceRoutes.remove(call, try call.configuration().app.app)
    }
}
