import HTTP2
import Testing

/// SETTINGS, GOAWAY, resets, PING, and peers that are none.
struct ConnectionTests {
    @Test func clientFollowsTheLimit() throws {
        var clientSettings = HTTP2ClientSettings()
        clientSettings.assumedConcurrentStreams = 3
        var serverSettings = HTTP2ServerSettings()
        serverSettings.maximumConcurrentStreams = 10
        let pair = try EnginePair(client: clientSettings, server: serverSettings)
        #expect(pair.client.remoteMaximumConcurrentStreams == nil)
        #expect(try pair.pushAsManyAsAllowed(from: 0) == 3)
        try pair.settle()
        #expect(pair.client.remoteMaximumConcurrentStreams == 10)
        #expect(pair.clientEvents.contains(.settings(maximumConcurrentStreams: 10)))
        #expect(try pair.pushAsManyAsAllowed(from: 3) == 7)
        try pair.settle()
        #expect(pair.requestedStreams.count == 10)

        try pair.server.setMaximumConcurrentStreams(1)
        try pair.settle()
        #expect(pair.client.remoteMaximumConcurrentStreams == 1)
        #expect(try pair.pushAsManyAsAllowed(from: 10) == 0)
        for stream in pair.requestedStreams {
            try pair.server.respond(stream, status: 200, headers: [], body: [])
        }
        try pair.settle()
        #expect(try pair.pushAsManyAsAllowed(from: 10) == 1)
        try pair.server.setMaximumConcurrentStreams(5)
        try pair.settle()
        #expect(try pair.pushAsManyAsAllowed(from: 11) == 4)
        try pair.settle()
        #expect(pair.requestedStreams.count == 15)
        #expect(!pair.client.isFinished && !pair.server.isFinished)
    }

    @Test func streamsAboveAnUnacknowledgedLimitAreRefused() throws {
        var settings = HTTP2ServerSettings()
        settings.maximumConcurrentStreams = 1
        let pair = try EnginePair(server: settings)
        // Before any SETTINGS have arrived, as h2load does.
        for tag in UInt64(1)...4 { try pair.push(tag) }
        try pair.settle()
        #expect(pair.requestedStreams == [1])
        #expect(pair.serverEvents.filter { $0 == .refused(stream: 3) }.count == 1)
        for tag in UInt64(2)...4 {
            let refusal = HTTP2ClientEvent.reset(tag: tag, code: .refusedStream, refused: true)
            #expect(pair.clientEvents.contains(refusal))
        }
        #expect(!pair.server.isFinished)
        try pair.server.respond(1, status: 200, headers: [], body: [])
        try pair.settle()
        #expect(pair.clientEvents.last == .finished(tag: 1))

        // Lowered while requests are on their way.
        try pair.server.setMaximumConcurrentStreams(4)
        try pair.settle()
        for tag in UInt64(11)...14 { try pair.push(tag) }
        try pair.server.setMaximumConcurrentStreams(1)
        try pair.clientToServer()
        try pair.settle()
        let refused = pair.clientEvents.filter {
            if case .reset(11..., .refusedStream, true) = $0 { true } else { false }
        }
        #expect(refused.count == 3)
        #expect(!pair.server.isFinished && !pair.client.isFinished)
    }

    @Test func goAwayInTheMiddleOfOpenStreams() throws {
        let pair = try EnginePair()
        for tag in UInt64(1)...6 { try pair.push(tag) }
        try pair.settle()
        let debug = Array(#"{"reason":"Shutdown"}"#.utf8)
        try pair.server.goAway(lastStream: 5, code: .noError, debugData: debug)
        try pair.settle()
        let events = pair.newClientEvents()
        #expect(
            events.suffix(2) == [
                .goAway(lastStream: 5, code: .noError, debugData: debug),
                .unprocessed(tags: [4, 5, 6]),
            ])
        #expect(throws: HTTP2Error.connectionEnding) { try pair.push(7) }
        // The streams below go on.
        #expect(!pair.client.isFinished && !pair.server.isFinished)
        for stream in [1, 3, 5] as [HTTP2StreamID] {
            #expect(try pair.server.respond(stream, status: 200, headers: [], body: [1]))
        }
        #expect(try !pair.server.respond(7, status: 200, headers: [], body: []))
        try pair.settle()
        let finished = pair.clientEvents.filter {
            if case .finished = $0 { true } else { false }
        }
        #expect(finished == [.finished(tag: 1), .finished(tag: 2), .finished(tag: 3)])
        #expect(pair.client.isFinished && pair.server.isFinished)
        #expect(pair.client.openStreams == 0)
    }

