internal import Model

/// The types of frames this version defines with a body (registry.md).
public enum FrameType: UInt8, CaseIterable, Sendable {
    case hello = 0x01
    case challenge = 0x02
    case authenticate = 0x03
    case welcome = 0x04
    case sync = 0x10
    case delta = 0x11
    case syncRequest = 0x12
    case ack = 0x13
    case mutate = 0x20
    case mutationResult = 0x21
    case fetch = 0x22
    case page = 0x23
    case snapshot = 0x24
    case snapshotPage = 0x25
    case signal = 0x30
    case appState = 0x31
    case digest = 0x32
    case digestResult = 0x33
    case ping = 0x40
    case pong = 0x41
    case drain = 0x42
    case error = 0x43
    case close = 0x44

    /// The name in registry.md: upper snake case.
    public var name: String { String(wordsOf: "\(self)", joinedBy: "_").uppercased() }
}

/// A set of frame types.
public struct FrameTypes: Equatable, Sendable, ExpressibleByArrayLiteral {
    /// One bit a type byte; those of this version are all below 128.
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    public init(arrayLiteral types: FrameType...) {
        for type in types { insert(type) }
    }

    public static let all = FrameTypes(FrameType.allCases)

    public init(_ types: some Sequence<FrameType>) {
        for type in types { insert(type) }
    }

    public func contains(_ type: FrameType) -> Bool {
        let bit = UInt64(1) << UInt64(type.rawValue & 63)
        return (type.rawValue < 64 ? low : high) & bit != 0
    }

    private mutating func insert(_ type: FrameType) {
        let bit = UInt64(1) << UInt64(type.rawValue & 63)
        if type.rawValue < 64 { low |= bit } else { high |= bit }
    }
}

/// Bits of the header's flags byte.
public struct FrameFlags: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Another frame answers the same request.
    public static let more = FrameFlags(rawValue: 1)
    /// Kept for compression; not allowed in version 1.
    public static let compressed = FrameFlags(rawValue: 2)
    /// A receiver that does not know the type skips the frame.
    public static let ignorable = FrameFlags(rawValue: 4)

    /// Those a frame of version 1 may carry.
    public static let allowed: FrameFlags = [.more, .ignorable]
}

/// What a frame says. The bodies that a connection carries once are indirect: they would make
/// every frame as large as they are.
public enum FrameBody: Equatable, Sendable {
    indirect case hello(Hello)
    case challenge(Challenge)
    case authenticate(Authenticate)
    indirect case welcome(Welcome)
    case sync(SyncFrame)
    case delta(Delta)
    case syncRequest(SyncRequest)
    case ack(Ack)
    case mutate(Mutation)
    case mutationResult(MutationResult)
    case fetch(Fetch)
    case page(PageFrame)
    case snapshot(SnapshotFrame)
    case snapshotPage(SnapshotPage)
    case signal(Signal)
    case appState(AppState)
    case digest(DigestFrame)
    case digestResult(DigestResult)
    case ping(Ping)
    case pong(Pong)
    case drain(Drain)
    case error(ErrorFrame)
    case close(Close)

    /// The type byte that goes with it.
    public var type: FrameType {
        switch self {
        case .hello: .hello
        case .challenge: .challenge
        case .authenticate: .authenticate
        case .welcome: .welcome
        case .sync: .sync
        case .delta: .delta
        case .syncRequest: .syncRequest
        case .ack: .ack
        case .mutate: .mutate
        case .mutationResult: .mutationResult
        case .fetch: .fetch
        case .page: .page
        case .snapshot: .snapshot
        case .snapshotPage: .snapshotPage
        case .signal: .signal
        case .appState: .appState
        case .digest: .digest
        case .digestResult: .digestResult
        case .ping: .ping
        case .pong: .pong
        case .drain: .drain
        case .error: .error
        case .close: .close
        }
    }

