import APNsSimulator
import Crypto
import HTTP2

/// A provider for tests: one blocking connection with TLS and HTTP/2.
final class Provider {
    struct Answer: Equatable {
        var status: Int
        var id: String?
        var body: String
    }

    let engine: HTTP2ClientEngine
    private let socket: TLSSocket
    private(set) var answers: [UInt64: Answer] = [:]
    private(set) var resets: [UInt64: (code: HTTP2ErrorCode, refused: Bool)] = [:]
    private(set) var finished: Set<UInt64> = []
    private(set) var limits: [UInt32] = []
    private(set) var goAway: (last: Int32, code: HTTP2ErrorCode, debug: String)?
    private(set) var unprocessed: [UInt64] = []
    private(set) var pings = 0
    private(set) var isEnded = false
    private var lastTag: UInt64 = 0

    init(
        port: UInt16, protocols: [String] = ["h2"], authority: String,
        certificate: IssuedCertificate? = nil, settings: HTTP2ClientSettings = HTTP2ClientSettings()
    ) throws {
        engine = try HTTP2ClientEngine(settings: settings)
        socket = try TLSSocket(
            port: port, protocols: protocols, authority: authority, certificate: certificate)
        try flush()
    }

    /// Sends a push, without waiting; its tag.
    func push(
        to token: String, topic: String = CheckFixture.topic, authorization: String?,
        headers: [(String, String)] = [],
        body: String = #"{"aps":{"content-available":1}}"#
    ) throws -> UInt64 {
        lastTag += 1
        var all = [
            HTTP2Header(":method", "POST"), HTTP2Header(":scheme", "https"),
            HTTP2Header(":authority", "localhost"),
            HTTP2Header(":path", "/3/device/" + token, indexing: .never),
            HTTP2Header("apns-topic", topic),
            HTTP2Header("apns-push-type", "background"), HTTP2Header("apns-priority", "5"),
            HTTP2Header("apns-expiration", "0"),
        ]
        if let authorization {
            all.append(HTTP2Header("authorization", "bearer " + authorization))
        }
        for (name, value) in headers {
            all.removeAll { $0.name == name }
            all.append(HTTP2Header(name, value))
        }
        try engine.submit(headers: all, body: Array(body.utf8), tag: lastTag)
        try flush()
        return lastTag
    }

    /// Waits for the end of a push.
    @discardableResult
    func answer(_ tag: UInt64) throws -> Answer? {
        while !finished.contains(tag), !isEnded { try read() }
        return answers[tag]
    }

    /// Waits until the server has ended the connection or `condition` holds.
    func wait(until condition: (Provider) -> Bool) throws {
        while !condition(self), !isEnded { try read() }
    }

    /// Sends a request as it is; its tag.
    func send(_ headers: [HTTP2Header], body: String = "{}") throws -> UInt64 {
        lastTag += 1
        try engine.submit(headers: headers, body: Array(body.utf8), tag: lastTag)
        try flush()
        return lastTag
    }

    func ping() throws {
        try engine.ping(opaque: 7)
        try flush()
    }

    private func flush() throws {
        while true {
            let bytes = engine.takeOutput(maximumBytes: 16_384)
            if bytes.isEmpty { break }
            try socket.send(bytes)
        }
        isEnded = socket.isEnded
    }

    private func read() throws {
        let plaintext = try socket.read()
        if !plaintext.isEmpty {
            let events = try plaintext.withUnsafeBytes { try engine.received($0) }
            for event in events { take(event) }
            try flush()
        }
        isEnded = socket.isEnded
    }

    private func take(_ event: HTTP2ClientEvent) {
        switch event {
        case .response(let tag, let status, let headers):
            answers[tag] = Answer(status: status, id: headers["apns-id"], body: "")
        case .data(let tag, let bytes):
            answers[tag]?.body += String(decoding: bytes, as: UTF8.self)
        case .finished(let tag): finished.insert(tag)
        case .reset(let tag, let code, let refused):
            resets[tag] = (code, refused)
            finished.insert(tag)
        case .responseTooLarge(let tag): finished.insert(tag)
        case .settings(let limit): limits.append(limit)
        case .goAway(let last, let code, let debug):
            goAway = (last, code, String(decoding: debug, as: UTF8.self))
        case .unprocessed(let tags):
            unprocessed += tags
            finished.formUnion(tags)
        case .pingAnswered: pings += 1
        }
    }
}
