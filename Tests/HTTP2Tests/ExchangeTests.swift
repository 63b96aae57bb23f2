import HTTP2
import Testing

/// Requests and responses between the two engines.
struct ExchangeTests {
    @Test(arguments: [nil, 1, 7])
    func requestAndResponse(pieceBytes: Int?) throws {
        let pair = try EnginePair(pieceBytes: pieceBytes)
        pair.answer = { [server = pair.server] stream, headers, body in
            try server.respond(
                stream, status: 200, headers: [HTTP2Header("apns-id", "an id")],
                body: Array((headers[":path"] ?? "").utf8) + body)
        }
        let stream = try pair.push(7, body: Array("body".utf8))
        #expect(stream == 1)
        try pair.settle()
        guard case .request(1, let headers, let body) = pair.serverEvents.first(where: isRequest)
        else { return #expect(Bool(false), "no request") }
        #expect(headers.first == HTTP2ReceivedHeader(":method", "POST"))
        #expect(headers["authorization"]?.count == 247)
        #expect(body == Array("body".utf8))
        #expect(pair.serverEvents.contains(.settingsAcknowledged))
        #expect(pair.serverEvents.contains(.closed(stream: 1, code: .noError)))
        var answer: [UInt8] = []
        for case .data(7, let bytes) in pair.clientEvents { answer += bytes }
        #expect(answer == Array("/3/device/7body".utf8))
        let heads = pair.clientEvents.compactMap { event -> (Int, String?)? in
            if case .response(7, let status, let headers) = event {
                (status, headers["apns-id"])
            } else {
                nil
            }
        }
        #expect(heads.count == 1 && heads[0] == (200, "an id"))
        #expect(pair.clientEvents.last == .finished(tag: 7))
        #expect(pair.client.openStreams == 0 && pair.server.openStreams == 0)
        #expect(!pair.client.isFinished && !pair.server.isFinished)
    }

    private func isRequest(_ event: HTTP2ServerEvent) -> Bool {
        if case .request = event { true } else { false }
    }

    @Test func largeBodiesCrossTheFlowControlWindow() throws {
        var clientSettings = HTTP2ClientSettings()
        clientSettings.maximumBodyBytes = 1 << 20
        var serverSettings = HTTP2ServerSettings()
        serverSettings.maximumBodyBytes = 1 << 20
        let pair = try EnginePair(client: clientSettings, server: serverSettings)
        let body = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        pair.answer = { [server = pair.server] stream, _, body in
            try server.respond(stream, status: 200, headers: [], body: body.reversed())
        }
        try pair.push(1, body: body)
        try pair.settle()
        var answer: [UInt8] = []
        for case .data(1, let bytes) in pair.clientEvents { answer += bytes }
        #expect(answer == body.reversed())
        #expect(pair.clientEvents.last == .finished(tag: 1))
    }

    @Test func outputNeverExceedsTheMaximum() throws {
        let pair = try EnginePair()
        try pair.push(1, body: [UInt8](repeating: 1, count: 40_000))
        var total = 0
        while true {
            let bytes = pair.client.takeOutput(maximumBytes: 1000)
            if bytes.isEmpty { break }
            #expect(bytes.count <= 1000)
            total += bytes.count
            _ = try bytes.withUnsafeBytes { try pair.server.received($0) }
        }
        #expect(total > 40_000)
        #expect(!pair.client.wantsOutput)
        #expect(pair.server.openStreams == 1)
    }

    @Test func indexingIsHonoured() throws {
        let pair = try EnginePair()
        var seen: [[String: HTTP2ReceivedHeader.Indexing]] = []
        pair.answer = { _, headers, _ in
            seen.append(Dictionary(uniqueKeysWithValues: headers.map { ($0.name, $0.indexing) }))
        }
        try pair.push(1)
        try pair.settle()
        let sentFirst = pair.client
        try sentFirst.submit(
            headers: EnginePair.pushHeaders(path: "/3/device/1")
                + [HTTP2Header("x-secret", "s", indexing: .never), HTTP2Header("x-new", "n")],
            body: [], tag: 2)
        try pair.settle()
        try #require(seen.count == 2)
        #expect(seen[0][":path"] == .never)
        #expect(seen[0]["apns-id"] == .never)
        // The library's own decision, whatever is asked for.
        #expect(seen[0]["authorization"] == .never)
        #expect(seen[0][":authority"] == .incremental)
        #expect(seen[0]["apns-topic"] == .incremental)
        #expect(seen[0][":method"] == .other)
        // From the table now.
        #expect(seen[1]["apns-topic"] == .other)
        #expect(seen[1][":path"] == .never)
        #expect(seen[1]["x-secret"] == .never)
        #expect(seen[1]["x-new"] == .incremental)
    }

    @Test func tableOfTheServerIsRespected() throws {
        var settings = HTTP2ServerSettings()
        settings.headerTableBytes = 0
        let pair = try EnginePair(server: settings)
        try pair.settle()
        var indexed = 0
        pair.answer = { _, headers, _ in
            indexed += headers.count { $0.indexing == .incremental }
        }
        for tag in 1...3 { try pair.push(UInt64(tag)) }
        try pair.settle()
        #expect(pair.requestedStreams == [1, 3, 5])
        #expect(indexed == 0)
    }

    @Test func unsendableHeadersAreRefused() throws {
        let pair = try EnginePair()
        for header in [
            HTTP2Header("x", "a\r\nb"), HTTP2Header("x y", "a"), HTTP2Header("", "a"),
            HTTP2Header("x", "a\u{0}"),
        ] {
            #expect(throws: HTTP2Error.invalidHeader(name: header.name)) {
                try pair.client.submit(
                    headers: EnginePair.pushHeaders(path: "/") + [header], body: [], tag: 1)
            }
        }
        #expect(throws: HTTP2Error.headersTooLarge) {
            let header = HTTP2Header("x", String(repeating: "y", count: 40_000))
            try pair.client.submit(
                headers: EnginePair.pushHeaders(path: "/") + [header], body: [], tag: 1)
        }
        #expect(pair.client.openStreams == 0)
        try pair.push(1)
        try pair.settle()
        #expect(throws: HTTP2Error.invalidHeader(name: "x")) {
            try pair.server.respond(1, status: 200, headers: [HTTP2Header("x", "\n")], body: [])
        }
        #expect(try pair.server.respond(1, status: 204, headers: [], body: []))
        #expect(try !pair.server.respond(1, status: 200, headers: [], body: []))
        #expect(try !pair.server.respond(99, status: 200, headers: [], body: []))
        try pair.settle()
        #expect(pair.clientEvents.last == .finished(tag: 1))
    }

    @Test func tooLargeRequestsAreReportedAndAnswered() throws {
        var settings = HTTP2ServerSettings()
        settings.maximumBodyBytes = 4096
        settings.maximumHeaderListBytes = 1000
        let pair = try EnginePair(server: settings)
        try pair.push(1, body: [UInt8](repeating: 1, count: 4096))
        try pair.push(2, body: [UInt8](repeating: 1, count: 4097))
        let filler = HTTP2Header("x", String(repeating: "y", count: 1000), indexing: .never)
        try pair.client.submit(
            headers: EnginePair.pushHeaders(path: "/") + [filler], body: [1], tag: 3)
        // More than fits the window: its upload is not at its end when the answer comes.
        try pair.push(4, body: [UInt8](repeating: 1, count: 200_000))
        try pair.settle()
        #expect(pair.requestedStreams == [1])
        var found: [HTTP2StreamID: HTTP2ServerEvent.Limit] = [:]
        for case .requestTooLarge(let stream, let headers, let limit) in pair.serverEvents {
            #expect(found.updateValue(limit, forKey: stream) == nil)
            #expect(headers[":method"] == "POST")
            try pair.server.respond(stream, status: 413, headers: [], body: Array("no".utf8))
        }
        #expect(found == [3: .body, 5: .headerList, 7: .body])
        try pair.settle()
        for tag in UInt64(2)...4 {
            #expect(pair.clientEvents.contains(.data(tag: tag, bytes: Array("no".utf8))))
            #expect(pair.clientEvents.contains(.finished(tag: tag)))
        }
        #expect(pair.server.openStreams == 1 && pair.client.openStreams == 1)
    }

    @Test func answerBeforeTheEndOfTheRequestEndsBoth() throws {
        var settings = HTTP2ServerSettings()
        settings.maximumBodyBytes = 10
        let pair = try EnginePair(server: settings)
        try pair.push(1, body: [UInt8](repeating: 1, count: 1_000_000))
        try pair.settle()
        // The server throws away the rest, so the upload goes on until it is answered.
        #expect(pair.server.openStreams == 1)
        let second = try EnginePair(server: settings)
        try second.push(1, body: [UInt8](repeating: 1, count: 1_000_000))
        try second.clientToServer()
        try second.server.respond(1, status: 413, headers: [], body: [])
        let output = second.server.takeOutput(maximumBytes: 10_000)
        // RST_STREAM of stream 1 with NO_ERROR.
        #expect(output.suffix(13) == [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0])
        #expect(second.server.openStreams == 0)
        let events = try output.withUnsafeBytes { try second.client.received($0) }
        #expect(events.last == .finished(tag: 1))
        try second.settle()
        #expect(second.client.openStreams == 0)
    }

    @Test func tooLargeResponsesAreReset() throws {
        var settings = HTTP2ClientSettings()
        settings.maximumBodyBytes = 100
        settings.maximumHeaderListBytes = 500
        let pair = try EnginePair(client: settings)
        pair.answer = { [server = pair.server] stream, _, _ in
            let header = HTTP2Header("x", String(repeating: "y", count: stream == 3 ? 500 : 10))
            let body = [UInt8](repeating: 1, count: stream == 5 ? 101 : 100)
            try server.respond(stream, status: 200, headers: [header], body: body)
        }
        for tag in UInt64(1)...3 { try pair.push(tag) }
        try pair.settle()
        let events = pair.newClientEvents()
        #expect(events.contains(.finished(tag: 1)))
        #expect(events.contains(.responseTooLarge(tag: 2)))
        #expect(events.contains(.responseTooLarge(tag: 3)))
        #expect(!events.contains(.finished(tag: 2)) && !events.contains(.finished(tag: 3)))
        #expect(pair.client.openStreams == 0)
    }
}
