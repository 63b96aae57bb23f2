/// An answer. `content-length`, `date` and `connection` are written by the server; a response that
/// carries `content-length` or `transfer-encoding`, a header name or value that cannot be written
/// on one line, or more than 8 KiB of headers is replaced by an empty 500.
public struct HTTPResponse: Sendable {
    /// 200...599; another number is replaced by 500.
    public var status: Int
    /// Written in this order.
    public var headers: [(name: String, value: String)]
    /// Not sent for HEAD, 204 and 304; for HEAD its length is announced.
    public var body: [UInt8]

    public init(
        status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []
    ) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The same as the last one on its connection.
    var closing: HTTPResponse {
        if headers.contains(where: { equalWithoutCase($0.name, "connection") }) { return self }
        var answer = self
        answer.headers.append(("connection", "close"))
        return answer
    }

    /// Whether the header lines may be written (RFC 9110 5.5, 5.6.2).
    var isWritable: Bool {
        var bytes = 0
        for (name, value) in headers {
            let framing =
                equalWithoutCase(name, "content-length")
                || equalWithoutCase(name, "transfer-encoding")
            if framing || !isToken(name) || value.isEmpty { return false }
            if !isFieldValue(value) { return false }
            bytes += name.utf8.count + value.utf8.count + 4
            if bytes > HTTPLimits.responseHeaderBytes { return false }
        }
        return (200...599).contains(status)
    }
}

/// Why the server itself refused a request, before the handler saw it.
public struct HTTPRefusal: Sendable {
    /// 400, 413, 431 or 501.
    public let status: Int
    /// In a few words.
    public let reason: String
    /// The request's header fields; none where these are what is wrong.
    public private(set) var headers = HTTPHeaders([])

    static let bodyTooLarge = HTTPRefusal(status: 413, reason: "body too large")

    init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }

    func of(_ headers: HTTPHeaders) -> HTTPRefusal {
        var refusal = self
        refusal.headers = headers
        return refusal
    }

    /// The reason as plain text.
    public var plain: HTTPResponse {
        HTTPResponse(
            status: status, headers: [("content-type", "text/plain; charset=utf-8")],
            body: Array((reason + "\n").utf8))
    }
}

/// The right and duty to answer one request, exactly once, in the handler or later, on the
/// server's thread.
///
/// A responder that is dropped without an answer answers 500, so that a mistake in a handler
/// cannot hold a connection for ever.
public final class Responder {
    private let exchange: Exchange

    init(_ exchange: Exchange) {
        self.exchange = exchange
    }

    deinit {
        if !exchange.isAnswered { exchange.respond(HTTPResponse(status: 500)) }
    }

    /// Answers. When the client has gone or the server has stopped, nothing happens.
    ///
    /// The bytes leave in the server's next `run()`; its descriptor is readable until then.
    ///
    /// - Parameter taken: called once, when the system has the last byte of the answer or nobody
    ///   takes it any more: until then the server holds its body.
    public func respond(_ response: HTTPResponse, taken: (() -> Void)? = nil) {
        precondition(!exchange.isAnswered, "a request was answered twice")
        exchange.respond(response, taken: taken)
    }
}

/// RFC 9110 5.6.2.
func isToken(_ name: String) -> Bool {
    let bytes = name.utf8.span
    for offset in bytes.indices where !isTokenByte(bytes[offset]) { return false }
    return !bytes.isEmpty
}

private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"),
        UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
        UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
        true
    default: false
    }
}

/// No control characters other than the tab (RFC 9110 5.5).
func isFieldValue(_ value: String) -> Bool {
    let bytes = value.utf8.span
    for offset in bytes.indices {
        let byte = bytes[offset]
        if byte < 0x20 && byte != 0x09 || byte == 0x7F { return false }
    }
    return true
}
