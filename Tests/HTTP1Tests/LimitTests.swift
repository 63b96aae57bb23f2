import Glibc
import HTTP1
import Testing

/// The bounds: body, header lines, connections, deadlines.
struct LimitTests {
    private let small = HTTPLimits(
        connections: 4, headerBytes: 1024, bodyBytes: 100, requestDeadlineSeconds: 1)

    @Test func bodyOfExactlyTheLimitIsAccepted() throws {
        let fixture = try Fixture(limits: small)
        let body = String(repeating: "b", count: 100)
        let fixed = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 100\r\n\r\n"
        #expect(try fixture.exchange(fixed + body).hasSuffix(body))
        let chunked =
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "32\r\n\(body.prefix(50))\r\n32;x=y\r\n\(body.prefix(50))\r\n0\r\nTrailer: t\r\n\r\n"
        #expect(try fixture.exchange(chunked).hasSuffix("\r\n\r\n" + body))
        #expect(fixture.requests.map(\.body.count) == [100, 100])
    }

    @Test func tooLargeBodyIsRefused() throws {
        let fixture = try Fixture(limits: small)
        let body = String(repeating: "b", count: 101)
        let fixed = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n"
        #expect(try fixture.exchange(fixed + body).hasPrefix("HTTP/1.1 413 "))
        let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        let answer = try fixture.exchange(chunked + "65\r\n\(body)\r\n0\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 413 "))
        #expect(answer.contains("Connection: close") || answer.contains("connection: close"))
        // Announced only: nobody waits for the body.
        for length in ["999999999999", "99999999999999999999999999"] {
            let announced = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n"
            #expect(try fixture.exchange(announced).hasPrefix("HTTP/1.1 413 "))
        }
        let waiting =
            "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n"
        #expect(try fixture.exchange(waiting).hasPrefix("HTTP/1.1 413 "))
        #expect(fixture.requests.isEmpty)
    }

    @Test func endlessBodyIsCutOff() throws {
        var limits = small
        limits.requestDeadlineSeconds = 600
        let fixture = try Fixture(limits: limits)
        let client = try fixture.connect()
        client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunk = "1000\r\n" + String(repeating: "b", count: 4096) + "\r\n"
        // Twice what is thrown away for the sake of the refusal.
        for _ in 0..<128 where !client.isClosed {
            client.send(chunk)
            _ = fixture.pump { true }
            fixture.server.run()
        }
        #expect(fixture.pump { client.isClosed })
        #expect(fixture.requests.isEmpty)
    }

    @Test func tooLongHeaderIsRefused() throws {
        let fixture = try Fixture(limits: small)
        func request(filler: Int) -> String {
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX: "
                + String(repeating: "x", count: filler) + "\r\n\r\n"
        }
        let overhead = request(filler: 0).utf8.count
        #expect(try fixture.exchange(request(filler: 1024 - overhead)).hasPrefix("HTTP/1.1 200 "))
        for filler in [1025 - overhead, 1500, 5000, 50_000, 200_000] {
            #expect(try fixture.exchange(request(filler: filler)).hasPrefix("HTTP/1.1 431 "))
        }
        let target = "GET /" + String(repeating: "x", count: 100_000) + " HTTP/1.1\r\n\r\n"
        #expect(try fixture.exchange(target).hasPrefix("HTTP/1.1 414 "))
        let many = (0..<5000).map { "h\($0): v\r\n" }.joined()
        let lines = "GET / HTTP/1.1\r\nHost: h\r\n\(many)\r\n"
        #expect(try fixture.exchange(lines).hasPrefix("HTTP/1.1 431 "))
        #expect(fixture.requests.count == 1)
    }

    @Test(arguments: [
        "", "GET / HT", "GET / HTTP/1.1\r\nHost: h\r\nX-",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc",
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    ])
    func deadlineClosesConnection(text: String) throws {
        let fixture = try Fixture(limits: small)
        // The pump runs the server only when its descriptor is readable: so the deadline made it so.
        _ = try fixture.exchange(text)
        #expect(fixture.pump { fixture.server.openConnections == 0 })
        #expect(fixture.requests.count == (text.hasSuffix("h\r\n\r\n") ? 1 : 0))
    }

    @Test func tricklingDoesNotExtendTheDeadline() throws {
        let fixture = try Fixture(limits: small)
        let client = try fixture.connect()
        client.send("GET / HTTP/1.1\r\nHost: h\r\nX: ")
        #expect(
            fixture.pump {
                usleep(5000)
                client.send("x")
                return client.isClosed
            })
        #expect(client.received == "")
    }

    @Test func connectionsOverTheLimitWaitAndAreServed() throws {
        let fixture = try Fixture(limits: small)
        let clients = try (0..<20).map { _ in try fixture.connect() }
        #expect(fixture.pump { fixture.server.openConnections == 4 })
        for client in clients {
            client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        }
        var largest = 0
        #expect(
            fixture.pump {
                largest = max(largest, fixture.server.openConnections)
                return clients.allSatisfy { $0.isClosed }
            })
        #expect(largest == 4)
        #expect(clients.allSatisfy { $0.received.hasPrefix("HTTP/1.1 200 ") })
        #expect(fixture.requests.count == 20)
    }

    @Test func placesFreedByTheDeadlineAreGivenToWaitingConnections() throws {
        let fixture = try Fixture(limits: small)
        let idle = try (0..<4).map { _ in try fixture.connect() }
        #expect(fixture.pump { fixture.server.openConnections == 4 })
        let waiting = try fixture.connect()
        waiting.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        #expect(fixture.pump { waiting.isClosed })
        #expect(waiting.received.hasPrefix("HTTP/1.1 200 "))
        #expect(fixture.pump { idle.allSatisfy { $0.isClosed } })
    }

    @Test("half requests do not keep out whole ones, long before their deadline")
    func quickOnesGetTheirPlaces() throws {
        var limits = small
        limits.requestDeadlineSeconds = 600
        limits.headDeadlineSeconds = 600
        limits.patienceMilliseconds = 50
        let fixture = try Fixture(limits: limits)
        let half = try (0..<8).map { number in
            let client = try fixture.connect()
            let text =
                number % 2 == 0
                ? "GET / HTTP/1.1\r\nHo"
                : "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"
            client.send(text)
            return client
        }
        #expect(fixture.pump { fixture.server.openConnections == 4 })
        let whole = try fixture.connect()
        whole.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        #expect(fixture.pump { whole.isClosed })
        #expect(whole.received.hasPrefix("HTTP/1.1 200 "))
        #expect(half.contains { $0.isClosed })
    }

    @Test("header lines have a deadline of their own")
    func slowHeadIsClosed() throws {
        var limits = small
        limits.requestDeadlineSeconds = 600
        limits.headDeadlineSeconds = 1
        let fixture = try Fixture(limits: limits)
        let slow = try fixture.connect()
        slow.send("GET / HTTP/1.1\r\nHost: h\r\nX: ")
        let body = try fixture.connect()
        body.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
        #expect(fixture.pump { slow.isClosed })
        #expect(!body.isClosed)
    }

    @Test func startErrorsAreTold() throws {
        let fixture = try Fixture()
        #expect(throws: HTTPServerError.system(call: "bind", code: 98)) {
            try HTTPServer(host: "127.0.0.1", port: fixture.server.port) { _, _ in }
        }
        #expect(throws: HTTPServerError.unknownHost("no.such.host.invalid")) {
            try HTTPServer(host: "no.such.host.invalid", port: 0) { _, _ in }
        }
        #expect(throws: HTTPServerError.invalidLimits) {
            try HTTPServer(host: "::1", port: 0, limits: HTTPLimits(connections: 0)) { _, _ in }
        }
    }
}
