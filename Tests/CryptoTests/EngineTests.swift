import Testing

@testable import Crypto

@Suite struct EngineTests {
    /// A connected pair without a delivery of its own.
    private func connected(
        _ fixture: Fixture, serverLimits: TLSLimits = TLSLimits(),
        clientLimits: TLSLimits = TLSLimits(), tickets: Int = 0, delivery: Delivery = .whole
    ) throws -> EnginePair {
        let pair = EnginePair(
            client: try fixture.client(limits: clientLimits).makeEngine(serverName: "localhost"),
            server: try fixture.server(tickets: tickets, limits: serverLimits).makeEngine(),
            delivery: delivery)
        try pair.connect()
        try #require(pair.server.isHandshakeComplete && pair.client.isHandshakeComplete)
        return pair
    }

    @Test func carriesAMebibyteBothWays() throws {
        let pair = try connected(Fixture())
        let bytes = pattern(1 << 20)
        try pair.sendToServer(bytes)
        try pair.sendToClient(bytes)
        pair.pump()
        #expect(pair.serverReceived == bytes)
        #expect(pair.clientReceived == bytes)
        #expect(pair.client.pendingOutput == 0 && pair.server.pendingOutput == 0)
    }

    /// The overhead of a TLS 1.3 record: header 5, content type 1, tag 16.
    @Test(arguments: [
        (100, 100, 1), (1, 1, 1), (16_384, 1, 1), (16_385, 1, 2), (16_383, 2, 2), (20_000, 3, 4),
    ])
    func gathersSmallPieces(size: Int, times: Int, records: Int) throws {
        let pair = try connected(Fixture())
        for _ in 0..<times { try pair.sendToServer(pattern(size)) }
        let wire = pair.client.output()
        #expect(wire.count == size * times + 22 * records)
        #expect(try pair.server.receive(wire).count == size * times)
    }

