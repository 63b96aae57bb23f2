/// The bounds of a client, and whom it may talk to.
public struct HTTPClientOptions {
    /// Milliseconds from the look-up of the name to the end of the TLS handshake.
    public var connectTimeout = 10_000
    /// Milliseconds from the start to the whole answer.
    public var timeout = 30_000
    /// Bytes of an answer's body that are read; the connection is cut then, the status counts.
    public var answerBytesMax = 64 << 10
    /// Idle connections kept for the next request.
    public var idleConnections = 32
    /// Certificates in PEM that are trusted instead of the system's; `nil`: the system's.
    public var trustedCertificates: [UInt8]?
    /// In every request.
    public var userAgent = "rouse"
    /// Whether to connect to an address: 4 bytes of IPv4 or 16 of IPv6, as the name was resolved.
    /// It is asked for each connection, so a name that moves is asked for again.
    public var permits: ([UInt8]) -> Bool

    /// - Parameter permits: which addresses may be connected to.
    public init(permits: @escaping ([UInt8]) -> Bool) { self.permits = permits }
}

/// A POST.
public struct HTTPPost {
    /// `http` or `https`; nothing else is spoken.
    public var url: String
    /// Names and values; neither may hold a control character.
    public var headers: [(name: String, value: String)]
    public var body: [UInt8]

    public init(url: String, headers: [(name: String, value: String)], body: [UInt8]) {
        self.url = url
        self.headers = headers
        self.body = body
    }
}

/// What came of a POST.
public enum HTTPPostResult: Equatable, Sendable {
    /// - Parameter retryAfterSeconds: as the answer's field says; `nil`: it has none.
    case answered(status: Int, retryAfterSeconds: UInt64?)
    case failed(HTTPPostFailure)
}

/// Why there is no answer; the words hold nothing of the peer's.
public enum HTTPPostFailure: String, Error, Equatable, Sendable {
    case name = "the name cannot be resolved"
    /// Every address of the name is one that is not permitted.
    case address = "the address is not permitted"
    case connect = "no connection"
    case certificate = "the certificate is not trusted"
    case tls = "TLS failed"
    /// The request was sent, and its time was over.
    case timeout = "no answer in time"
    case nameTimeout = "the name was not resolved in time"
    case connectTimeout = "no connection in time"
    case tlsTimeout = "TLS was not agreed on in time"
    case url = "the URL cannot be used"
    /// The peer did not speak HTTP, or went away.
    case answer = "the connection broke off"
}

/// Why a client cannot be made.
public enum HTTPClientError: Error, Equatable, Sendable {
    /// The process has no descriptor or no memory left; `code` is an errno, or 0.
    case system(call: String, code: Int32)
    /// libcurl cannot be loaded, in words.
    case library(String)
}

extension HTTPClientError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .system(let call, let code): "\(call) failed (\(code))"
        case .library(let words): words
        }
    }
}
