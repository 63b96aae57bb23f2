import Foundation
import Glibc
import HTTP1
import Testing

/// A server driven by poll(2) from the test's own thread, as an event loop would drive it.
final class Fixture {
    private(set) var requests: [HTTPRequest] = []
    /// Requests the handler has not answered, oldest first, when `answersAtOnce` is false.
    var held: [Responder] = []
    private(set) var server: HTTPServer!
    private var stopped = false

    /// - Parameter answer: nil holds the request.
    init(
        limits: HTTPLimits = HTTPLimits(),
        answer: @escaping (HTTPRequest) -> HTTPResponse? = { request in
            HTTPResponse(status: 200, headers: [("x-method", request.method)], body: request.body)
        }
    ) throws {
        server = try HTTPServer(host: "127.0.0.1", port: 0, limits: limits) {
            [unowned self] request, responder in
            requests.append(request)
            if let response = answer(request) {
                responder.respond(response)
            } else {
                held.append(responder)
            }
        }
    }

    deinit {
        stop()
    }

    func stop() {
        if !stopped { server.stop() }
        stopped = true
    }

    /// Runs the server as long as its descriptor is readable, until `condition` holds; false when
    /// it does not hold within a time no healthy machine needs.
    func pump(until condition: () throws -> Bool) rethrows -> Bool {
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end {
            if try condition() { return true }
            var watched = pollfd(fd: server.descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&watched, 1, 10) > 0 { server.run() }
        }
        return false
    }

    /// - Parameter receiveBuffer: bytes that the kernel takes for a client that does not read.
    func connect(receiveBuffer: Int32? = nil) throws -> RawClient {
        try RawClient(port: server.port, receiveBuffer: receiveBuffer)
    }

    /// Sends, and pumps until the connection is closed by the server.
    func exchange(_ text: String) throws -> String {
        let client = try connect()
        client.send(text)
        #expect(pump { client.isClosed })
        return client.received
    }

    /// Runs curl against the server and returns what it wrote.
    func curl(_ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["curl", "-sS", "--max-time", "25"] + arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        #expect(pump { !process.isRunning })
        return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(server.port)\(path)" }
}

/// A client without any knowledge of HTTP.
final class RawClient {
    private let descriptor: Int32
    private var bytes: [UInt8] = []
    private var ended = false
    private var isOpen = true

    init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var receiveBuffer {
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer,
                socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    deinit {
        close()
    }

    /// What has arrived so far.
    var received: String {
        receive()
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether the server has closed.
    var isClosed: Bool {
        receive()
        return ended
    }

    /// Bytes the kernel took.
    @discardableResult
    func send(_ text: String) -> Int {
        send(Array(text.utf8))
    }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Int {
        Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Reads at most so many bytes, which are not kept, and gives how many came; nil: the server
    /// has closed.
    func read(_ most: Int) -> Int? {
        var part = [UInt8](repeating: 0, count: most)
        let count = recv(descriptor, &part, most, 0)
        if count > 0 { return count }
        return count < 0 && errno == EAGAIN ? 0 : nil
    }

    func close() {
        if isOpen { Glibc.close(descriptor) }
        isOpen = false
        ended = true
    }

    private func receive() {
        var part = [UInt8](repeating: 0, count: 65536)
        while !ended {
            let count = recv(descriptor, &part, part.count, 0)
            if count > 0 {
                bytes += part[..<count]
            } else if count == 0 || errno != EAGAIN {
                ended = true
            } else {
                return
            }
        }
    }
}
