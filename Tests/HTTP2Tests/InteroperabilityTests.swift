import Foundation
import Glibc
import HTTP2
import Testing

/// The engines against programs of other hands, over plain TCP with prior knowledge
/// (RFC 9113 3.3). The programs are of the packages nghttp2-client, nghttp2-server and curl; a test
/// whose program is missing is reported as skipped.
@Suite(.serialized)
struct InteroperabilityTests {
    private static func has(_ program: String) -> Bool {
        ["/usr/bin", "/usr/sbin", "/usr/local/bin"].contains {
            access("\($0)/\(program)", X_OK) == 0
        }
    }

    @Test(.enabled(if: has("nghttp")))
    func nghttpAgainstTheServerEngine() throws {
        let listener = try PlainListener()
        let output = try listener.serve([
            "nghttp", "-v", "-H", "x-test: value", "http://127.0.0.1:\(listener.port)/a",
            "http://127.0.0.1:\(listener.port)/b",
        ])
        #expect(output.contains("recv (stream_id=13) :status: 200"))
        #expect(output.contains("SETTINGS_MAX_CONCURRENT_STREAMS(0x03):100"))
        #expect(output.contains("GET /a"))
        #expect(output.contains("GET /b"))
        #expect(!output.contains("PROTOCOL_ERROR"))
        #expect(listener.paths.sorted() == ["/a", "/b"])
        // It builds a tree of idle streams with PRIORITY frames first.
        #expect(listener.priorityFrames > 0)
    }

    @Test(.enabled(if: has("curl")))
    func curlAgainstTheServerEngine() throws {
        let listener = try PlainListener()
        let body = String(repeating: "z", count: 50_000)
        let output = try listener.serve([
            "curl", "-sS", "--max-time", "25", "--http2-prior-knowledge", "--data-raw", body,
            "-w", "\n%{http_version} %{http_code}", "http://127.0.0.1:\(listener.port)/c",
        ])
        #expect(output == "POST /c\(body)\n2 200")
    }

    @Test(.enabled(if: has("h2load")), arguments: [1, 100])
    func h2loadAgainstTheServerEngine(limit: UInt32) throws {
        var settings = HTTP2ServerSettings()
        settings.maximumConcurrentStreams = limit
        let listener = try PlainListener(settings: settings)
        let output = try listener.serve([
            "h2load", "-n", "2000", "-c", "4", "-m", "20",
            "http://127.0.0.1:\(listener.port)/load",
        ])
        // It opens streams before it has the SETTINGS; those above the limit are refused, and the
        // connections go on.
        #expect(output.contains("requests: 2000 total, 2000 started, 2000 done"))
        #expect(listener.violations == [])
        #expect(listener.paths.count + listener.refusedStreams == 2000)
        #expect((limit == 1) == (listener.refusedStreams > 0))
        #expect(output.contains("\(listener.paths.count) succeeded"))
    }

    @Test(.enabled(if: has("nghttpd")))
    func clientEngineAgainstNghttpd() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "http2-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let content = String(repeating: "content ", count: 4000)
        try Data(content.utf8).write(to: directory.appendingPathComponent("file"))
        let port = try PlainSocket.freePort()
        let server = Process()
        server.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        server.arguments = ["nghttpd", "--no-tls", "-d", directory.path, String(port)]
        server.environment = ["PATH": "/usr/bin:/usr/sbin:/usr/local/bin"]
        server.standardOutput = FileHandle.nullDevice
        server.standardError = FileHandle.nullDevice
        try server.run()
        defer {
            // A child inherits the signal mask of the test's thread, which blocks SIGTERM.
            kill(server.processIdentifier, SIGKILL)
            server.waitUntilExit()
        }
        let socket = try PlainSocket.connect(port: port)
        defer { close(socket) }
        let client = try HTTP2ClientEngine()
        var pending = Array(0..<300) as [UInt64]
        var ended: [UInt64: Int] = [:]
        var statuses: [UInt64: Int] = [:]
        var bodies: [UInt64: Int] = [:]
        var pinged = false
        try client.ping(opaque: 42)
        while ended.count < 300 || !pinged {
            while let tag = pending.last, client.openStreams < 50 {
                try client.submit(
                    headers: EnginePair.pushHeaders(path: tag % 2 == 0 ? "/file" : "/none"),
                    body: Array("{}".utf8), tag: tag)
                pending.removeLast()
            }
            try PlainSocket.send(client.takeOutput(maximumBytes: 16_384), to: socket)
            if client.wantsOutput { continue }
            let bytes = try PlainSocket.receive(from: socket)
            try #require(!bytes.isEmpty)
            for event in try bytes.withUnsafeBytes({ try client.received($0) }) {
                switch event {
                case .response(let tag, let status, _): statuses[tag] = status
                case .data(let tag, let bytes): bodies[tag, default: 0] += bytes.count
                case .finished(let tag): ended[tag, default: 0] += 1
                case .pingAnswered(let opaque): pinged = opaque == 42
                case .settings(let limit): #expect(limit >= 100)
                default: Issue.record("\(event)")
                }
            }
        }
        #expect(ended.values.allSatisfy { $0 == 1 })
        for tag in UInt64(0)..<300 {
            #expect(statuses[tag] == (tag % 2 == 0 ? 200 : 404))
            if tag % 2 == 0 { #expect(bodies[tag] == content.utf8.count) }
        }
        #expect(client.openStreams == 0)
    }
}