    @Test func goAwayReturnsRequestsThatWereNeverSent() throws {
        var settings = HTTP2ServerSettings()
        settings.maximumConcurrentStreams = 4
        let pair = try EnginePair(server: settings)
        try pair.settle()
        for tag in UInt64(1)...2 { try pair.push(tag) }
        try pair.settle()
        // The limit falls after they were submitted: they stay in the client.
        for tag in UInt64(3)...4 { try pair.push(tag) }
        try pair.server.setMaximumConcurrentStreams(1)
        try pair.serverToClient()
        try pair.settle()
        #expect(pair.requestedStreams == [1, 3])
        try pair.server.goAway(code: .noError, debugData: [])
        try pair.settle()
        #expect(pair.newClientEvents().last == .unprocessed(tags: [3, 4]))
        for stream in [1, 3] as [HTTP2StreamID] {
            try pair.server.respond(stream, status: 200, headers: [], body: [])
        }
        try pair.settle()
        #expect(
            pair.clientEvents.filter { if case .response = $0 { false } else { true } }
                == [.finished(tag: 1), .finished(tag: 2)])
        #expect(pair.client.isFinished)
    }

    @Test func clientEndsTheConnection() throws {
        let pair = try EnginePair()
        try pair.push(1)
        try pair.settle()
        try pair.client.goAway()
        #expect(throws: HTTP2Error.connectionEnding) { try pair.push(2) }
        try pair.settle()
        #expect(
            pair.serverEvents.contains(.goAway(lastStream: 0, code: .noError, debugData: [])))
        #expect(!pair.client.isFinished)
        try pair.server.respond(1, status: 200, headers: [], body: [])
        try pair.settle()
        #expect(pair.clientEvents.last == .finished(tag: 1))
        #expect(pair.client.isFinished)
    }

    @Test func resetsOfBothSides() throws {
        let pair = try EnginePair()
        for tag in UInt64(1)...4 { try pair.push(tag) }
        pair.client.reset(7)
        pair.client.reset(7)
        pair.client.reset(77)
        try pair.settle()
        pair.client.reset(1)
        pair.server.resetStream(3, code: .refusedStream)
        pair.server.resetStream(5, code: .internalError)
        pair.server.resetStream(55, code: .internalError)
        try pair.settle()
        let events = pair.newClientEvents().filter {
            if case .settings = $0 { false } else { true }
        }
        #expect(
            events == [
                .reset(tag: 2, code: .refusedStream, refused: true),
                .reset(tag: 3, code: .internalError, refused: false),
            ])
        #expect(pair.serverEvents.contains(.closed(stream: 1, code: .cancel)))
        #expect(pair.client.openStreams == 0 && pair.server.openStreams == 0)
        #expect(try !pair.server.respond(1, status: 200, headers: [], body: []))
    }

    @Test func ping() throws {
        let pair = try EnginePair()
        try pair.client.ping(opaque: 0x0102_0304_0506_0708)
        try pair.settle()
        #expect(pair.serverEvents.contains(.ping(opaque: 0x0102_0304_0506_0708)))
        #expect(pair.clientEvents.last == .pingAnswered(opaque: 0x0102_0304_0506_0708))
    }

    @Test func arguments() throws {
        let pair = try EnginePair()
        try pair.settle()
        #expect(throws: HTTP2Error.invalidArgument) {
            try pair.server.goAway(lastStream: 2, code: .noError)
        }
        #expect(throws: HTTP2Error.invalidArgument) {
            try pair.server.goAway(code: .noError, debugData: [UInt8](repeating: 1, count: 20_000))
        }
        #expect(!pair.server.isFinished)
    }

    @Test func priorityIsSeen() throws {
        let pair = try EnginePair()
        try pair.settle()
        // PRIORITY, stream 3 depends on 1 with weight 16.
        let frame: [UInt8] = [0, 0, 5, 2, 0, 0, 0, 0, 3, 0, 0, 0, 1, 15]
        let events = try frame.withUnsafeBytes { try pair.server.received($0) }
        #expect(events == [.priorityFrameSeen(stream: 3)])
    }

    @Test func violationEndsTheConnection() throws {
        let pair = try EnginePair()
        try pair.push(1)
        try pair.settle()
        // A SETTINGS frame on a stream (RFC 9113 6.5).
        let frame: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 1]
        let events = try frame.withUnsafeBytes { try pair.server.received($0) }
        #expect(
            events.contains { if case .violation = $0 { true } else { false } })
        try pair.settle()
        #expect(pair.server.isFinished)
        let goAways = pair.clientEvents.filter {
            if case .goAway(_, .protocolError, _) = $0 { true } else { false }
        }
        #expect(goAways.count == 1)
    }

    @Test func peerThatSpeaksSomethingElse() throws {
        let server = try HTTP2ServerEngine()
        let request = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        #expect(throws: HTTP2Error.self) {
            try request.withUnsafeBytes { try server.received($0) }
        }
        #expect(throws: HTTP2Error.self) {
            try request.withUnsafeBytes { try server.received($0) }
        }
        _ = server.takeOutput(maximumBytes: 1000)
        #expect(server.isFinished)
        #expect(!server.wantsOutput)
    }

    @Test(arguments: 0..<200)
    func randomBytesDoNotTrap(seed: UInt64) throws {
        var generator = SplitMix(state: seed)
        let client = try HTTP2ClientEngine()
        let server = try HTTP2ServerEngine()
        for tag in UInt64(0)..<5 {
            try client.submit(
                headers: EnginePair.pushHeaders(path: "/"), body: [1, 2, 3], tag: tag)
        }
        var toServer = client.takeOutput(maximumBytes: 10_000)
        var toClient = server.takeOutput(maximumBytes: 10_000)
        // Frames with the right shape and random contents get further than noise.
        for _ in 0..<40 {
            toServer += randomFrame(&generator)
            toClient += randomFrame(&generator)
        }
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let at = Int.random(in: 24..<toServer.count, using: &generator)
            toServer[at] = UInt8.random(in: 0...255, using: &generator)
        }
        do throws(HTTP2Error) {
            for event in try received(server, toServer) {
                if case .request(let stream, _, let body) = event {
                    try server.respond(stream, status: 200, headers: [], body: body)
                }
            }
        } catch {
            #expect(server.takeOutput(maximumBytes: 1) == [] || server.wantsOutput)
        }
        do throws(HTTP2Error) { _ = try received(client, toClient) } catch {}
        for _ in 0..<100 {
            _ = server.takeOutput(maximumBytes: 10_000)
            _ = client.takeOutput(maximumBytes: 10_000)
        }
        #expect(!server.wantsOutput)
        #expect(!client.wantsOutput)
    }

    private func received(
        _ server: HTTP2ServerEngine, _ bytes: [UInt8]
    ) throws(HTTP2Error) -> [HTTP2ServerEvent] {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(HTTP2Error) in try server.received(bytes) }
        }
        return try result.get()
    }

    private func received(
        _ client: HTTP2ClientEngine, _ bytes: [UInt8]
    ) throws(HTTP2Error) -> [HTTP2ClientEvent] {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(HTTP2Error) in try client.received(bytes) }
        }
        return try result.get()
    }

    private func randomFrame(_ generator: inout SplitMix) -> [UInt8] {
        let count = Int.random(in: 0...60, using: &generator)
        let type = UInt8.random(in: 0...10, using: &generator)
        let flags: [UInt8] = [0, 1, 4, 5, 8, 0x20, 0x25]
        let stream = UInt8.random(in: 0...9, using: &generator)
        return [0, 0, UInt8(count), type, flags.randomElement(using: &generator) ?? 0]
            + [0, 0, 0, stream]
            + (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
