import Feed
import HTTP1
import Model
import StoreService
import Wire

/// Apps. The admin API is for this machine's operator: who reaches the socket is let in.
enum AppRoutes {
    static let all: [Route] = [
        Route("GET", "/apps", .open(list)),
        Route("POST", "/apps", .open(create)),
        Route("GET", "/apps/{app}", .open(show)),
        Route("PATCH", "/apps/{app}", .open(change)),
        Route("DELETE", "/apps/{app}", .open(remove)),
    ]

    static func list(_ call: Call) throws(Problem) -> Step {
        .answer(.json(200, AppListBody(apps: call.surroundings.apps.all.map { AppBody($0) })))
    }

    static func create(_ call: Call) throws(Problem) -> Step {
        let policy = try call.body(AppPolicy.self)
        guard let app = policy.app else { throw Problem(.missingField, "app: is missing") }
        guard call.surroundings.apps[app] == nil else {
            throw Problem(.conflict, "the app \(app) exists; change it with set")
        }
        var record = AppRecord(app: app, createdAt: call.now)
        try policy.apply(to: &record)
        return put(record, call, status: 201)
    }

    static func show(_ call: Call) throws(Problem) -> Step {
        .answer(.json(200, AppBody(try call.configuration())))
    }

    static func change(_ call: Call) throws(Problem) -> Step {
        let policy = try call.body(AppPolicy.self)
        guard policy.app == nil else { throw .malformed("app: an app keeps its name") }
        var record = try call.configuration().app
        try policy.apply(to: &record)
        return put(record, call, status: 200)
    }

    private static func put(_ record: AppRecord, _ call: Call, status: Int) -> Step {
        let apps = call.surroundings.apps
        return .commit(.administer(.putApp(record))) { _ throws(Problem) in
            guard let configuration = apps[record.app] else { throw .noSuch("app") }
            return .answer(.json(status, AppBody(configuration)))
        }
    }

    static func remove(_ call: Call) throws(Problem) -> Step {
        let app = try call.configuration().app.app
        return .commit(.administer(.removeApp(app))) { _ in .answer(HTTPResponse(status: 204)) }
    }
}

extension Call {
    /// The app the path names.
    func configuration() throws(Problem) -> AppConfiguration {
        let app = AppID(parameter("app"))
        guard let configuration = surroundings.apps[app] else {
            throw Problem(.notFound, "there is no app \(app)")
        }
        return configuration
    }
}
