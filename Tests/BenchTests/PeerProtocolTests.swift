import Testing

@testable import Scenario

/// What the measured brokers speak: cut anywhere it waits for the rest, and takes no more than
/// its own.
@Suite struct PeerProtocolTests {
    @Test("packets of MQTT, short and long, one after the other", arguments: [0, 100, 127, 20_000])
    func packets(size: Int) throws {
        let text = [UInt8](repeating: 65, count: size)
        let one = MQTTPacket.publish("d/7", text, number: 300)
        let bytes = one + MQTTPacket.acknowledgement(of: 300)
        for cut in Set([0, 1, 2, 3, one.count / 2, one.count - 1]) where cut < one.count {
            #expect(try MQTTPacket.first(of: Array(bytes[..<cut])) == nil)
        }
        let (packet, length) = try #require(try MQTTPacket.first(of: bytes))
        let message = try packet.message()
        #expect(packet.kind == .publish && length == one.count)
        #expect(message.number == 300 && message.text == text)
        let rest = try #require(try MQTTPacket.first(of: Array(bytes[length...])))
        #expect(rest.packet == MQTTPacket(kind: .publishAnswer, body: [1, 44]) && rest.bytes == 4)
    }

    @Test("what is no packet of MQTT")
    func noPackets() {
        #expect(throws: ScenarioError.self) {
            try MQTTPacket.first(of: [0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0x01])
        }
        // A server does not send CONNECT.
        #expect(throws: ScenarioError.self) { try MQTTPacket.first(of: [0x10, 0]) }
        #expect(throws: ScenarioError.self) {
            try MQTTPacket(kind: .publish, body: [0, 9, 65, 65]).message()
        }
    }

    @Test("what redis answers to a publish, cut anywhere")
    func answers() throws {
        let bytes = Array("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$3\r\n1-0\r\n:2\r\n+next".utf8)
        let whole = bytes.count - 5
        let parts: [RESPValue] = [.text(Array("1-0".utf8)), .number(2)]
        var at = 0
        for value in [.text(Array("OK".utf8)), .text(Array("QUEUED".utf8))] as [RESPValue] {
            let found = try #require(try RESPValue.first(of: bytes, from: at))
            #expect(found.value == value)
            at = found.end
        }
        at = try #require(try RESPValue.first(of: bytes, from: at)).end
        for cut in at..<whole {
            #expect(try RESPValue.first(of: Array(bytes[..<cut]), from: at) == nil, "\(cut)")
        }
        let last = try #require(try RESPValue.first(of: bytes, from: at))
        #expect(last.value == .array(parts) && last.end == whole)
    }

    @Test("what is no answer of redis")
    func noAnswers() throws {
        for text in ["?x\r\n", "$x\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"] {
            #expect(throws: ScenarioError.self, "\(text)") {
                try RESPValue.first(of: Array(text.utf8), from: 0)
            }
        }
        let failure = try #require(try RESPValue.first(of: Array("-ERR no\r\n".utf8), from: 0))
        #expect(failure.value == .failure(Array("ERR no".utf8)))
        #expect(RESPValue.command(["a", "bc"]) == Array("*2\r\n$1\r\na\r\n$2\r\nbc\r\n".utf8))
    }
}
