import EventLoop
import HTTP1
import Model
import Wire

/// Hands an answer over, once; the second is called once when its reader has it, or is gone.
typealias Respond = (HTTPResponse, _ taken: @escaping () -> Void) -> Void

/// Who answers what an `HTTPDoor` takes. Loop-confined.
protocol Desk: AnyObject {
    /// Calls that were begun and not answered.
    var openCalls: Int { get }
    /// Answers through `respond`, once, now or later on this loop.
    func take(_ request: HTTPRequest, respond: @escaping Respond)
    /// What the HTTP server refused by itself.
    func refused(_ refusal: HTTPRefusal) -> HTTPResponse
    /// No answer comes any more for what still waits.
    func close()
}

/// An `HTTPServer` on a loop, in front of a desk. Loop-confined.
///
/// The watch holds this object, and so the server and the desk, until `close()`.
final class HTTPDoor {
    private let server: HTTPServer
    private let desk: any Desk
    private var watch: DescriptorWatch?
    private let gate: Gate

    /// Makes the server; `make` hands it the refusals and the handler.
    init(
        loop: Loop, desk: any Desk,
        make: (
            @escaping (HTTPRefusal) -> HTTPResponse, @escaping (HTTPRequest, Responder) -> Void
        ) throws -> HTTPServer
    ) throws {
        self.desk = desk
        let gate = Gate()
        let handler: (HTTPRequest, Responder) -> Void = { request, responder in
            if gate.isRefusing {
                let problem = Problem(.unavailable, "the server is stopping; try again")
                let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
                responder.respond(problem.response.named(RequestName.of(request, at: now)))
            } else {
                desk.take(request) { responder.respond($0, taken: $1) }
            }
        }
        server = try make({ desk.refused($0) }, handler)
        self.gate = gate
        watch = try DescriptorWatch(loop: loop, descriptor: server.descriptor) { _ in
            self.server.run()
        }
        watch?.start(.readable)
        // What the store answered in one batch is sent in one run.
        server.onAnswers = { [unowned loop, weak self] in
            loop.nextTurn { self?.server.run() }
        }
    }

    /// Shared with the handler, which is made before this object is.
    private final class Gate { var isRefusing = false }

    var port: UInt16 { server.port }
    var openConnections: Int { server.openConnections }

    /// Whether every request that was taken has its answer.
    var isIdle: Bool { desk.openCalls == 0 }

    /// From now on requests are refused.
    func refuse() { gate.isRefusing = true }

    /// Sends what was answered, as far as the sockets take it at once, and ends.
    func close() {
        guard watch != nil else { return }
        server.run()
        watch?.close()
        watch = nil
        server.stop()
        desk.close()
    }
}
