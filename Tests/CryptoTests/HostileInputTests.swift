import Testing

@testable import Crypto

/// What reaches an open port besides TLS.
@Suite struct HostileInputTests {
    @Test(arguments: [
        Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8),
        Array("CONNECT example.org:443 HTTP/1.1\r\n\r\n".utf8),
        Array("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n".utf8),
        [UInt8](repeating: 0, count: 64),
        [UInt8](repeating: 0xFF, count: 64),
    ])
    func refusesWhatIsNotTLS(bytes: [UInt8]) throws {
        let context = try Fixture().server()
        for piece in [bytes.count, 1] {
            let server = context.makeEngine()
            var failure: (any Error)?
            for start in stride(from: 0, to: bytes.count, by: piece) {
                do {
                    #expect(try server.receive(Array(bytes[start..<start + piece])).isEmpty)
                } catch {
                    failure = error
                    break
                }
            }
            #expect(failure != nil && server.failure != nil)
            #expect(!server.isHandshakeComplete)
        }
    }

    @Test func namesPlainHTTP() throws {
        let server = try Fixture().server().makeEngine()
        let request = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        #expect(throws: TLSError.notTLS) { try server.receive(request) }
    }

    /// A record that looks like TLS gets an alert: handshake type 0xEE does not exist.
    @Test func answersBadHandshakesWithAnAlert() throws {
        let server = try Fixture().server().makeEngine()
        let record: [UInt8] = [22, 3, 1, 0, 4, 0xEE, 0, 0, 0]
        #expect(throws: TLSError.self) { try server.receive(record) }
        let alert = server.output()
        #expect(alert.count == 7 && alert.first == 21)
    }

    @Test func refusesRecordsThatAreTooLong() throws {
        let server = try Fixture().server().makeEngine()
        #expect(throws: TLSError.self) { try server.receive([22, 3, 1, 0xFF, 0xFF, 1]) }
        #expect(server.output().first == 21)
    }

    /// Every single-byte change of a ClientHello ends in an error or in a handshake that goes on;
    /// nothing traps and nothing becomes plaintext.
    @Test func survivesDamagedClientHellos() throws {
        let fixture = try Fixture()
        let server = try fixture.server()
        let client = try fixture.client().makeEngine(serverName: "localhost")
        try client.startHandshake()
        let hello = client.output()
        try #require(hello.count > 100)
        var refused = 0
        for offset in hello.indices {
            var damaged = hello
            damaged[offset] ^= 0xFF
            let engine = server.makeEngine()
            do {
                #expect(try engine.receive(damaged).isEmpty)
            } catch {
                refused += 1
            }
            #expect(!engine.isHandshakeComplete)
            _ = engine.output()
        }
        #expect(refused > 20)
    }

    @Test func clientRefusesWhatIsNotTLS() throws {
        let client = try Fixture().client().makeEngine(serverName: "localhost")
        try client.startHandshake()
        _ = client.output()
        let answer = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        #expect(throws: TLSError.notTLS) { try client.receive(answer) }
    }

    /// An error of one connection must not be blamed on the next: the queue is the thread's.
    @Test func errorsDoNotLeakBetweenConnections() throws {
        let fixture = try Fixture()
        let server = try fixture.server()
        let pair = EnginePair(
            client: try fixture.client().makeEngine(serverName: "localhost"),
            server: server.makeEngine())
        try pair.client.startHandshake()
        for _ in 0..<3 {
            let bad = server.makeEngine()
            #expect(throws: TLSError.self) { try bad.receive([22, 3, 1, 0xFF, 0xFF, 1]) }
        }
        pair.pump()
        #expect(pair.server.isHandshakeComplete && pair.serverError == nil)
        #expect(pair.clientError == nil)
    }
}
