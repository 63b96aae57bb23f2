/// A header field to send.
public struct HTTP2Header: Sendable, Equatable {
    /// How HPACK may code the field (RFC 7541 6.2).
    public enum Indexing: Sendable {
        /// May go into the dynamic table and be one byte from the second time on. The library
        /// decides: it never indexes `authorization` and short cookies, which it sends as
        /// never-indexed literals, nor `:path`, `age`, `content-length`, `etag`,
        /// `if-modified-since`, `if-none-match`, `location` and `set-cookie`, which it sends as
        /// plain literals. So a provider token crosses the wire whole with each request.
        case always
        /// A never-indexed literal (RFC 7541 6.2.3): also nothing on the way may index it.
        case never
    }

    /// In lower case; pseudo-header fields begin with a colon and come first.
    public var name: String
    public var value: String
    public var indexing: Indexing

    public init(_ name: String, _ value: String, indexing: Indexing = .always) {
        self.name = name
        self.value = value
        self.indexing = indexing
    }
}

/// A header field that has arrived.
public struct HTTP2ReceivedHeader: Sendable, Equatable {
    /// How the peer coded the field, as far as the library tells.
    public enum Indexing: Sendable {
        /// A never-indexed literal.
        case never
        /// A literal with incremental indexing: the field was put into the dynamic table. Seen by
        /// the table's growth; missed when the field displaced others of exactly its size, and
        /// when it was larger than the table.
        case incremental
        /// A reference to a table entry, or a literal without indexing: the library does not tell
        /// them apart. A reference to the dynamic table was once reported as `incremental`.
        case other
    }

    public var name: String
    /// Bytes that are no UTF-8 are U+FFFD.
    public var value: String
    public var indexing: Indexing

    public init(_ name: String, _ value: String, indexing: Indexing = .other) {
        self.name = name
        self.value = value
        self.indexing = indexing
    }
}

extension [HTTP2ReceivedHeader] {
    /// The first value of `name`, which must be in lower case.
    public subscript(_ name: String) -> String? {
        first { $0.name == name }?.value
    }
}

/// Odd numbers are the client's, in the order of its requests (RFC 9113 5.1.1).
public typealias HTTP2StreamID = Int32

/// RFC 9113 7.
public struct HTTP2ErrorCode: RawRepresentable, Sendable, Equatable, Hashable {
    public var rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    public static let noError = HTTP2ErrorCode(rawValue: 0x0)
    public static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    public static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    public static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
    /// Nothing was done with the stream: the request is safe to send again.
    public static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    public static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    public static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
    public static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xB)
}

/// Why an engine refuses a call, or ends.
public enum HTTP2Error: Error, Equatable, CustomStringConvertible {
    /// The connection is broken and must be closed after `takeOutput` has nothing more: the peer
    /// is no HTTP/2 peer, or floods, or memory is out. `code` is the library's.
    case connection(code: Int32, text: String)
    /// As many streams are open as the peer allows; wait until one ends.
    case streamsExhausted
    /// A GOAWAY was received or sent, or the stream numbers are used up: use another connection.
    case connectionEnding
    /// A header name or value has bytes that HTTP forbids; nothing was sent.
    case invalidHeader(name: String)
    /// The header fields exceed 32 KiB; nothing was sent.
    case headersTooLarge
    /// A PING or GOAWAY could not be queued, or an argument of one is outside its range.
    case invalidArgument

    public var description: String {
        switch self {
        case .connection(let code, let text): "HTTP/2 connection failed (\(code)): \(text)"
        case .streamsExhausted: "as many streams are open as the peer allows"
        case .connectionEnding: "the connection takes no new streams"
        case .invalidHeader(let name): "header \(name) cannot be sent"
        case .headersTooLarge: "header fields are too large"
        case .invalidArgument: "argument outside its range"
        }
    }
}