    @Test func keepsTheOutputOfEnginesApart() throws {
        let fixture = try Fixture()
        let server = try fixture.server()
        let client = try fixture.client()
        var pairs: [EnginePair] = []
        for _ in 0..<3 {
            let pair = EnginePair(
                client: try client.makeEngine(serverName: "localhost"), server: server.makeEngine())
            try pair.client.startHandshake()
            pairs.append(pair)
        }
        for pair in pairs { pair.pump() }
        for round in 0..<4 {
            for (index, pair) in pairs.enumerated() {
                try pair.sendToClient([UInt8(index), UInt8(round)])
                if round == 2 { try pair.sendToClient(pattern(17_000)) }
            }
        }
        for (index, pair) in pairs.enumerated() {
            #expect(pair.server.pendingOutput > 0)
            pair.pump()
            let id = UInt8(index)
            #expect(
                pair.clientReceived
                    == [id, 0, id, 1, id, 2] + pattern(17_000) + [id, 3])
        }
    }

    @Test func dropsTheOutputOfAnEngineThatIsGone() throws {
        let fixture = try Fixture()
        let server = try fixture.server()
        let client = try fixture.client()
        let kept = EnginePair(
            client: try client.makeEngine(serverName: "localhost"), server: server.makeEngine())
        try kept.connect()
        do {
            let gone = EnginePair(
                client: try client.makeEngine(serverName: "localhost"),
                server: server.makeEngine())
            try gone.connect()
            try gone.sendToClient(pattern(30_000))
        }
        try kept.sendToClient([7])
        kept.pump()
        #expect(kept.clientReceived == [7] && kept.clientError == nil)
    }

    @Test func allowsCallsFromTheClosures() throws {
        let fixture = try Fixture()
        let server = try fixture.server()
        let client = try fixture.client()
        let first = EnginePair(
            client: try client.makeEngine(serverName: "localhost"), server: server.makeEngine())
        let second = EnginePair(
            client: try client.makeEngine(serverName: "localhost"), server: server.makeEngine())
        try first.connect()
        try second.connect()
        try first.sendToServer([1])
        let toFirst = first.client.output()
        try first.sendToServer([2])
        let more = first.client.output()
        try second.sendToServer([9])
        let toSecond = second.client.output()
        var seen: [[UInt8]] = []
        try (toFirst + more).withUnsafeBytes { raw in
            try first.server.received(raw) { plaintext in
                seen.append(Array(plaintext))
                guard seen.count == 1 else { return }
                // Another engine of the same context receives, sends and gives output in here.
                if let inner = try? second.server.receive(toSecond) { seen.append(inner) }
                try? second.server.sendBytes([5, 6])
                try? first.server.sendBytes([3])
                second.server.takeOutput { bytes in
                    if let got = try? second.client.receive(Array(bytes)) { seen.append(got) }
                    try? first.server.sendBytes([4])
                }
            }
        }
        #expect(seen == [[1], [9], [5, 6], [2]])
        #expect(try first.client.receive(first.server.output()) == [3, 4])
    }

    @Test func refusesMoreOutputThanAllowed() throws {
        var limits = TLSLimits()
        limits.maximumPendingOutput = 50_000
        let pair = try connected(Fixture(), clientLimits: limits)
        try pair.sendToServer(pattern(30_000))
        #expect(throws: TLSError.outputFull) { try pair.sendToServer(pattern(30_000)) }
        try pair.sendToServer(pattern(10_000))
        pair.pump()
        #expect(pair.serverReceived == pattern(30_000) + pattern(10_000))
        try pair.sendToServer(pattern(30_000))
    }

    @Test func renewsItsKeys() throws {
        var limits = TLSLimits()
        limits.recordsPerKey = 3
        let pair = try connected(Fixture(), clientLimits: limits)
        var wire = 0
        for round in 0..<20 {
            try pair.sendToServer([UInt8(round)])
            let output = pair.client.output()
            wire += output.count
            pair.serverReceived += try pair.server.receive(output)
        }
        #expect(pair.serverReceived == Array(0..<20))
        // Six key updates of 5 bytes, each in a record of its own.
        #expect(wire == 20 * 23 + 6 * 27)
    }

    @Test func endsAPeerThatOnlyRenewsKeys() throws {
        var limits = TLSLimits()
        limits.recordsPerKey = 1
        let pair = try connected(Fixture(), clientLimits: limits)
        var sent = 0
        while pair.serverError == nil, sent < 1000 {
            try pair.sendToServer([1])
            sent += 1
            pair.pump()
        }
        #expect(pair.serverError == .tooManySilentRecords)
        // One update before each record but the first: the 65th is too many.
        #expect(sent == 66 && pair.serverReceived.count == 65)
        #expect(pair.client.peerClosed)
    }

    @Test func dataEarnsKeyUpdates() throws {
        var limits = TLSLimits()
        limits.recordsPerKey = 1
        let pair = try connected(Fixture(), clientLimits: limits)
        for _ in 0..<200 {
            try pair.sendToServer(pattern(16_384))
            pair.pump()
        }
        #expect(pair.serverError == nil && pair.serverReceived.count == 200 * 16_384)
    }

    @Test("records that come in two pieces each are not taken for records without data")
    func cutRecords() throws {
        let pair = try connected(Fixture(), delivery: .glued)
        for number in 0..<1_000 {
            try pair.sendToServer(pattern(100 + number % 7))
            pair.pump()
        }
        #expect(pair.serverError == nil)
        #expect(pair.serverReceived.count == (0..<1_000).reduce(0) { $0 + 100 + $1 % 7 })
    }

    @Test("records without data are counted, also where each comes in two pieces")
    func cutKeyUpdates() throws {
        var limits = TLSLimits()
        limits.recordsPerKey = 1
        let pair = try connected(Fixture(), clientLimits: limits, delivery: .glued)
        var sent = 0
        while pair.serverError == nil, sent < 1_000 {
            try pair.sendToServer([1])
            sent += 1
            pair.pump()
        }
        #expect(pair.serverError == .tooManySilentRecords)
        // A record that has begun counts until its data is there.
        #expect((65...66).contains(sent))
    }

    @Test func takesSessionTickets() throws {
        let pair = try connected(Fixture(), tickets: 1)
        try pair.sendToClient([1, 2])
        pair.pump()
        #expect(pair.clientReceived == [1, 2] && pair.clientError == nil)
    }

    @Test(arguments: [0, 4, 5, 12, 26])
    func noticesDamage(offset: Int) throws {
        let pair = try connected(Fixture())
        try pair.sendToServer([1, 2, 3, 4, 5])
        var wire = pair.client.output()
        wire[offset] ^= 0x10
        // A wrong length may wait for more, which does not come out right either.
        wire += [UInt8](repeating: 0x17, count: 64)
        #expect(throws: TLSError.self) { try pair.server.receive(wire) }
        let failure = try #require(pair.server.failure)
        #expect(pair.server.pendingOutput > 0)
        let alert = pair.server.output()
        #expect(throws: TLSError.self) { try pair.client.receive(alert) }
        guard case .alertReceived = pair.client.failure else {
            Issue.record("no alert: \(String(describing: pair.client.failure))")
            return
        }
        // It stays broken.
        #expect(throws: failure) { try pair.server.sendBytes([1]) }
        #expect(throws: failure) { try pair.server.receive([1]) }
        #expect(pair.server.output().isEmpty)
    }

    @Test func refusesReplayedRecords() throws {
        let pair = try connected(Fixture())
        try pair.sendToServer([1])
        let wire = pair.client.output()
        #expect(try pair.server.receive(wire) == [1])
        #expect(throws: TLSError.self) { try pair.server.receive(wire) }
    }

    @Test func ignoresWhatFollowsCloseNotify() throws {
        let pair = try connected(Fixture())
        pair.client.close()
        let wire = pair.client.output()
        #expect(try pair.server.receive(wire + pattern(500)).isEmpty)
        #expect(pair.server.peerClosed && pair.server.failure == nil)
        #expect(try pair.server.receive(pattern(500)).isEmpty)
    }

    @Test func forgetsUnsentDataAfterAnError() throws {
        let pair = try connected(Fixture())
        try pair.sendToServer(pattern(50))
        #expect(throws: TLSError.self) { try pair.client.receive(pattern(100)) }
        _ = pair.client.output()
        #expect(pair.client.pendingOutput == 0)
    }

    @Test func keepsPlaintextBeforeAnError() throws {
        let pair = try connected(Fixture())
        try pair.sendToServer([1, 2])
        let good = pair.client.output()
        var got: [UInt8] = []
        #expect(throws: TLSError.self) {
            try (good + pattern(100)).withUnsafeBytes { raw in
                try pair.server.received(raw) { got += Array($0) }
            }
        }
        #expect(got == [1, 2])
    }
}
