import HTTP2
import Testing

/// A client and a server engine joined in memory.
final class EnginePair {
    let client: HTTP2ClientEngine
    let server: HTTP2ServerEngine
    private(set) var clientEvents: [HTTP2ClientEvent] = []
    private(set) var serverEvents: [HTTP2ServerEvent] = []
    /// Called for each whole request; nil leaves it unanswered.
    var answer: ((HTTP2StreamID, [HTTP2ReceivedHeader], [UInt8]) throws -> Void)?
    private let pieceBytes: Int?

    /// - Parameter pieceBytes: how many bytes are handed over at once; nil: all there are.
    init(
        client: HTTP2ClientSettings = HTTP2ClientSettings(),
        server: HTTP2ServerSettings = HTTP2ServerSettings(), pieceBytes: Int? = nil
    ) throws {
        self.client = try HTTP2ClientEngine(settings: client)
        self.server = try HTTP2ServerEngine(settings: server)
        self.pieceBytes = pieceBytes
    }

    /// Hands bytes over in both directions until there are none.
    func settle() throws {
        var moved = true
        while moved {
            let toServer = try clientToServer()
            let toClient = try serverToClient()
            moved = toServer || toClient
        }
    }

    @discardableResult
    func clientToServer() throws -> Bool {
        let bytes = client.takeOutput(maximumBytes: 100_000)
        for piece in pieces(bytes) {
            let events = try piece.withUnsafeBytes { try server.received($0) }
            try take(events)
        }
        clientEvents += client.takeEvents()
        return !bytes.isEmpty
    }

    @discardableResult
    func serverToClient() throws -> Bool {
        let bytes = server.takeOutput(maximumBytes: 100_000)
        for piece in pieces(bytes) {
            clientEvents += try piece.withUnsafeBytes { try client.received($0) }
        }
        try take(server.takeEvents())
        return !bytes.isEmpty
    }

    private func take(_ events: [HTTP2ServerEvent]) throws {
        serverEvents += events
        for case .request(let stream, let headers, let body) in events {
            try answer?(stream, headers, body)
        }
    }

    private func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        guard let pieceBytes else { return bytes.isEmpty ? [] : [bytes] }
        return stride(from: 0, to: bytes.count, by: pieceBytes).map {
            Array(bytes[$0..<min($0 + pieceBytes, bytes.count)])
        }
    }

    /// Events since the last call.
    func newClientEvents() -> [HTTP2ClientEvent] {
        defer { clientEvents = [] }
        return clientEvents
    }

    func newServerEvents() -> [HTTP2ServerEvent] {
        defer { serverEvents = [] }
        return serverEvents
    }

    /// The streams of the requests that have arrived, in order.
    var requestedStreams: [HTTP2StreamID] {
        serverEvents.compactMap {
            if case .request(let stream, _, _) = $0 { stream } else { nil }
        }
    }

    @discardableResult
    func push(_ tag: UInt64, body: [UInt8] = [0x7B, 0x7D]) throws -> HTTP2StreamID {
        try client.submit(
            headers: EnginePair.pushHeaders(path: "/3/device/\(tag)"), body: body, tag: tag)
    }

    static func pushHeaders(path: String) -> [HTTP2Header] {
        [
            HTTP2Header(":method", "POST"), HTTP2Header(":scheme", "https"),
            HTTP2Header(":authority", "api.push.example"),
            HTTP2Header(":path", path, indexing: .never),
            HTTP2Header("authorization", "bearer " + String(repeating: "t", count: 240)),
            HTTP2Header("apns-topic", "com.example.app"),
            HTTP2Header("apns-id", "123e4567-e89b-12d3-a456-426614174000", indexing: .never),
        ]
    }

    /// Submits until the limit and returns how many were accepted.
    func pushAsManyAsAllowed(from first: UInt64) throws -> Int {
        var count = 0
        while count < 1000 {
            do {
                try push(first + UInt64(count))
            } catch let error as HTTP2Error {
                if error == .streamsExhausted { return count }
                throw error
            }
            count += 1
        }
        return count
    }
}

/// Steele, Lea and Flood's generator: the same numbers on every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
