import APNsSimulator
import Crypto
import EventLoop
import FoundationEssentials

/// The floor: a bare server of the same job (Tests/floor/floor.c), which has no users and no feeds.
final class FloorTarget: PublishTarget {
    enum Program: Equatable {
        case program(URL)
        /// There is none, and why.
        case missing(String)
    }

    private struct Addresses: Decodable {
        let devicePort: UInt16
        let apiPort: UInt16

        enum CodingKeys: String, CodingKey {
            case devicePort = "device_port"
            case apiPort = "api_port"
        }
    }

    let name = "floor"
    let tellsMetrics = false
    let apiPort: UInt16
    private let devicePort: UInt16
    private let loop: Loop
    private let tls: TLSContext
    private let child: ChildProgram
    private let logFile: URL

    /// The program itself, or what a C compiler makes of its source: `$CC`, or else `cc`, or the
    /// `clang` that comes with Swift.
    ///
    /// - Throws: the compiler's complaints.
    static func program(_ source: String, folder: URL) throws -> Program {
        guard source.hasSuffix(".c") else { return .program(URL(fileURLWithPath: source)) }
        let program = folder.appendingPathComponent("floor")
        let complaints = folder.appendingPathComponent("floor.cc.log")
        let compilers =
            ProcessInfo.processInfo.environment["CC"].map { [$0] } ?? ["cc", "clang"]
        for compiler in compilers {
            try Data().write(to: complaints)
            let words = [
                "/usr/bin/env", compiler, "-O2", "-o", program.path, source, "-lssl", "-lcrypto",
                "-pthread",
            ]
            let log = ChildProcess.Place.file(complaints.path)
            switch try ChildProcess(words, output: log, errors: log).waitForEnd() {
            case .exit(0): return .program(program)
            // env(1): the command was not found, or could not be run.
            case .exit(126), .exit(127): continue
            default:
                let said = (try? String(contentsOf: complaints, encoding: .utf8)) ?? ""
                throw ScenarioError("\(source) cannot be compiled:\n\(said)")
            }
        }
        let names = compilers.joined(separator: " or ")
        return .missing("there is no C compiler \(names) to make it with")
    }

    /// - Parameter folder: holds `server.pem` and `server.key`; the log comes into it.
    init(loop: Loop, program: URL, folder: URL, tls: TLSContext) throws {
        self.loop = loop
        self.tls = tls
        logFile = folder.appendingPathComponent("floor.complaints")
        child = try ChildProgram(
            executable: program,
            arguments: ["server.pem", "server.key", "floor.log"].map {
                folder.appendingPathComponent($0).path
            }, logFile: logFile, isRouse: false)
        do {
            let addresses = try JSONDecoder().decode(Addresses.self, from: try child.start())
            devicePort = addresses.devicePort
            apiPort = addresses.apiPort
        } catch {
            child.kill()
            throw ScenarioError("the floor did not start: \(ErrorWords.of(error))")
        }
    }

    var processes: [Int32]? { child.identifier.map { [$0] } }
    var apiPorts: [UInt16] { [apiPort] }

    func lastLogLines() -> String {
        (try? String(contentsOf: logFile, encoding: .utf8)) ?? ""
    }

    func stop() { child.kill() }

    func preparation(for recipient: Recipient) -> [[UInt8]] { [] }

    func publish(_ text: String, number: UInt64, to recipient: Recipient) -> [UInt8] {
        let place =
            switch recipient {
            case .device(let number): number
            case .group(let members): -members
            }
        return BackendRequest.post(
            "/v1/conversations/\(place)/messages", headers: "",
            body: BackendRequest.message(text))
    }

    func connect(
        _ device: Int, from source: String, handler: @escaping (TargetEvent) -> Void
    ) -> any TargetDevice {
        FloorDevice(
            number: device,
            socket: LoadSocket(loop: loop, port: devicePort, source: source, tls: tls),
            handler: handler)
    }
}

/// A device of the floor, in its framing. Loop-confined.
final class FloorDevice: TargetDevice {
    /// The longest message, in bytes, that the floor takes.
    private static let messageBytesMax = 64 << 10

    private let socket: LoadSocket
    private let handler: (TargetEvent) -> Void
    private var received: [UInt8] = []
    private var isReady = false

    init(number: Int, socket: LoadSocket, handler: @escaping (TargetEvent) -> Void) {
        self.socket = socket
        self.handler = handler
        socket.onConnected = { [weak socket] in socket?.send(Array("\(number)\n".utf8)) }
        socket.onBytes = { [weak self] bytes in self?.take(bytes) }
        socket.onEnded = { why in handler(.ended(why)) }
    }

    func vanish() { socket.vanish() }

    private func take(_ bytes: [UInt8]) {
        received += bytes
        if !isReady {
            guard received.removeFirst() == UInt8(ascii: ".") else { return end("no greeting") }
            isReady = true
            handler(.ready)
        }
        while received.count >= 4 {
            let length = received[..<4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= Self.messageBytesMax else { return end("a message too long") }
            guard received.count >= 4 + length else { return }
            let message = Array(received[4..<(4 + length)])
            received.removeFirst(4 + length)
            socket.send([UInt8(ascii: "A")])
            handler(.message(message))
        }
    }

    private func end(_ why: String) {
        socket.vanish()
        handler(.ended(why))
    }
}
