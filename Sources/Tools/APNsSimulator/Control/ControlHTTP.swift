internal import EventLoop
internal import FoundationEssentials
internal import HTTP1
import JSONTree

/// The control API over HTTP on the loopback address. Every command is `POST /<cmd>` with its
/// fields as JSON, `GET` for those that only read, with fields in the query. Loop-confined.
final class ControlHTTP {
    private static let reading: Set<ControlRequest.Command> = [
        .ports, .devices, .deviceStatus, .deviceScreen, .deviceMessages, .log, .counts, .status,
        .checks,
    ]
    private let server: HTTPServer
    private let watch: DescriptorWatch
    private var isClosed = false
    var port: UInt16 { server.port }

    init(loop: Loop, port: UInt16, commands: ControlCommands) throws {
        var limits = HTTPLimits()
        limits.connections = 64
        let server = try HTTPServer(host: "127.0.0.1", port: port, limits: limits) {
            request, responder in
            responder.respond(Self.answer(request, commands))
        }
        self.server = server
        watch = try DescriptorWatch(loop: loop, descriptor: server.descriptor) { _ in
            server.run()
        }
        watch.start(.readable)
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        watch.stop()
        watch.close()
        server.stop()
    }

    private static func answer(_ request: HTTPRequest, _ commands: ControlCommands) -> HTTPResponse
    {
        // A page of somebody else's that a browser here shows must not reach this port by a name
        // of its own.
        let host = request.headers["host"]?.split(separator: ":").first.map(String.init) ?? ""
        guard ["127.0.0.1", "localhost", ""].contains(host) else {
            return refusal(403, "this is for 127.0.0.1 only")
        }
        if request.path == "/" {
            guard request.method == "GET" else { return refusal(405, "GET only") }
            return page(commands.status)
        }
        let name = request.path.dropFirst()
        guard let command = ControlRequest.Command(rawValue: String(name)), command != .events
        else { return refusal(404, "no command `\(name)`") }
        switch request.method {
        case "GET":
            guard reading.contains(command) else { return refusal(405, "POST only") }
            return json(commands.answer(query(request, command)))
        case "POST":
            do {
                return json(commands.answer(try body(request, command)))
            } catch {
                return refusal(400, "no command: \(ErrorWords.of(error))")
            }
        default: return refusal(405, "GET or POST")
        }
    }

    private static func query(
        _ request: HTTPRequest, _ command: ControlRequest.Command
    ) -> ControlRequest {
        var control = ControlRequest(command, device: request.queryValue("device"))
        control.after = request.queryValue("after").flatMap { UInt64($0) }
        control.limit = request.queryValue("limit").flatMap { Int($0) }
        control.conversation = request.queryValue("conversation")
        control.kinds = request.queryValue("kinds")?.split(separator: ",")
            .compactMap { SimulatorEvent.Kind(rawValue: String($0)) }
        return control
    }

    private static func body(
        _ request: HTTPRequest, _ command: ControlRequest.Command
    ) throws -> ControlRequest {
        guard !request.body.isEmpty else { return ControlRequest(command) }
        struct Unnamed: Error, CustomStringConvertible { let description = "not a JSON object" }
        let document = try JSONDecoder().decode(JSONValue.self, from: Data(request.body))
        guard case .object(var fields) = document else { throw Unnamed() }
        fields["cmd"] = .text(command.rawValue)
        return try JSONDecoder().decode(
            ControlRequest.self, from: try JSONEncoder().encode(fields))
    }

    private static func json(_ response: ControlResponse) -> HTTPResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        guard let data = try? encoder.encode(response) else { return refusal(500, "not JSON") }
        return HTTPResponse(
            status: response.ok ? 200 : 400, headers: [("content-type", "application/json")],
            body: Array(data) + [UInt8(ascii: "\n")])
    }

    private static func refusal(_ status: Int, _ text: String) -> HTTPResponse {
        var response = ControlResponse()
        response.ok = false
        response.error = text
        var answer = json(response)
        answer.status = status
        return answer
    }

    // MARK: For people

    private static func page(_ status: SimulatorStatus) -> HTTPResponse {
        func rows<Value>(_ values: [String: Value]) -> String {
            values.sorted { $0.key < $1.key }
                .map { "<tr><td>\(escaped($0.key))</td><td>\(escaped("\($0.value)"))</td></tr>" }
                .joined(separator: "\n")
        }
        let checks = CheckRow.table.enumerated().map { index, row in
            "<tr><td>\(index + 1)</td><td>\(row.id)</td><td>\(escaped(row.what))</td>"
                + "<td>\(row.status) \(row.reason)</td></tr>"
        }.joined(separator: "\n")
        let text = """
            <!doctype html><meta charset="utf-8"><title>APNs simulator</title>
            <style>body{font:15px/1.4 sans-serif;margin:2em;max-width:60em}
            td{padding:.1em 1em .1em 0;vertical-align:top}</style>
            <h1>APNs simulator</h1>
            <p>Production on port \(status.ports.production), development on port \
            \(status.ports.development). \(status.options.strict ? "Strict." : "")
            Clock \(status.clockOffsetMs) ms from this machine's.
            \(status.tokens) tokens, \(status.devices) devices, \(status.faultsWaiting) faults
            waiting, \(status.head) events: <a href="/log">log</a>, <a href="/status">status</a>,
            <a href="/checks">checks</a>.</p>
            <h2>Connections</h2><table>\(rows(status.connections))</table>
            <h2>Apps</h2><table>\(rows(status.apps))</table>
            <h2>Answers</h2><table>\(rows(status.answers))</table>
            <h2>Lints</h2><table>\(rows(status.lints))</table>
            <h2>Checks, in their order</h2><table>\(checks)</table>

            """
        return HTTPResponse(
            status: 200, headers: [("content-type", "text/html; charset=utf-8")],
            body: Array(text.utf8))
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;")
            .replacing("<", with: "&lt;")
    }
}
