import APNsSimulator
import Crypto
import EventLoop
import FoundationEssentials

/// redis with `appendfsync always`: a publish is written to a stream and told to who subscribed,
/// in one transaction, whose answer follows the fdatasync.
final class RedisTarget: PublishTarget {
    static let programName = "redis-server"
    let name = "redis"
    let tellsMetrics = false
    private let apiPort: UInt16
    let dialect = BackendDialect(greeting: nil) { bytes throws(ScenarioError) in
        // MULTI, two commands that are queued, and what EXEC came to.
        var at = 0
        for _ in 0..<4 {
            guard let (value, end) = try RESPValue.first(of: bytes, from: at) else { return nil }
            at = end
            if case .failure(let why) = value {
                return (HTTPCall.Answer(status: 500, body: why), at)
            }
        }
        return (HTTPCall.Answer(status: 200, body: []), at)
    }
    private let devicePort: UInt16
    private let loop: Loop
    private let tls: TLSContext
    private let group: Int
    private let program: PeerProgram

    /// - Parameters:
    ///   - group: so many devices, the first, are told of what is for a group.
    ///   - folder: holds `server.pem` and `server.key`; the log comes into it.
    init(loop: Loop, program: URL, folder: URL, tls: TLSContext, group: Int) throws {
        self.loop = loop
        self.tls = tls
        self.group = group
        apiPort = try PeerProgram.freePort()
        devicePort = try PeerProgram.freePort()
        let settings = [
            "bind": "127.0.0.1", "port": "\(apiPort)", "tls-port": "\(devicePort)",
            "tls-cert-file": folder.appendingPathComponent("server.pem").path,
            "tls-key-file": folder.appendingPathComponent("server.key").path,
            "tls-auth-clients": "no", "tls-protocols": "TLSv1.3", "appendonly": "yes",
            "appendfsync": "always", "save": "", "dir": folder.path, "maxclients": "60000",
            // It listens on loopback only, but takes most addresses of that for strangers'.
            "protected-mode": "no",
        ]
        var arguments = settings.sorted { $0.key < $1.key }.flatMap { ["--\($0.key)", $0.value] }
        arguments += ["--client-output-buffer-limit", "pubsub", "0", "0", "0"]
        self.program = try PeerProgram(
            program, arguments: arguments, folder: folder, ports: [apiPort, devicePort])
    }

    var processes: [Int32]? { program.process.map { [$0] } }
    var apiPorts: [UInt16] { [apiPort] }
    func lastLogLines() -> String { program.lastLogLines() }
    func stop() { program.stop() }
    func preparation(for recipient: Recipient) -> [[UInt8]] { [] }

    private static let groupChannel = "g"
    private static func channel(of device: Int) -> String { "d:\(device)" }

    func publish(_ text: String, number: UInt64, to recipient: Recipient) -> [UInt8] {
        let channel =
            switch recipient {
            case .device(let number): Self.channel(of: number)
            case .group: Self.groupChannel
            }
        return RESPValue.command(["MULTI"])
            + RESPValue.command(["XADD", "s:" + channel, "*", "m", text])
            + RESPValue.command(["PUBLISH", channel, text])
            + RESPValue.command(["EXEC"])
    }

    func connect(
        _ device: Int, from source: String, handler: @escaping (TargetEvent) -> Void
    ) -> any TargetDevice {
        let channels = [Self.channel(of: device)] + (device < group ? [Self.groupChannel] : [])
        var isReady = false
        return PeerDevice(
            socket: LoadSocket(loop: loop, port: devicePort, source: source, tls: tls),
            opening: RESPValue.command(["SUBSCRIBE"] + channels), handler: handler
        ) { bytes throws(ScenarioError) in
            guard let (value, end) = try RESPValue.first(of: bytes, from: 0) else { return nil }
            var step = PeerDevice.Step(bytes: end)
            guard case .array(let parts) = value, parts.count == 3 else {
                throw ScenarioError("redis told what nobody asked for: \(value)")
            }
            switch (parts[0], parts[2]) {
            case (.text(Array("message".utf8)), .text(let text)): step.event = .message(text)
            case (_, .number(channels.count)) where !isReady:
                isReady = true
                step.event = .ready
            default: break
            }
            return step
        }
    }
}

/// A value of redis' protocol, version 2.
enum RESPValue: Equatable {
    case text([UInt8])
    case number(Int)
    case failure([UInt8])
    case array([RESPValue])

    /// Values inside each other that an answer may have.
    private static let depthMax = 4

    /// The value that begins there, and where it ends; `nil`: it is not whole.
    static func first(
        of bytes: [UInt8], from start: Int, depth: Int = 0
    ) throws(ScenarioError) -> (value: RESPValue, end: Int)? {
        guard depth < depthMax else { throw ScenarioError("an answer of redis is too deep") }
        guard start < bytes.count, let line = bytes[start...].firstIndex(of: 13),
            line + 1 < bytes.count
        else {
            return nil
        }
        let head = Array(bytes[(start + 1)..<line])
        let after = line + 2
        switch bytes[start] {
        case UInt8(ascii: "+"): return (.text(head), after)
        case UInt8(ascii: "-"): return (.failure(head), after)
        case UInt8(ascii: ":"): return (.number(try number(head)), after)
        case UInt8(ascii: "$"):
            let length = try number(head)
            guard length >= 0 else { return (.text([]), after) }
            guard bytes.count - after >= length + 2 else { return nil }
            return (.text(Array(bytes[after..<(after + length)])), after + length + 2)
        case UInt8(ascii: "*"):
            var (values, at): ([RESPValue], Int) = ([], after)
            for _ in 0..<max(0, try number(head)) {
                guard let (value, end) = try first(of: bytes, from: at, depth: depth + 1) else {
                    return nil
                }
                values.append(value)
                at = end
            }
            return (.array(values), at)
        default: throw ScenarioError("the answer is none of redis")
        }
    }

    private static func number(_ digits: [UInt8]) throws(ScenarioError) -> Int {
        guard let number = Int(String(decoding: digits, as: UTF8.self)), number < 1 << 24 else {
            throw ScenarioError("a number of redis that is none")
        }
        return number
    }

    static func command(_ words: [String]) -> [UInt8] {
        Array(
            ("*\(words.count)\r\n"
                + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()).utf8)
    }
}
