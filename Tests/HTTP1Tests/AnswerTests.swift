import Foundation
import Glibc
import HTTP1
import Testing

/// Answers now and later, keep-alive, pipelining, and clients and servers that go away.
struct AnswerTests {
    private static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let fixture = try Fixture { HTTPResponse(status: 200, body: Array($0.path.utf8)) }
        let answer = try fixture.exchange(
            "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\n"
                + "Content-Length: 2\r\n\r\nxxGET /3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        )
        let bodies = answer.components(separatedBy: "\r\n\r\n").dropFirst().map { $0.prefix(2) }
        #expect(bodies == ["/1", "/2", "/3"])
    }

    @Test func lateAnswerIsSentWithoutOtherEvents() throws {
        let fixture = try Fixture { _ in nil }
        let client = try fixture.connect()
        client.send(Self.get + Self.get)
        #expect(fixture.pump { fixture.held.count == 1 })
        #expect(client.received == "")
        fixture.held.removeFirst().respond(HTTPResponse(status: 201, body: [0x61]))
        // The second pipelined request follows the first answer.
        #expect(fixture.pump { client.received.hasSuffix("\r\n\r\na") && fixture.held.count == 1 })
        #expect(client.received.hasPrefix("HTTP/1.1 201 "))
        fixture.held.removeFirst().respond(HTTPResponse(status: 204))
        #expect(fixture.pump { client.received.contains("HTTP/1.1 204 ") })
        #expect(!client.isClosed)
    }

    @Test func ownerIsCalledOnceForAllLateAnswers() throws {
        let fixture = try Fixture(answer: { _ in nil })
        let clients = try (0..<3).map { _ in try fixture.connect() }
        for client in clients { client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
        #expect(fixture.pump { fixture.held.count == 3 })
        var calls = 0
        fixture.server.onAnswers = { calls += 1 }
        var isReadable: Bool {
            var watched = pollfd(
                fd: fixture.server.descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&watched, 1, 0) > 0
        }
        for (round, answers) in [2, 1].enumerated() {
            // What the connections' own events ask for is done before.
            for _ in 0..<100 where isReadable { fixture.server.run() }
            for _ in 0..<answers { fixture.held.removeFirst().respond(HTTPResponse(status: 200)) }
            #expect(calls == round + 1)
            #expect(!isReadable)
            fixture.server.run()
            let answered = [2, 3][round]
            #expect(
                fixture.pump {
                    clients.count { $0.received.hasPrefix("HTTP/1.1 200") } == answered
                })
        }
        #expect(calls == 2)
    }

