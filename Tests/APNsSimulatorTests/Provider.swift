import APNsSimulator
import Crypto
import EventLoop
import Glibc
import HTTP2

/// A provider for tests: one blocking connection with TLS and HTTP/2.
final class Provider {
    struct Answer: Equatable {
        var status: Int
        var id: String?
        var body: String
    }

    enum Failure: Error {
        case socket(Int32)
        case ended, timeout
    }

    let engine: HTTP2ClientEngine
    private let tls: TLSEngine
    private let descriptor: Int32
    private(set) var answers: [UInt64: Answer] = [:]
    private(set) var resets: [UInt64: (code: HTTP2ErrorCode, refused: Bool)] = [:]
    private(set) var finished: Set<UInt64> = []
    private(set) var limits: [UInt32] = []
    private(set) var goAway: (last: Int32, debug: String)?
    private(set) var unprocessed: [UInt64] = []
    private(set) var isEnded = false
    private var lastTag: UInt64 = 0

    init(
        port: UInt16, protocols: [String] = ["h2"], authority: String,
        settings: HTTP2ClientSettings = HTTP2ClientSettings()
    ) throws {
        let context = try TLSContext.client(
            trustedCertificates: Array(authority.utf8), protocols: protocols)
        tls = try context.makeEngine(serverName: "localhost")
        engine = try HTTP2ClientEngine(settings: settings)
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Failure.socket(errno) }
        try tls.startHandshake()
        try write()
        while !tls.isHandshakeComplete { try read() }
        try flush()
    }

    deinit { close(descriptor) }

    /// Sends a push, without waiting; its tag.
    func push(
        to token: String, authorization: String?, headers: [(String, String)] = [],
        body: String = #"{"aps":{"content-available":1}}"#
    ) throws -> UInt64 {
        lastTag += 1
        var all = [
            HTTP2Header(":method", "POST"), HTTP2Header(":scheme", "https"),
            HTTP2Header(":authority", "localhost"),
            HTTP2Header(":path", "/3/device/" + token, indexing: .never),
            HTTP2Header("apns-topic", CheckFixture.topic),
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

    private func flush() throws {
        while true {
            let bytes = engine.takeOutput(maximumBytes: 16_384)
            if bytes.isEmpty { break }
            try bytes.withUnsafeBytes { try tls.send($0) }
        }
        try write()
    }

    private func write() throws {
        var bytes: [UInt8] = []
        tls.takeOutput { bytes += $0 }
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else {
                isEnded = true
                if tls.isHandshakeComplete { return }
                throw Failure.ended
            }
            sent += count
        }
    }

    private func read() throws {
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, 20_000) == 1 else { throw Failure.timeout }
        var block = [UInt8](repeating: 0, count: 65_536)
        let count = block.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else {
            isEnded = true
            if !tls.isHandshakeComplete { throw Failure.ended }
            return
        }
        var plaintext: [UInt8] = []
        try block[..<count].withUnsafeBytes { try tls.received($0) { plaintext += $0 } }
        try write()
        if !plaintext.isEmpty {
            let events = try plaintext.withUnsafeBytes { try engine.received($0) }
            for event in events { take(event) }
            try flush()
        }
        if tls.peerClosed { isEnded = true }
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
        case .goAway(let last, _, let debug):
            goAway = (last, String(decoding: debug, as: UTF8.self))
        case .unprocessed(let tags):
            unprocessed += tags
            finished.formUnion(tags)
        case .pingAnswered: break
        }
    }
}
