import FoundationEssentials
import Glibc

/// A server of Debian's that is measured beside ours: found on PATH, started on ports of its own
/// on loopback, and ended with this tool.
final class PeerProgram {
    /// Milliseconds that it has for its start.
    private static let startTime = 10_000

    private let name: String
    private let child: ChildProgram
    private let logFile: URL

    /// Where the program is; `nil`: it is not installed. Debian puts servers where only root's
    /// PATH looks.
    static func find(_ name: String) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin"])
            .map { URL(fileURLWithPath: $0).appendingPathComponent(name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// - Parameter ports: it is ready when it listens at all of them.
    init(_ program: URL, arguments: [String], folder: URL, ports: [UInt16]) throws {
        name = program.lastPathComponent
        logFile = folder.appendingPathComponent("\(name).log")
        // It does not end with its standard input, but setpriv(1) has the kernel end it.
        child = try ChildProgram(
            executable: URL(fileURLWithPath: "/usr/bin/env"),
            arguments: ["setpriv", "--pdeathsig", "KILL", program.path] + arguments,
            logFile: logFile, isRouse: false)
        try child.startSilent()
        for port in ports {
            guard waits(for: port) else {
                child.kill()
                throw ScenarioError("\(name) did not start:\n\(lastLogLines())")
            }
        }
    }

    var process: Int32? { child.identifier }

    func lastLogLines() -> String {
        (try? String(contentsOf: logFile, encoding: .utf8)) ?? ""
    }

    func stop() { child.kill() }

    private func waits(for port: UInt16) -> Bool {
        for _ in 0..<(Self.startTime / 20) {
            guard child.isRunning else { return false }
            if Self.isServed(port) { return true }
            usleep(20_000)
        }
        return false
    }

    // MARK: - Ports

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    private static func withSocket<Value>(_ body: (Int32) -> Value) throws -> Value {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw ScenarioError("no socket: errno \(errno)") }
        defer { close(descriptor) }
        return body(descriptor)
    }

    private static func withAddress<Value>(
        _ port: UInt16,
        _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>)
            -> Value
    ) -> Value {
        var address = address(port)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &size) }
        }
    }

    private static func isServed(_ port: UInt16) -> Bool {
        (try? withSocket { descriptor in
            withAddress(port) { connect(descriptor, $0, $1.pointee) == 0 }
        }) ?? false
    }

    /// A port at which nobody listens now: these programs cannot tell which one they were given.
    static func freePort() throws -> UInt16 {
        let port = try withSocket { descriptor in
            withAddress(0) { address, size -> UInt16 in
                guard bind(descriptor, address, size.pointee) == 0,
                    getsockname(descriptor, address, size) == 0
                else { return 0 }
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt16(bigEndian: $0.pointee.sin_port)
                }
            }
        }
        guard port > 0 else { throw ScenarioError("no free port: errno \(errno)") }
        return port
    }
}

/// A device of a peer: on its connection, once it is there, it says what it wants to hear of, and
/// takes what comes. Loop-confined.
final class PeerDevice: TargetDevice {
    /// What has come is looked at from the start; what is taken of it is told.
    struct Step {
        var bytes = 0
        var answer: [UInt8] = []
        var event: TargetEvent?
    }

    /// The longest that waits for its end, in bytes.
    private static let receivedMax = 1 << 20

    private let socket: LoadSocket
    private let handler: (TargetEvent) -> Void
    private let next: ([UInt8]) throws(ScenarioError) -> Step?
    private var received: [UInt8] = []
    private var isGone = false

    /// - Parameters:
    ///   - opening: what it says first.
    ///   - next: the first step of what has come; `nil`: it is not whole.
    init(
        socket: LoadSocket, opening: [UInt8], handler: @escaping (TargetEvent) -> Void,
        next: @escaping ([UInt8]) throws(ScenarioError) -> Step?
    ) {
        self.socket = socket
        self.handler = handler
        self.next = next
        socket.onConnected = { [weak socket] in socket?.send(opening) }
        socket.onBytes = { [weak self] bytes in self?.take(bytes) }
        socket.onEnded = { why in handler(.ended(why)) }
    }

    func vanish() {
        isGone = true
        socket.vanish()
    }

    private func take(_ bytes: [UInt8]) {
        received += bytes
        guard received.count <= Self.receivedMax else { return end("too much at once") }
        do throws(ScenarioError) {
            while !isGone, let step = try next(received) {
                received.removeFirst(step.bytes)
                if !step.answer.isEmpty { socket.send(step.answer) }
                if let event = step.event { handler(event) }
            }
        } catch {
            end("\(error)")
        }
    }

    private func end(_ why: String) {
        guard !isGone else { return }
        vanish()
        handler(.ended(why))
    }
}
