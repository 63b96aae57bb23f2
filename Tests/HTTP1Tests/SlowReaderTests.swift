import Glibc
import HTTP1
import Testing

/// Clients that ask for much and take it slowly, or not at all.
struct SlowReaderTests {
    private static let large = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n"
    private static let small = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

    private let limits = HTTPLimits(
        connections: 4, requestDeadlineSeconds: 600, headDeadlineSeconds: 600,
        patienceMilliseconds: 50)

    /// - Parameter bytes: of the large answer: more than the kernel holds for a reader.
    private func fixture(_ limits: HTTPLimits, bytes: Int) throws -> Fixture {
        let body = [UInt8](repeating: 0x61, count: bytes)
        return try Fixture(limits: limits) { request in
            HTTPResponse(status: 200, body: request.path == "/large" ? body : [])
        }
    }

    /// Connections whose large answers are under way.
    private func readers(
        _ count: Int, at fixture: Fixture, receiveBuffer: Int32 = 4096
    ) throws -> [RawClient] {
        let before = fixture.requests.count
        let clients = try (0..<count).map { _ in
            let client = try fixture.connect(receiveBuffer: receiveBuffer)
            client.send(Self.large)
            return client
        }
        #expect(fixture.pump { fixture.requests.count == before + count })
        return clients
    }

    @Test(
        "answers that are not taken, or byte by byte, do not keep out whoever is quick",
        arguments: [0, 1])
    func quickOnesGetTheirPlaces(bytesAtOnce: Int) throws {
        let fixture = try fixture(limits, bytes: 16 << 20)
        let slow = try readers(4, at: fixture)
        let quick = try fixture.connect()
        quick.send(Self.small)
        #expect(
            fixture.pump {
                if bytesAtOnce > 0 { for client in slow { _ = client.read(bytesAtOnce) } }
                return quick.isClosed
            })
        #expect(quick.received.hasPrefix("HTTP/1.1 200 "))
    }

    @Test("clients that ask again and again keep no place that somebody waits for")
    func placesGoRound() throws {
        let fixture = try Fixture(limits: limits)
        let again = "GET /again HTTP/1.1\r\nHost: h\r\n\r\n"
        let clients = try (0..<4).map { _ in try fixture.connect() }
        for client in clients { client.send(again) }
        #expect(fixture.pump { clients.allSatisfy { $0.received.contains("200") } })
        #expect(clients.allSatisfy { !$0.isClosed })
        let other = try fixture.connect()
        other.send(Self.small)
        #expect(
            fixture.pump {
                for client in clients where (client.read(4_096) ?? 0) == 0 { client.send(again) }
                return other.isClosed
            })
        #expect(other.received.hasPrefix("HTTP/1.1 200 "))
    }

    @Test("an answer that moves keeps its place while those that do not are ended")
    func progressKeepsThePlace() throws {
        var limits = limits
        limits.patienceMilliseconds = 1_000
        let bytes = 64 << 20
        let fixture = try fixture(limits, bytes: bytes)
        let reader = try readers(1, at: fixture, receiveBuffer: 65_536)[0]
        let slow = try readers(3, at: fixture)
        let quick = try fixture.connect()
        quick.send(Self.small)
        var taken = 0
        #expect(
            fixture.pump {
                usleep(2_000)
                taken += reader.read(65_536) ?? 0
                return quick.isClosed
            })
        #expect(quick.received.hasPrefix("HTTP/1.1 200 "))
        #expect(
            fixture.pump {
                taken += reader.read(1 << 20) ?? 0
                return taken > bytes
            })
        #expect(slow.contains { $0.isClosed })
    }

    @Test("while there is room, or nobody waits for a place, a slow reader is let be")
    func slownessAloneEndsNobody() throws {
        let bytes = 4 << 20
        let fixture = try fixture(limits, bytes: bytes)
        var slow = try readers(3, at: fixture, receiveBuffer: 65_536)
        func isWhole(_ client: RawClient) -> Bool {
            var taken = 0
            return fixture.pump {
                guard let count = client.read(1 << 20) else { return true }
                taken += count
                return taken > bytes
            } && taken > bytes
        }
        for _ in 0..<20 {
            usleep(10_000)
            #expect(try fixture.exchange(Self.small).hasPrefix("HTTP/1.1 200 "))
        }
        #expect(isWhole(slow.removeLast()))
        slow += try readers(2, at: fixture, receiveBuffer: 65_536)
        var turns = 0
        #expect(
            fixture.pump {
                usleep(10_000)
                turns += 1
                return turns == 50
            })
        #expect(slow.allSatisfy { isWhole($0) })
    }
}
