import Crypto
import EventLoop
import Foundation
import Glibc
import HTTP1
import HTTPClient
import Testing

/// The client against libmicrohttpd in clear, and Python's server behind TLS.
@Suite(.serialized) struct HTTPClientTests {
    /// Runs posts on a loop of their own, one after another, against a server on the same loop.
    static func results(
        of posts: [HTTPPost],
        server: @escaping (HTTPRequest, Responder) -> Void = { _, _ in },
        options: @escaping () -> HTTPClientOptions = local
    ) throws -> [HTTPPostResult] {
        let loop = try Loop()
        defer { loop.close() }
        let peer = try HTTPServer(host: "127.0.0.1", port: 0, handler: server)
        let peerWatch = try DescriptorWatch(loop: loop, descriptor: peer.descriptor) { _ in
            peer.run()
        }
        peerWatch.start(.readable)
        let client = try HTTPClient(options())
        let watch = try DescriptorWatch(loop: loop, descriptor: client.descriptor) { _ in
            client.run()
        }
        watch.start(.readable)
        // Not to time anything: a client that never answers would hang the suite.
        let limit = loop.timer { loop.stop() }
        limit.start(afterMilliseconds: 60_000)
        var results: [HTTPPostResult] = []
        for var post in posts {
            post.url = post.url.replacingOccurrences(of: "PORT", with: "\(peer.port)")
            client.post(post) { result in
                results.append(result)
                if results.count == posts.count { loop.stop() }
            }
        }
        loop.run()
        limit.close()
        watch.close()
        peerWatch.close()
        client.stop()
        peer.stop()
        return results
    }

    static func local() -> HTTPClientOptions { HTTPClientOptions { _ in true } }

    static func post(
        _ url: String = "http://127.0.0.1:PORT/hook?x=1", _ body: String = "{}",
        headers: [(name: String, value: String)] = []
    ) -> HTTPPost {
        HTTPPost(url: url, headers: headers, body: Array(body.utf8))
    }

    @Test("method, path, headers and body arrive; the status comes back")
    func carried() throws {
        var seen: [HTTPRequest] = []
        let large = String(repeating: "0123456789", count: 20_000)
        let results = try Self.results(of: [
            Self.post(
                "http://127.0.0.1:PORT/hook?x=1", large,
                headers: [("content-type", "application/json"), ("x-one", "1")])
        ]) { request, responder in
            seen.append(request)
            responder.respond(HTTPResponse(status: 204))
        }
        #expect(results == [.answered(status: 204, retryAfterSeconds: nil)])
        let request = try #require(seen.first)
        #expect(request.method == "POST" && request.path == "/hook")
        #expect(request.queryValue("x") == "1")
        #expect(request.headers["content-type"] == "application/json")
        #expect(request.headers["x-one"] == "1" && request.headers["user-agent"] == "rouse")
        #expect(request.headers["expect"] == nil && request.headers["authorization"] == nil)
        #expect(request.body == Array(large.utf8))
    }

