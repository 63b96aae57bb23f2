import APNsSimulator
import Crypto
import EventLoop
import FoundationEssentials
import Glibc

/// mosquitto, a broker of MQTT 3.1.1: a device subscribes to a topic of its own, and each message
/// is acknowledged on both sides (quality of service 1). Nothing is on disk before the answer.
final class MosquittoTarget: PublishTarget {
    static let programName = "mosquitto"
    let name = "mosquitto"
    let tellsMetrics = false
    private let apiPort: UInt16
    let dialect = BackendDialect(greeting: MQTTPacket.connect("")) {
        bytes throws(ScenarioError) in
        guard let (packet, length) = try MQTTPacket.first(of: bytes) else { return nil }
        let isTaken =
            packet.kind == .connectAnswer && packet.body == [0, 0]
            || packet.kind == .publishAnswer
        return (HTTPCall.Answer(status: isTaken ? 200 : 500, body: packet.body), length)
    }
    private let devicePort: UInt16
    private let loop: Loop
    private let tls: TLSContext
    private let group: Int
    private let program: PeerProgram

    /// - Parameters:
    ///   - group: so many devices, the first, are told of what is for a group.
    ///   - folder: holds `server.pem` and `server.key`.
    init(loop: Loop, program: URL, folder: URL, tls: TLSContext, group: Int) throws {
        self.loop = loop
        self.tls = tls
        self.group = group
        apiPort = try PeerProgram.freePort()
        devicePort = try PeerProgram.freePort()
        let file = folder.appendingPathComponent("mosquitto.conf")
        // Otherwise root's becomes another user, who may not read the key.
        let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? "root"
        let settings = """
            user \(user)
            allow_anonymous true
            persistence false
            max_inflight_messages 0
            max_queued_messages 0
            set_tcp_nodelay true
            listener \(apiPort) 127.0.0.1
            listener \(devicePort) 127.0.0.1
            certfile \(folder.appendingPathComponent("server.pem").path)
            keyfile \(folder.appendingPathComponent("server.key").path)
            tls_version tlsv1.3

            """
        try Data(settings.utf8).write(to: file)
        self.program = try PeerProgram(
            program, arguments: ["-c", file.path], folder: folder, ports: [apiPort, devicePort])
    }

    var processes: [Int32]? { program.process.map { [$0] } }
    var apiPorts: [UInt16] { [apiPort] }
    func lastLogLines() -> String { program.lastLogLines() }
    func stop() { program.stop() }
    func preparation(for recipient: Recipient) -> [[UInt8]] { [] }

    private static let groupTopic = "g"
    private static func topic(of device: Int) -> String { "d/\(device)" }

    func publish(_ text: String, number: UInt64, to recipient: Recipient) -> [UInt8] {
        let topic =
            switch recipient {
            case .device(let number): Self.topic(of: number)
            case .group: Self.groupTopic
            }
        return MQTTPacket.publish(
            topic, Array(text.utf8), number: UInt16(1 + number % UInt64(UInt16.max)))
    }

    func connect(
        _ device: Int, from source: String, handler: @escaping (TargetEvent) -> Void
    ) -> any TargetDevice {
        let topics = [Self.topic(of: device)] + (device < group ? [Self.groupTopic] : [])
        return PeerDevice(
            socket: LoadSocket(loop: loop, port: devicePort, source: source, tls: tls),
            opening: MQTTPacket.connect("device-\(device)"), handler: handler
        ) { bytes throws(ScenarioError) in
            guard let (packet, length) = try MQTTPacket.first(of: bytes) else { return nil }
            var step = PeerDevice.Step(bytes: length)
            switch packet.kind {
            case .connectAnswer: step.answer = MQTTPacket.subscribe(topics)
            case .subscribeAnswer: step.event = .ready
            case .publish:
                let message = try packet.message()
                step.answer = MQTTPacket.acknowledgement(of: message.number)
                step.event = .message(message.text)
            case .publishAnswer: break
            }
            return step
        }
    }
}

/// A packet of MQTT 3.1.1 (OASIS): the few that this tool and the broker exchange.
struct MQTTPacket: Equatable {
    enum Kind: UInt8 {
        case connectAnswer = 2
        case publish = 3
        case publishAnswer = 4
        case subscribeAnswer = 9
    }

    let kind: Kind
    let body: [UInt8]

    /// The first packet of what has come, and its bytes; `nil`: it is not whole.
    static func first(
        of bytes: [UInt8]
    ) throws(ScenarioError) -> (packet: MQTTPacket, bytes: Int)? {
        var (length, at) = (0, 1)
        while true {
            guard at < bytes.count else { return nil }
            length |= Int(bytes[at] & 0x7F) << (7 * (at - 1))
            at += 1
            if bytes[at - 1] < 0x80 { break }
            guard at < 5 else { throw ScenarioError("a length of MQTT that is none") }
        }
        guard bytes.count >= at + length else { return nil }
        guard let kind = Kind(rawValue: bytes[0] >> 4) else {
            throw ScenarioError("a packet of MQTT that nobody asked for: \(bytes[0])")
        }
        return (MQTTPacket(kind: kind, body: Array(bytes[at..<(at + length)])), at + length)
    }

    /// Of a publish with quality of service 1.
    func message() throws(ScenarioError) -> (number: UInt16, text: [UInt8]) {
        let topic = body.count > 1 ? Int(body[0]) << 8 | Int(body[1]) : 0
        guard body.count >= topic + 4 else { throw ScenarioError("a message of MQTT cut short") }
        let number = UInt16(body[topic + 2]) << 8 | UInt16(body[topic + 3])
        return (number, Array(body[(topic + 4)...]))
    }

    /// - Parameter name: without one the broker makes one.
    static func connect(_ name: String) -> [UInt8] {
        // Protocol level 4, a clean session, no keepalive.
        packet(0x10, string("MQTT") + [4, 2, 0, 0] + string(name))
    }

    static func subscribe(_ topics: [String]) -> [UInt8] {
        packet(0x82, [0, 1] + topics.flatMap { string($0) + [1] })
    }

    static func publish(_ topic: String, _ text: [UInt8], number: UInt16) -> [UInt8] {
        packet(0x32, string(topic) + halves(number) + text)
    }

    static func acknowledgement(of number: UInt16) -> [UInt8] { packet(0x40, halves(number)) }

    private static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] {
        var bytes = [first]
        var length = body.count
        repeat {
            bytes.append(UInt8(length & 0x7F) | (length > 0x7F ? 0x80 : 0))
            length >>= 7
        } while length > 0
        return bytes + body
    }

    private static func halves(_ number: UInt16) -> [UInt8] {
        [UInt8(number >> 8), UInt8(number & 0xFF)]
    }

    private static func string(_ text: String) -> [UInt8] {
        halves(UInt16(text.utf8.count)) + Array(text.utf8)
    }
}
