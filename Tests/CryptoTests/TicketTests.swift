import Testing

@testable import Crypto

/// Tickets by which a client goes on with its session, sealed by keys that servers share.
@Suite struct TicketTests {
    private let fixture: Fixture
    private let client: TLSContext

    init() throws {
        fixture = try Fixture()
        client = try fixture.client(keepsSessions: true)
    }

    private func key(_ number: UInt8) -> TLSTicketKey {
        TLSTicketKey(
            name: [UInt8](repeating: number, count: 16),
            secret: [UInt8](repeating: number &+ 100, count: 64))
    }

    private func server(_ keys: [TLSTicketKey]) throws -> TLSContext {
        let server = try fixture.server()
        server.use(ticketKeys: keys, lifetime: 3_600)
        return server
    }

    /// Connects and exchanges data; whether it was resumed, and what to go on with.
    private func connect(
        to server: TLSContext, with session: TLSSession?
    ) throws -> (isResumed: Bool, session: TLSSession?) {
        let pair = EnginePair(
            client: try client.makeEngine(serverName: "localhost", resuming: session),
            server: server.makeEngine())
        try pair.connect()
        try pair.sendToServer([1])
        try pair.sendToClient([2])
        pair.pump()
        #expect(pair.serverReceived == [1] && pair.clientReceived == [2])
        #expect(pair.client.isResumed == pair.server.isResumed)
        #expect(pair.client.negotiatedProtocol == "rouse/1")
        return (pair.client.isResumed, pair.client.takeSession())
    }

    @Test("a client goes on on any server that has the key, and as often as it comes")
    func sharedKeys() throws {
        let (first, second) = (try server([key(1)]), try server([key(1)]))
        var came = try connect(to: first, with: nil)
        #expect(!came.isResumed && came.session != nil)
        for server in [second, first, second] {
            came = try connect(to: server, with: came.session)
            #expect(came.isResumed && came.session != nil)
        }
    }

    @Test(
        "a key that was replaced still opens its tickets; one that is gone does not, and harms not")
    func rotation() throws {
        let server = try server([key(1)])
        let old = try connect(to: server, with: nil).session
        server.use(ticketKeys: [key(2), key(1)], lifetime: 3_600)
        let renewed = try connect(to: server, with: old)
        #expect(renewed.isResumed)
        server.use(ticketKeys: [key(3), key(2)], lifetime: 3_600)
        // What came with the renewed connection was sealed by the second key.
        #expect(try connect(to: server, with: renewed.session).isResumed)
        server.use(ticketKeys: [key(3)], lifetime: 3_600)
        #expect(try !connect(to: server, with: old).isResumed)
    }

    @Test("7 days after the whole handshake a ticket that follows from it is not taken")
    func chain() throws {
        let server = try server([key(1)])
        let day = 86_400
        var now = 1_000_000_000
        server.ticketKeys.clock = { now }
        var came = try connect(to: server, with: nil)
        for _ in 1..<7 {
            now += day
            came = try connect(to: server, with: came.session)
            #expect(came.isResumed)
        }
        now += day - 1
        came = try connect(to: server, with: came.session)
        #expect(came.isResumed)
        now += 1
        // The client is served all the same, and begins another chain.
        came = try connect(to: server, with: came.session)
        #expect(!came.isResumed && came.session != nil)
        now += day
        came = try connect(to: server, with: came.session)
        #expect(came.isResumed)
        // A clock that was set back tells nothing of a ticket's age.
        now -= 2 * day
        #expect(try !connect(to: server, with: came.session).isResumed)
    }

    @Test("without keys nothing is offered or taken")
    func off() throws {
        let session = try connect(to: try server([key(1)]), with: nil).session
        let came = try connect(to: try server([]), with: session)
        #expect(!came.isResumed && came.session == nil)
        #expect(try connect(to: try fixture.server(), with: nil).session == nil)
    }

    @Test("a ticket of another key with the same name is refused, and the client served")
    func forged() throws {
        let session = try connect(to: try server([key(1)]), with: nil).session
        let other = TLSTicketKey(
            name: [UInt8](repeating: 1, count: 16), secret: [UInt8](repeating: 9, count: 64))
        #expect(try !connect(to: try server([other]), with: session).isResumed)
    }
}