    @Test("Retry-After is read; redirects are not followed")
    func answers() throws {
        var paths: [String] = []
        let results = try Self.results(of: [
            Self.post("http://127.0.0.1:PORT/busy"), Self.post("http://127.0.0.1:PORT/moved"),
        ]) { request, responder in
            paths.append(request.path)
            responder.respond(
                request.path == "/busy"
                    ? HTTPResponse(status: 503, headers: [("retry-after", "7")])
                    : HTTPResponse(status: 307, headers: [("location", "/elsewhere")]))
        }
        #expect(
            Set(results.map { "\($0)" })
                == Set(
                    [
                        HTTPPostResult.answered(status: 503, retryAfterSeconds: 7),
                        .answered(status: 307, retryAfterSeconds: nil),
                    ].map { "\($0)" }))
        #expect(paths.sorted() == ["/busy", "/moved"])
    }

    @Test("an answer that is too long is cut, and counts")
    func longAnswer() throws {
        let results = try Self.results(of: [Self.post()]) { _, responder in
            responder.respond(
                HTTPResponse(status: 200, body: [UInt8](repeating: 0x61, count: 1 << 20)))
        }
        #expect(results == [.answered(status: 200, retryAfterSeconds: nil)])
    }

    @Test("addresses that are not permitted are not connected to, also by name")
    func addresses() throws {
        var asked: [[UInt8]] = []
        var isReached = false
        let options: () -> HTTPClientOptions = {
            HTTPClientOptions { address in
                asked.append(address)
                return false
            }
        }
        let results = try Self.results(
            of: [Self.post(), Self.post("http://localhost:PORT/")],
            server: { _, responder in
                isReached = true
                responder.respond(HTTPResponse(status: 200))
            }, options: options)
        #expect(results == [.failed(.address), .failed(.address)])
        #expect(asked.contains([127, 0, 0, 1]) && !isReached)
    }

    @Test("no answer in time is a failure")
    func timeout() throws {
        var held: [Responder] = []
        let options: () -> HTTPClientOptions = {
            var options = Self.local()
            options.timeout = 300
            return options
        }
        let results = try Self.results(
            of: [Self.post()], server: { _, responder in held.append(responder) },
            options: options)
        #expect(results == [.failed(.timeout)])
        #expect(held.count == 1)
    }

    @Test("where the time went before the request was sent is told")
    func earlyTimeouts() throws {
        // Its system takes connections; nobody speaks on them.
        let silent = try SilentPeer(backlog: 8)
        // Two connections wait here already: what else comes is dropped.
        let full = try SilentPeer(backlog: 0)
        let waiting = try (0..<4).map { _ in try full.connect() }
        defer { for socket in waiting { close(socket) } }
        func result(_ url: String) throws -> HTTPPostResult? {
            try Self.results(
                of: [Self.post(url)],
                options: {
                    var options = Self.local()
                    options.timeout = 300
                    return options
                }
            ).first
        }
        #expect(
            try result("https://127.0.0.1:\(silent.port)/") == .failed(.tlsTimeout))
        #expect(
            try result("http://127.0.0.1:\(silent.port)/") == .failed(.timeout))
        for scheme in ["http", "https"] {
            #expect(
                try result("\(scheme)://127.0.0.1:\(full.port)/") == .failed(.connectTimeout))
        }
    }

    @Test("what cannot be sent is a failure with a reason")
    func failures() throws {
        let cases: [(HTTPPost, HTTPPostFailure)] = [
            (Self.post("http://127.0.0.1:1/"), .connect),
            (Self.post("ftp://127.0.0.1/"), .url),
            (Self.post("file:///etc/passwd"), .url),
            (Self.post("http://user:pass@127.0.0.1:PORT/"), .url),
            (Self.post("http://name.invalid/"), .name),
            (Self.post(headers: [("x", "a\r\nb: c")]), .url),
        ]
        for (post, failure) in cases {
            #expect(try Self.results(of: [post]) == [.failed(failure)], "\(post.url)")
        }
    }

    @Test(
        "what is no HTTP/1.1 is the receiver's wrong answer, not a URL that cannot be used",
        arguments: [
            "\u{16}\u{3}\u{1}garbage\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "200 OK\r\n\r\n",
            "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 banana\r\n\r\n", "",
        ])
    func garbage(answer: String) throws {
        let peer = try RawPeer(answer)
        let results = try Self.results(of: [Self.post("http://127.0.0.1:\(peer.port)/")])
        #expect(results == [.failed(.answer)])
    }

    @Test("an answer of which something is missing says what its head says")
    func cutAnswers() throws {
        for (head, result) in [
            ("200 OK", HTTPPostResult.answered(status: 200, retryAfterSeconds: nil)),
            ("410 Gone", .answered(status: 410, retryAfterSeconds: nil)),
            ("429 No\r\nRetry-After: 9", .answered(status: 429, retryAfterSeconds: 9)),
        ] {
            let peer = try RawPeer("HTTP/1.1 \(head)\r\nContent-Length: 100\r\n\r\nabc")
            let url = "http://127.0.0.1:\(peer.port)/"
            #expect(try Self.results(of: [Self.post(url)]) == [result])
        }
    }

    @Test("a proxy of the environment is not used")
    func proxy() throws {
        for name in ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"] {
            setenv(name, "http://127.0.0.1:1", 1)
        }
        defer {
            for name in ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"] { unsetenv(name) }
        }
        let results = try Self.results(of: [Self.post()]) { _, responder in
            responder.respond(HTTPResponse(status: 200))
        }
        #expect(results == [.answered(status: 200, retryAfterSeconds: nil)])
    }

    @Test("TLS: certificate and name are checked")
    func tls() throws {
        let authority = try DevelopmentCertificates(names: ["localhost"])
        let other = try DevelopmentCertificates(names: ["localhost"])
        let peer = try TLSPeer(authority.server.certificatePEM + authority.server.privateKeyPEM)
        defer { peer.stop() }
        func result(_ host: String, trusting pem: String?) throws -> HTTPPostResult? {
            try Self.results(
                of: [Self.post("https://\(host):\(peer.port)/")],
                options: {
                    var options = Self.local()
                    options.trustedCertificates = pem.map { Array($0.utf8) }
                    options.timeout = 20_000
                    return options
                }
            ).first
        }
        #expect(
            try result("localhost", trusting: authority.authorityPEM)
                == .answered(status: 200, retryAfterSeconds: nil))
        #expect(
            try result("127.0.0.1", trusting: authority.authorityPEM) == .failed(.certificate))
        #expect(try result("localhost", trusting: other.authorityPEM) == .failed(.certificate))
        #expect(try result("localhost", trusting: nil) == .failed(.certificate))
    }
}

