import HTTP1
import Model
import Wire

/// One line of a route table.
struct Route: Sendable {
    enum Handler: Sendable {
        /// For everyone who reaches the socket.
        case open(@Sendable (Call) throws(Problem) -> Step)
        /// For an app's backend: the app is the API key's, never the request's.
        case keyed(@Sendable (Call, AppID) throws(Problem) -> Step)
    }

    let method: String
    /// `/v1/devices/{device}`: a name in braces stands for one segment.
    let template: String
    /// Query parameters it takes; `nil`: any, and none is looked at.
    let query: Set<String>?
    /// Whether a request may have a body.
    let takesBody: Bool
    /// What its answer can come to, where that is much; room for it is set aside meanwhile.
    let answerBytes: Int
    let handler: Handler
    private let segments: [Segment]

    private enum Segment {
        case fixed(String)
        /// Without its braces.
        case named(String)
    }

    /// - Parameter takesBody: `nil`: as is usual with the method.
    init(
        _ method: String, _ template: String, query: Set<String>? = [], takesBody: Bool? = nil,
        answerBytes: Int = 0, _ handler: Handler
    ) {
        self.method = method
        self.template = template
        self.query = query
        self.takesBody = takesBody ?? ["POST", "PUT", "PATCH"].contains(method)
        self.answerBytes = answerBytes
        self.handler = handler
        segments = template.split(separator: "/").map { segment in
            segment.hasPrefix("{")
                ? .named(String(segment.dropFirst().dropLast())) : .fixed(String(segment))
        }
    }

    /// What the names in braces stand for, if the path fits.
    func parameters(in path: [String]) -> [String: String]? {
        guard fits(path) else { return nil }
        var parameters: [String: String] = [:]
        for (segment, value) in zip(segments, path) {
            if case .named(let name) = segment { parameters[name] = value }
        }
        return parameters
    }

    /// Most routes do not: nothing is made for these.
    private func fits(_ path: [String]) -> Bool {
        guard path.count == segments.count else { return false }
        return path.indices.allSatisfy { position in
            switch segments[position] {
            case .fixed(let text): text == path[position]
            case .named: !path[position].isEmpty
            }
        }
    }
}

extension Route {
    /// A misspelt parameter must not be passed over in silence, nor the second of two.
    func checkQuery(of request: HTTPRequest) throws(Problem) {
        guard let query else { return }
        var found: Set<String> = []
        for (name, _) in request.query {
            guard query.contains(name) else {
                throw .malformed("the query parameter \(name) is unknown here")
            }
            guard found.insert(name).inserted else {
                throw .malformed("the query parameter \(name) stands there more than once")
            }
        }
    }
}

extension Route {
    /// What nobody reads must not be passed over in silence either. Where no query is looked at,
    /// as in a balancer's question whether the server is ready, no body is.
    func checkBody(of request: HTTPRequest) throws(Problem) {
        guard takesBody || query == nil || request.body.isEmpty else {
            throw .noBody(request.method)
        }
    }
}

/// The routes of one server.
struct RouteTable: Sendable {
    let routes: [Route]

    /// The route for a request, and what its path says.
    func find(
        _ request: HTTPRequest
    ) throws(Problem) -> (route: Route, parameters: [String: String]) {
        // RFC 9110 9.1: HEAD wherever GET is; the HTTP server leaves the body out.
        let method = request.method == "HEAD" ? "GET" : request.method
        var allowed: [String] = []
        for route in routes {
            guard let parameters = route.parameters(in: request.pathSegments) else { continue }
            if route.method == method { return (route, parameters) }
            allowed.append(route.method)
            if route.method == "GET" { allowed.append("HEAD") }
        }
        guard !allowed.isEmpty else {
            throw Problem(.notFound, "there is nothing at this address", name: "no_such_route")
        }
        let list = allowed.sorted().joined(separator: ", ")
        throw Problem(
            .malformed, "this address takes \(list)", name: "method_not_allowed", status: 405
        ).with("allow", list)
    }
}
