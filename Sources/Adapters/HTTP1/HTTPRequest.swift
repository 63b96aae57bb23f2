/// A whole, syntactically valid request: the handler never sees a part of one.
public struct HTTPRequest: Sendable {
    /// As sent, case-sensitive (RFC 9110 9.1).
    public var method: String
    /// The path as sent, still percent-encoded, without the query.
    public var path: String
    /// The path's segments, percent-decoded: `/a/b%2Fc` is `["a", "b/c"]`, `/` is `[]` and `/a/`
    /// is `["a", ""]`.
    public var pathSegments: [String]
    /// Query parameters in order, percent-decoded, `+` as a space; repeated names are kept.
    public var query: [(name: String, value: String)]
    /// Header fields in order.
    public var headers: HTTPHeaders
    /// The body after transfer decoding.
    public var body: [UInt8]
    /// The numeric address of the other end of the TCP connection, without port. Behind a load
    /// balancer this is the load balancer's.
    public var peerAddress: String

    public init(
        method: String, path: String, pathSegments: [String],
        query: [(name: String, value: String)] = [], headers: HTTPHeaders = HTTPHeaders([]),
        body: [UInt8] = [], peerAddress: String = ""
    ) {
        self.method = method
        self.path = path
        self.pathSegments = pathSegments
        self.query = query
        self.headers = headers
        self.body = body
        self.peerAddress = peerAddress
    }

    /// The first value of a query parameter.
    public func queryValue(_ name: String) -> String? {
        query.first { $0.name == name }?.value
    }
}

/// Header fields in the order in which they were sent, looked up without regard to case
/// (RFC 9110 5.1).
public struct HTTPHeaders: Sendable {
    /// Names as sent; a name may occur more than once.
    public let fields: [(name: String, value: String)]

    public init(_ fields: [(name: String, value: String)]) {
        self.fields = fields
    }

    /// The first value of `name`.
    public subscript(_ name: String) -> String? {
        fields.first { equalWithoutCase($0.name, name) }?.value
    }

    /// Every value of `name`, in order.
    public func values(_ name: String) -> [String] {
        var values: [String] = []
        for field in fields where equalWithoutCase(field.name, name) { values.append(field.value) }
        return values
    }
}

/// ASCII comparison, as header names, transfer codings and authentication schemes are compared.
public func equalWithoutCase(_ first: String, _ second: String) -> Bool {
    func lower(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
    guard first.utf8.count == second.utf8.count else { return false }
    let (one, two) = (first.utf8.span, second.utf8.span)
    for offset in one.indices where lower(one[offset]) != lower(two[offset]) { return false }
    return true
}
