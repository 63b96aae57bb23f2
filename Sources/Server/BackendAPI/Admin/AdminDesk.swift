import EventLoop
import HTTP1
import Model
public import StoreService
import Telemetry
import Wire

/// The admin API without a socket: for a tool that has opened the store itself. What the socket
/// does and what this does is the same code.
public final class AdminDesk: Sendable {
    private let thread: LoopThread
    private let requests: Mailbox<Question>

    private struct Question: Sendable {
        let request: HTTPRequest
        let reply: Reply
    }

    /// Starts a thread of its own.
    public init(store: StoreService) throws {
        let surroundings = Surroundings(
            apps: store.apps, health: store.health, metrics: Metrics(), notReady: { [] },
            about: ServerFacts(
                isShared: store.isShared,
                startedAt: Timestamp(milliseconds: SystemClock.wallMilliseconds())))
        let instruments = Instruments(Metrics(), Log(level: .error))
        (thread, requests) = try LoopThread.startReturning(name: "admin") { loop in
            let desk = CallDesk(
                loop: loop, table: BackendAPI.adminRoutes, store: store,
                surroundings: surroundings, instruments: instruments, isOneAtATime: true,
                operatorName: "command on the store")
            return Mailbox<Question>(loop: loop, limit: 16) { questions in
                for question in questions {
                    desk.take(question.request) { response, taken in
                        question.reply.fill(response)
                        taken()
                    }
                }
            }
        }
    }

    /// Waits for the answer; from any thread but the desk's own.
    ///
    /// - Parameters:
    ///   - path: the segments of the route, as they are (not percent-encoded).
    ///   - body: JSON, or empty.
    /// - Returns: the HTTP status, and JSON or nothing.
    public func answer(
        method: String, path: [String], query: [(name: String, value: String)] = [], body: [UInt8]
    ) -> (status: Int, body: [UInt8]) {
        let request = HTTPRequest(
            method: method, path: "", pathSegments: path, query: query,
            headers: HTTPHeaders([("content-type", "application/json")]), body: body)
        let reply = Reply()
        let response =
            requests.post(Question(request: request, reply: reply))
            ? reply.take() : Problem(.unavailable, "too many requests wait").response
        return (response.status, response.body)
    }

    /// Call it before the store is stopped.
    public func stop() {
        thread.stop()
        thread.join()
    }
}

private final class Reply: @unchecked Sendable {
    // @unchecked: written once before the latch opens, read only after it.
    private let latch = Latch()
    private var response: HTTPResponse?

    func fill(_ response: HTTPResponse) {
        self.response = response
        latch.arrive()
    }

    func take() -> HTTPResponse {
        latch.wait()
        guard let response else { preconditionFailure("a latch that opened without an answer") }
        return response
    }
}
