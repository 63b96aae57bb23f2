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
        if let flaw = app.flawAsNew { throw .malformed("app: \(flaw)") }
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

extension AppID {
    /// Why no app is to be made with this name, which the rule of names allows: operators could not
    /// tell it from another, and would mistype it. An app that has such a name goes on.
    fileprivate var flawAsNew: String? {
        let scalars = name.unicodeScalars
        if scalars.first?.properties.isWhitespace == true
            || scalars.last?.properties.isWhitespace == true
        {
            return "must not begin or end with a blank"
        }
        guard let unseen = scalars.first(where: \.isUnseen) else { return nil }
        let digits = String(unseen.value, radix: 16, uppercase: true)
        let number = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        return "must not hold U+\(number), which nobody sees"
    }
}

extension Unicode.Scalar {
    /// Draws nothing of its own.
    fileprivate var isUnseen: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: properties.isDefaultIgnorableCodePoint
        }
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