/// Server engines behind a listening socket. Each request is answered with its method, path and
/// body.
private final class PlainListener {
    let port: UInt16
    private(set) var paths: [String] = []
    private(set) var priorityFrames = 0
    private(set) var refusedStreams = 0
    private(set) var violations: [String] = []
    private let descriptor: Int32
    private let settings: HTTP2ServerSettings
    private var connections: [Int32: HTTP2ServerEngine] = [:]

    init(settings: HTTP2ServerSettings = HTTP2ServerSettings()) throws {
        self.settings = settings
        (descriptor, port) = try PlainSocket.listen()
    }

    deinit {
        for socket in connections.keys { close(socket) }
        close(descriptor)
    }

    /// Serves until the program has ended; what it wrote.
    func serve(_ arguments: [String]) throws -> String {
        let file = NSTemporaryDirectory() + "http2-\(UUID().uuidString)"
        _ = FileManager.default.createFile(atPath: file, contents: nil)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let output = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let end = ContinuousClock.now + .seconds(60)
        while process.isRunning && ContinuousClock.now < end { try step() }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        return String(decoding: try Data(contentsOf: URL(fileURLWithPath: file)), as: UTF8.self)
    }

    private func step() throws {
        var watched = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
        watched += connections.keys.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&watched, nfds_t(watched.count), 10) > 0 else { return }
        for ready in watched where ready.revents != 0 {
            if ready.fd == descriptor {
                connections[accept(descriptor, nil, nil)] = try HTTP2ServerEngine(
                    settings: settings)
            } else if let engine = connections[ready.fd] {
                try serve(engine, on: ready.fd)
            }
        }
    }

    private func serve(_ engine: HTTP2ServerEngine, on socket: Int32) throws {
        let bytes = try PlainSocket.receive(from: socket)
        let events = bytes.isEmpty ? [] : try bytes.withUnsafeBytes { try engine.received($0) }
        for event in events {
            switch event {
            case .request(let stream, let headers, let body):
                let path = headers[":path"] ?? ""
                paths.append(path)
                try engine.respond(
                    stream, status: 200, headers: [HTTP2Header("content-type", "text/plain")],
                    body: Array("\(headers[":method"] ?? "") \(path)".utf8) + body)
            case .priorityFrameSeen: priorityFrames += 1
            case .refused: refusedStreams += 1
            case .violation(let text): violations.append(text)
            default: break
            }
        }
        while engine.wantsOutput {
            try PlainSocket.send(engine.takeOutput(maximumBytes: 16_384), to: socket)
        }
        if bytes.isEmpty || engine.isFinished {
            close(socket)
            connections[socket] = nil
        }
    }
}

/// Blocking sockets of the loopback interface.
private enum PlainSocket {
    struct Failure: Error {
        var call: String
        var code = errno
    }

    static func listen() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failed = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) | Glibc.listen(descriptor, 64)
                    | getsockname(descriptor, $0, &length)
            }
        }
        if failed != 0 { throw Failure(call: "listen") }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// A port that was free just now, for a program that cannot choose one.
    static func freePort() throws -> UInt16 {
        let listening = try listen()
        close(listening.descriptor)
        return listening.port
    }

    /// Tries until the server listens.
    static func connect(port: UInt16) throws -> Int32 {
        for _ in 0..<1000 {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = loopback(port: port)
            let connected = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            if connected == 0 { return descriptor }
            close(descriptor)
            usleep(20_000)
        }
        throw Failure(call: "connect")
    }

    static func send(_ bytes: [UInt8], to descriptor: Int32) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The peer may close while output is left, as h2load does at its end.
            if count < 0 && (errno == EPIPE || errno == ECONNRESET) { return }
            if count < 0 { throw Failure(call: "send") }
            sent += count
        }
    }

    /// Empty at the end.
    static func receive(from descriptor: Int32) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count > 0 ? Array(bytes[..<count]) : []
    }

    private static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
