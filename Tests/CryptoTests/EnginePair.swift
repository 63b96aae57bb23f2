import Testing

@testable import Crypto

/// How ciphertext reaches the other side.
enum Delivery: CaseIterable {
    /// Whatever one side has, in one piece.
    case whole
    case byteByByte
    /// Each piece cut in the middle, the second half glued to the next piece.
    case glued
}

/// A client and a server joined by two byte queues.
final class EnginePair {
    let client: TLSEngine
    let server: TLSEngine
    let delivery: Delivery
    var clientReceived: [UInt8] = []
    var serverReceived: [UInt8] = []
    var clientError: TLSError?
    var serverError: TLSError?
    private var toServer: [UInt8] = []
    private var toClient: [UInt8] = []

    init(client: TLSEngine, server: TLSEngine, delivery: Delivery = .whole) {
        self.client = client
        self.server = server
        self.delivery = delivery
    }

    /// Carries bytes until neither side has any. A bound on the rounds shows a pair that would
    /// talk for ever.
    func pump() {
        for _ in 0..<10_000 {
            collect()
            if toServer.isEmpty && toClient.isEmpty { return }
            deliver(&toServer) { bytes in
                guard serverError == nil else { return }
                do throws(TLSError) {
                    try server.received(bytes) { serverReceived += Array($0) }
                } catch { serverError = error }
            }
            collect()
            deliver(&toClient) { bytes in
                guard clientError == nil else { return }
                do throws(TLSError) {
                    try client.received(bytes) { clientReceived += Array($0) }
                } catch { clientError = error }
            }
        }
        Issue.record("the pair never fell silent")
    }

    private func collect() {
        client.takeOutput { toServer += Array($0) }
        server.takeOutput { toClient += Array($0) }
    }

    private func deliver(_ queue: inout [UInt8], _ body: (UnsafeRawBufferPointer) -> Void) {
        let bytes = queue
        queue = []
        switch delivery {
        case .whole: bytes.withUnsafeBytes(body)
        case .byteByByte: for byte in bytes { [byte].withUnsafeBytes(body) }
        case .glued:
            let half = bytes.count < 2 ? bytes.count : bytes.count / 2
            Array(bytes[..<half]).withUnsafeBytes(body)
            queue = Array(bytes[half...])
        }
    }

    func connect() throws {
        try client.startHandshake()
        pump()
    }

    func sendToServer(_ bytes: [UInt8]) throws {
        try client.sendBytes(bytes)
    }

    func sendToClient(_ bytes: [UInt8]) throws {
        try server.sendBytes(bytes)
    }
}

extension TLSEngine {
    func sendBytes(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try send($0) }
    }

    func receive(_ bytes: [UInt8]) throws -> [UInt8] {
        var plaintext: [UInt8] = []
        try bytes.withUnsafeBytes { raw in try received(raw) { plaintext += Array($0) } }
        return plaintext
    }

    func output() -> [UInt8] {
        var bytes: [UInt8] = []
        takeOutput { bytes += Array($0) }
        return bytes
    }
}

/// One authority and one server's leaf for `localhost` and `127.0.0.1`.
struct Fixture {
    let certificates: DevelopmentCertificates

    init(validityShift: Int = 0) throws {
        certificates = try DevelopmentCertificates(
            names: ["localhost", "127.0.0.1"], validityDays: 30, validityShift: validityShift)
    }

    func server(
        protocols: [String] = ["rouse/1"], requireProtocol: Bool = true,
        minimumVersion: TLSVersion = .tls13, tickets: Int = 0, clientAuthorities: [UInt8]? = nil,
        limits: TLSLimits = TLSLimits()
    ) throws -> TLSContext {
        try TLSContext.server(
            certificateChain: Array(certificates.server.certificatePEM.utf8),
            privateKey: Array(certificates.server.privateKeyPEM.utf8), protocols: protocols,
            requireProtocol: requireProtocol, minimumVersion: minimumVersion, tickets: tickets,
            clientAuthorities: clientAuthorities, limits: limits)
    }

    func client(
        protocols: [String] = ["rouse/1"], keepsSessions: Bool = false,
        limits: TLSLimits = TLSLimits()
    ) throws -> TLSContext {
        try TLSContext.client(
            trustedCertificates: Array(certificates.authorityPEM.utf8), protocols: protocols,
            keepsSessions: keepsSessions, limits: limits)
    }

    func pair(delivery: Delivery = .whole) throws -> EnginePair {
        EnginePair(
            client: try client().makeEngine(serverName: "localhost"),
            server: try server().makeEngine(), delivery: delivery)
    }
}

/// Bytes with a pattern that shows a swap or a loss.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}