/// A socket that listens and that nobody serves.
final class SilentPeer {
    let port: UInt16
    private let listener: CInt

    init(backlog: CInt) throws {
        listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = Self.address(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { [listener] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, backlog) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
    }

    deinit { close(listener) }

    /// Begins a connection and does not wait for it.
    func connect() throws -> CInt {
        let flags = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let client = socket(AF_INET, flags, 0)
        var address = Self.address(port: port)
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = Glibc.connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return client
    }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}

/// Python's HTTP server behind its TLS, which answers 200 to every POST.
final class TLSPeer {
    let port: Int
    private let process = Process()
    private let file: URL

    private static let program = """
        import http.server, ssl, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()
            def log_message(self, *words): pass
        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *words): pass
        server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1])
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False)
        print(server.server_address[1], flush=True)
        server.serve_forever()
        """

    init(_ pem: String) throws {
        file = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-tls-\(UUID().uuidString).pem")
        try Data(pem.utf8).write(to: file)
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-c", Self.program, file.path]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var text = ""
        while !text.hasSuffix("\n") {
            let chunk = output.fileHandleForReading.availableData
            if chunk.isEmpty { break }
            text += String(decoding: chunk, as: UTF8.self)
        }
        port = Int(text.dropLast()) ?? 0
        try #require(port > 0, "the peer did not start: \(text)")
    }

    func stop() {
        // The runner's children inherit its blocked signals: SIGTERM would never arrive.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: file)
    }
}

/// Takes one connection, reads the head of a request, says what it is told to, and closes.
private final class RawPeer {
    let port: UInt16
    private let thread: Thread

    init(_ answer: String) throws {
        let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, length) == 0 && listen(listening, 1) == 0
                    && getsockname(listening, $0, &length) == 0
            }
        }
        try #require(isListening)
        port = UInt16(bigEndian: address.sin_port)
        thread = Thread {
            let connection = accept(listening, nil, nil)
            var bytes = [UInt8](repeating: 0, count: 4096)
            _ = recv(connection, &bytes, bytes.count, 0)
            _ = send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
            shutdown(connection, Int32(SHUT_WR))
            // Until the client is done: closed before, unread bytes would take the answer back.
            while recv(connection, &bytes, bytes.count, 0) > 0 {}
            close(connection)
            close(listening)
        }
        thread.start()
    }
}
