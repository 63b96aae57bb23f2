/// The two separate worlds of APNs: a token of one means nothing in the other.
public enum APNsEnvironment: String, Codable, Sendable, CaseIterable {
    case production
    case development
}

/// One request as it came over HTTP/2, nothing believed yet.
public struct ReceivedPush: Equatable, Sendable {
    /// A header field; pseudo-header fields are not among them.
    public struct Header: Equatable, Sendable {
        /// In lower case, as HTTP/2 has it.
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    public var method: String
    public var path: String
    public var headers: [Header]
    public var body: [UInt8]
    /// The body was longer than what is kept of any; `body` is then empty.
    public var bodyIsTooLong: Bool
    /// `:path` went into the dynamic table of header compression, where it is of no use: each
    /// device has another.
    public var pathWasIndexed: Bool

    public init(
        method: String, path: String, headers: [Header], body: [UInt8], bodyIsTooLong: Bool = false,
        pathWasIndexed: Bool = false
    ) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.bodyIsTooLong = bodyIsTooLong
        self.pathWasIndexed = pathWasIndexed
    }

    /// The first value of a header.
    public subscript(_ name: String) -> String? {
        headers.first { $0.name == name }?.value
    }
}
