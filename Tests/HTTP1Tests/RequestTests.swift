import HTTP1
import Testing

/// What the handler gets, and what is refused before it.
struct RequestTests {
    @Test func requestIsTakenApart() throws {
        let fixture = try Fixture()
        let answer = try fixture.exchange(
            "PUT /apps/a%2Fb/users/?q=x+y&q=%C3%A9&empty HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n"
                + "x-a:  2 \r\ncontent-length: 3\r\nConnection: close\r\n\r\nabc")
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(answer.contains("x-method: PUT\r\n"))
        #expect(answer.hasSuffix("\r\n\r\nabc"))
        let request = try #require(fixture.requests.first)
        #expect(fixture.requests.count == 1)
        #expect(request.method == "PUT")
        #expect(request.path == "/apps/a%2Fb/users/")
        #expect(request.pathSegments == ["apps", "a/b", "users", ""])
        #expect(request.query.map(\.name) == ["q", "q", "empty"])
        #expect(request.query.map(\.value) == ["x y", "é", ""])
        #expect(request.queryValue("q") == "x y")
        #expect(request.headers["X-a"] == "1")
        #expect(request.headers.values("x-A") == ["1", "2"])
        #expect(request.headers["absent"] == nil)
        #expect(request.body == Array("abc".utf8))
        #expect(request.peerAddress == "127.0.0.1")
    }

    @Test(arguments: [
        ("/", []), ("/?a=1", []), ("/a", ["a"]), ("//", ["", ""]), ("/%E2%82%AC", ["€"]),
        ("http://h.example/a/b", ["a", "b"]), ("HTTPS://h", []), ("/a%3Fb", ["a?b"]),
    ])
    func targetIsAccepted(target: String, segments: [String]) throws {
        let fixture = try Fixture()
        let answer = try fixture.exchange(
            "GET \(target) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(fixture.requests.map(\.pathSegments) == [segments])
    }

    @Test(arguments: [
        "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%FF HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /?%C3%28=1 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /\u{E9} HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://h?/a HTTP/1.1\r\nHost: h\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
        "GET / HTTQ/1.1\r\nHost: h\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ])
    func malformedRequestIsRefused(text: String) throws {
        let fixture = try Fixture()
        #expect(try fixture.exchange(text).hasPrefix("HTTP/1.1 400 "))
        #expect(fixture.requests.isEmpty)
    }

    /// RFC 9110 5.6.2.
    @Test func fieldNamesAreMadeOfTheirCharactersAlone() throws {
        let names = Set(
            "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        // A colon ends a name, and control characters are refused before they are looked at.
        for byte in 0x21...0x7E as ClosedRange<UInt8> where byte != UInt8(ascii: ":") {
            let fixture = try Fixture()
            let name = "x" + String(UnicodeScalar(byte))
            let answer = try fixture.exchange(
                "GET / HTTP/1.1\r\nHost: h\r\n\(name): y\r\nConnection: close\r\n\r\n")
            let expected = names.contains(byte) ? "HTTP/1.1 200 " : "HTTP/1.1 400 "
            #expect(answer.hasPrefix(expected), "\(name)")
            fixture.stop()
        }
    }

    /// The library ends a value at a NUL and forgets what a folded line says; another program in
    /// front of it reads on (RFC 9110 5.5, RFC 9112 5.2).
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer KEY\0x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer KEY\0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: y\0\r\nZ: z\r\n\r\n",
        // A line of one NUL is an empty line to the library, and more of the head to others.
        "GET / HTTP/1.1\r\nHost: h\r\nX: y\r\n\0\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer KEY\0x\r\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\0.example\r\nX: y\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\0x\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\0 22\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\u{1}b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\u{7F}b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\nY: c\r\n\r\n",
    ])
    func whatTwoProgramsWouldReadDifferentlyIsRefused(text: String) throws {
        try expectRefusal(of: text, "invalid header line")
    }

    private func expectRefusal(of text: String, _ reason: String) throws {
        let fixture = try Fixture()
        let answer = try fixture.exchange(text)
        #expect(answer.hasPrefix("HTTP/1.1 400 "))
        #expect(answer.hasSuffix("\(reason)\n"), "\(answer)")
        #expect(fixture.requests.isEmpty)
    }

    @Test(arguments: [
        "DELETE\0Q / HTTP/1.1\r\nHost: h\r\n\r\n",
        "DELETE /a\0/b HTTP/1.1\r\nHost: h\r\n\r\n",
        "DELETE /a?b\0c HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\r\n\r\n",
    ])
    func aRequestLineIsReadToItsEnd(text: String) throws {
        try expectRefusal(of: text, "invalid request line")
    }

    @Test func otherRefusals() throws {
        let fixture = try Fixture()
        let coding = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n"
        #expect(try fixture.exchange(coding).hasPrefix("HTTP/1.1 501 "))
        let version = "GET / HTTP/3.0\r\nHost: h\r\n\r\n"
        #expect(try fixture.exchange(version).hasPrefix("HTTP/1.1 505 "))
        // The library closes by itself on a line without a space.
        #expect(try fixture.exchange("\u{16}\u{03}\u{01}garbage\r\n\r\n") == "")
        #expect(fixture.requests.isEmpty)
    }

    @Test func randomBytesNeitherTrapNorReachTheHandler() throws {
        let fixture = try Fixture()
        var generator = SplitMix(state: 42)
        for _ in 0..<200 {
            let client = try fixture.connect()
            var bytes = (0..<Int.random(in: 1...600, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            if Bool.random(using: &generator) { bytes = Array("GET / HTTP/1.1\r\n".utf8) + bytes }
            client.send(bytes + Array("\r\n\r\n".utf8))
            client.close()
        }
        let last = try fixture.exchange("GET /end HTTP/1.0\r\n\r\n")
        #expect(last.hasPrefix("HTTP/1.1 200 ") || last.hasPrefix("HTTP/1.0 200 "))
        #expect(fixture.requests.map(\.path) == ["/end"])
    }
}

/// Steele, Lea and Flood's generator: the same numbers on every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