    func write(to writer: inout BodyWriter) {
        switch self {
        case .hello(let message): message.write(to: &writer)
        case .challenge(let message): message.write(to: &writer)
        case .authenticate(let message): message.write(to: &writer)
        case .welcome(let message): message.write(to: &writer)
        case .sync(let message): message.write(to: &writer)
        case .delta(let message): message.write(to: &writer)
        case .syncRequest(let message): message.write(to: &writer)
        case .ack(let message): message.write(to: &writer)
        case .mutate(let message): message.write(to: &writer)
        case .mutationResult(let message): message.write(to: &writer)
        case .fetch(let message): message.write(to: &writer)
        case .page(let message): message.write(to: &writer)
        case .snapshot(let message): message.write(to: &writer)
        case .snapshotPage(let message): message.write(to: &writer)
        case .signal(let message): message.write(to: &writer)
        case .appState(let message): message.write(to: &writer)
        case .digest(let message): message.write(to: &writer)
        case .digestResult(let message): message.write(to: &writer)
        case .ping(let message): message.write(to: &writer)
        case .pong(let message): message.write(to: &writer)
        case .drain(let message): message.write(to: &writer)
        case .error(let message): message.write(to: &writer)
        case .close(let message): message.write(to: &writer)
        }
    }

    /// Reads a body of this type.
    static func read(
        _ type: FrameType, from reader: inout BodyReader
    ) throws(WireError) -> FrameBody {
        switch type {
        case .hello: .hello(try reader.whole())
        case .challenge: .challenge(try reader.whole())
        case .authenticate: .authenticate(try reader.whole())
        case .welcome: .welcome(try reader.whole())
        case .sync: .sync(try reader.whole())
        case .delta: .delta(try reader.whole())
        case .syncRequest: .syncRequest(try reader.whole())
        case .ack: .ack(try reader.whole())
        case .mutate: .mutate(try reader.whole())
        case .mutationResult: .mutationResult(try reader.whole())
        case .fetch: .fetch(try reader.whole())
        case .page: .page(try reader.whole())
        case .snapshot: .snapshot(try reader.whole())
        case .snapshotPage: .snapshotPage(try reader.whole())
        case .signal: .signal(try reader.whole())
        case .appState: .appState(try reader.whole())
        case .digest: .digest(try reader.whole())
        case .digestResult: .digestResult(try reader.whole())
        case .ping: .ping(try reader.whole())
        case .pong: .pong(try reader.whole())
        case .drain: .drain(try reader.whole())
        case .error: .error(try reader.whole())
        case .close: .close(try reader.whole())
        }
    }
}

/// One frame of a connection.
public struct Frame: Equatable, Sendable {
    /// Bytes of the header before every body.
    public static let headerBytes = 8
    /// The largest body the header's 24-bit length can name.
    public static let bodyBytesMax = 1 << 24 - 1

    public var body: FrameBody
    /// The request this frame opens (client) or answers (server); 0: neither.
    public var request: UInt16
    /// Whether another frame answers the same request.
    public var more: Bool

    /// A frame that is unsolicited and alone unless said otherwise.
    public init(_ body: FrameBody, request: UInt16 = 0, more: Bool = false) {
        self.body = body
        self.request = request
        self.more = more
    }

    /// Appends header and body. The same frame always gives the same bytes.
    ///
    /// The caller keeps bodies within the peer's limit; one above `bodyBytesMax` is a fault of
    /// this side and stops the process.
    public func encode(into bytes: inout [UInt8]) {
        let start = bytes.count
        let flags: FrameFlags = more ? .more : []
        bytes.append(contentsOf: [
            0, 0, 0, body.type.rawValue, flags.rawValue, 0, UInt8(truncatingIfNeeded: request >> 8),
            UInt8(truncatingIfNeeded: request),
        ])
        var writer = BodyWriter()
        swap(&writer.bytes, &bytes)
        body.write(to: &writer)
        swap(&writer.bytes, &bytes)
        let length = bytes.count - start - Self.headerBytes
        precondition(length <= Self.bodyBytesMax, "a \(body.type.name) body of \(length) bytes")
        bytes[start] = UInt8(truncatingIfNeeded: length >> 16)
        bytes[start + 1] = UInt8(truncatingIfNeeded: length >> 8)
        bytes[start + 2] = UInt8(truncatingIfNeeded: length)
    }

    /// Header and body.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        encode(into: &bytes)
        return bytes
    }
}