    @Test func manyHeldRequestsAreAnsweredInAnyOrder() throws {
        let fixture = try Fixture { _ in nil }
        let clients = try (0..<200).map { _ in try fixture.connect() }
        for client in clients { client.send(Self.get) }
        #expect(fixture.pump { fixture.held.count == clients.count })
        for responder in fixture.held.reversed() {
            responder.respond(HTTPResponse(status: 200))
        }
        fixture.held = []
        #expect(
            fixture.pump { clients.allSatisfy { $0.received.hasPrefix("HTTP/1.1 200 ") } })
    }

    @Test func handlerTimeIsNotCountedAgainstTheDeadline() throws {
        let fixture = try Fixture(limits: HTTPLimits(requestDeadlineSeconds: 1)) { _ in nil }
        let held = try fixture.connect()
        held.send(Self.get)
        #expect(fixture.pump { fixture.held.count == 1 })
        let idle = try fixture.connect()
        #expect(fixture.pump { idle.isClosed })
        fixture.held.removeFirst().respond(HTTPResponse(status: 200))
        #expect(fixture.pump { held.received.hasPrefix("HTTP/1.1 200 ") })
    }

    @Test func slowReaderIsClosed() throws {
        let limits = HTTPLimits(requestDeadlineSeconds: 1)
        let fixture = try Fixture(limits: limits) { _ in
            HTTPResponse(status: 200, body: [UInt8](repeating: 0x62, count: 32 << 20))
        }
        let client = try fixture.connect()
        client.send(Self.get)
        #expect(fixture.pump { fixture.server.openConnections == 1 })
        #expect(fixture.pump { fixture.server.openConnections == 0 })
    }

    @Test func clientThatClosesWhileHeldIsForgotten() throws {
        let fixture = try Fixture { _ in nil }
        let client = try fixture.connect()
        client.send(Self.get)
        #expect(fixture.pump { fixture.held.count == 1 })
        client.close()
        fixture.server.run()
        fixture.held.removeFirst().respond(HTTPResponse(status: 200, body: [1, 2, 3]))
        #expect(fixture.pump { fixture.server.openConnections == 0 })
    }

    @Test func clientThatClosesInTheMiddleOfABodyIsForgotten() throws {
        let fixture = try Fixture(limits: HTTPLimits(requestDeadlineSeconds: 1))
        let client = try fixture.connect()
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
        #expect(fixture.pump { fixture.server.openConnections == 1 })
        client.close()
        #expect(fixture.pump { fixture.server.openConnections == 0 })
        #expect(fixture.requests.isEmpty)
    }

    @Test func droppedResponderAnswers500() throws {
        let fixture = try Fixture { _ in nil }
        let client = try fixture.connect()
        client.send(Self.get)
        #expect(fixture.pump { fixture.held.count == 1 })
        fixture.held = []
        #expect(fixture.pump { client.received.hasPrefix("HTTP/1.1 500 ") })
    }

    @Test(arguments: [
        HTTPResponse(status: 200, headers: [("x", "a\r\nSet-Cookie: b")]),
        HTTPResponse(status: 200, headers: [("x y", "a")]),
        HTTPResponse(status: 200, headers: [("x", "a\u{1}b")]),
        HTTPResponse(status: 200, headers: [("content-length", "7")]),
        HTTPResponse(status: 200, headers: [("Transfer-Encoding", "chunked")]),
        HTTPResponse(status: 200, headers: [("x", String(repeating: "y", count: 9000))]),
        HTTPResponse(status: 199), HTTPResponse(status: 1000), HTTPResponse(status: -1),
    ])
    func unwritableResponseBecomes500(response: HTTPResponse) throws {
        let fixture = try Fixture { _ in response }
        let client = try fixture.connect()
        client.send(Self.get)
        #expect(fixture.pump { client.received.hasSuffix("\r\n\r\n") })
        #expect(client.received.hasPrefix("HTTP/1.1 500 "))
        #expect(!client.received.contains("Set-Cookie"))
    }

    @Test func stopClosesEverythingAndLaterAnswersDoNothing() throws {
        let fixture = try Fixture { _ in nil }
        let held = try fixture.connect()
        let idle = try fixture.connect()
        held.send(Self.get)
        #expect(fixture.pump { fixture.held.count == 1 && fixture.server.openConnections == 2 })
        fixture.stop()
        #expect(held.isClosed)
        #expect(idle.isClosed)
        fixture.held.removeFirst().respond(HTTPResponse(status: 200))
        fixture.server.run()
        #expect(held.received == "")
    }

    @Test func handlerMayStopTheServer() throws {
        var stop: (() -> Void)?
        let fixture = try Fixture { _ in
            stop?()
            return nil
        }
        stop = { [unowned fixture] in fixture.stop() }
        let client = try fixture.connect()
        client.send(Self.get)
        while fixture.requests.isEmpty { fixture.server.run() }
        #expect(client.isClosed)
    }

    @Test func curlAgrees() throws {
        let fixture = try Fixture(limits: HTTPLimits(bodyBytes: 100_000))
        let form = ["-w", "%{http_code} %{size_download} %{num_connects}\n", "-o", "/dev/null"]
        let head = try fixture.curl(["-I", fixture.url("/h")])
        #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(fixture.requests.last?.method == "HEAD")
        // One connection for both: keep-alive.
        let twice = try fixture.curl(
            form + ["--data-binary", "abc", fixture.url("/1"), "--next", "-sS"] + form
                + ["--data-binary", "abcd", fixture.url("/2")])
        #expect(twice == "200 3 1\n200 4 0\n")
        let file = NSTemporaryDirectory() + "http1-\(getpid())-\(fixture.server.port)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        func upload(_ count: Int, _ more: [String]) throws -> String {
            try Data(repeating: 0x63, count: count).write(to: URL(fileURLWithPath: file))
            return try fixture.curl(form + more + ["-T", file, fixture.url("/u")])
        }
        #expect(try upload(100_000, []) == "200 100000 1\n")
        #expect(try upload(100_000, ["-H", "Transfer-Encoding: chunked"]) == "200 100000 1\n")
        for more in [[], ["-H", "Expect:"], ["-H", "Transfer-Encoding: chunked"]] {
            #expect(try upload(100_001, more).hasPrefix("413 "))
        }
        #expect(fixture.requests.count == 5)
    }
}
