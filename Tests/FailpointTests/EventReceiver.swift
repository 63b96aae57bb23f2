import EventLoop
import Foundation
import HTTP1

/// The webhooks' receiver of all stories: each posts to a path of its own. It keeps an event once,
/// as WHK-10 asks of a receiver, and always answers 200.
final class EventReceiver: Sendable {
    struct Event: Decodable, Sendable {
        let id: String
        let number: UInt64
        let kind: String
        let messageId: String?
        let conversationId: String?
    }

    let port: UInt16
    private let thread: LoopThread
    private let box: Box

    private final class Box: @unchecked Sendable {
        // @unchecked: `server` and `watch` are the loop's; the rest is under `lock`.
        let lock = Lock()
        var server: HTTPServer?
        var watch: DescriptorWatch?
        var events: [String: [Event]] = [:]
        var problems: [String: String] = [:]

        func take(_ path: String, _ body: [UInt8]) {
            struct Delivery: Decodable {
                let dropped: UInt64
                let events: [Event]
            }
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            guard let delivery = try? decoder.decode(Delivery.self, from: Data(body)) else {
                problems[path] = "not a delivery: \(String(decoding: body, as: UTF8.self))"
                return
            }
            if delivery.dropped > 0 { problems[path] = "\(delivery.dropped) events were dropped" }
            for event in delivery.events {
                let known = events[path, default: []]
                if known.contains(where: { $0.id == event.id }) { continue }
                if let last = known.last, last.number >= event.number {
                    problems[path] = "event \(event.number) after \(last.number)"
                }
                events[path, default: []].append(event)
            }
        }
    }

    init() throws {
        let box = Box()
        self.box = box
        (thread, port) = try LoopThread.startReturning(name: "receiver") { loop in
            let server = try HTTPServer(host: "127.0.0.1", port: 0) { request, responder in
                box.lock.withLock { box.take(request.path, request.body) }
                responder.respond(HTTPResponse(status: 200))
            }
            let watch = try DescriptorWatch(loop: loop, descriptor: server.descriptor) { _ in
                server.run()
            }
            watch.start(.readable)
            box.server = server
            box.watch = watch
            return server.port
        }
    }

    /// What came to a path, in order; a problem is thrown.
    func events(of path: String) throws -> [Event] {
        let (events, problem) = box.lock.withLock { (box.events[path] ?? [], box.problems[path]) }
        if let problem { throw StoryError("webhook: \(problem)") }
        return events
    }

    func stop() {
        thread.perform { [box] _ in
            box.watch?.close()
            box.server?.stop()
            box.server = nil
        }
        thread.stop()
        thread.join()
    }
}
