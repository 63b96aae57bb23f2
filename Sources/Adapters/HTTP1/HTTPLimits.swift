import Glibc

/// The bounds of one `HTTPServer`.
///
/// The memory a server can take is about
/// `connections * (2 * headerBytes + 80 KiB + bodyBytes + response)`, and in the kernel 512 KiB for
/// each connection whose client does not read.
public struct HTTPLimits: Sendable, Equatable {
    /// Connections open at once. Later ones wait in the kernel's backlog until one closes.
    public var connections: Int
    /// Bytes of the request line and header lines together; more is answered with 431 (or 414
    /// when the request line alone exceeds the library's buffer).
    public var headerBytes: Int
    /// Bytes of a request body after transfer decoding; more is answered with 413.
    public var bodyBytes: Int
    /// Seconds from the acceptance of a connection, or from the end of its last answer, until the
    /// whole next request must be here; and again from an answer until the client has taken it.
    /// The connection is closed when they are over. The time the handler thinks is not counted.
    public var requestDeadlineSeconds: Int
    /// Seconds from the acceptance of a connection until the header lines of its first request
    /// must be here; not above `requestDeadlineSeconds`.
    public var headDeadlineSeconds: Int
    /// When `connections` are open, those are closed of which a whole request has been awaited
    /// for longer than this: whoever is quick, such as a health check, gets their places. So are
    /// those whose client has taken less than 64 KiB of an answer in that time, if somebody waits
    /// for a place; and while somebody does, each connection ends with its answer.
    public var patienceMilliseconds: Int

    public init(
        connections: Int = 1000, headerBytes: Int = 16 * 1024, bodyBytes: Int = 1024 * 1024,
        requestDeadlineSeconds: Int = 30, headDeadlineSeconds: Int = 5,
        patienceMilliseconds: Int = 500
    ) {
        self.connections = connections
        self.headerBytes = headerBytes
        self.bodyBytes = bodyBytes
        self.requestDeadlineSeconds = requestDeadlineSeconds
        self.headDeadlineSeconds = headDeadlineSeconds
        self.patienceMilliseconds = patienceMilliseconds
    }

    /// What a client must take of an answer within the patience to keep a place that others wait
    /// for; also the parts in which the library gets a body.
    static let progressBytes = 64 * 1024

    /// What the kernel holds of answers for a client that does not read; it takes twice as much
    /// room for them. By itself it would go up to megabytes.
    static let kernelBytes: Int32 = 256 * 1024

    /// Bytes of a response's header lines; a response with more is replaced by a 500.
    static let responseHeaderBytes = 8 * 1024

    /// The library's pool per connection holds the request's header lines, their table (one entry
    /// of about 60 bytes per line), a read buffer, and the header lines of the response.
    var connectionMemory: Int { 2 * headerBytes + 2 * Self.responseHeaderBytes }

    /// A client that sends more body than allowed rarely reads before it has sent everything, and
    /// a close with unread bytes resets the connection before the 413 is read. So up to this many
    /// bytes are received and thrown away first.
    var discardedBodyBytes: Int { max(4 * bodyBytes, 256 * 1024) }

    func check() throws(HTTPServerError) {
        let allowed =
            (1...1_000_000).contains(connections)
            && (256...1_048_576).contains(headerBytes)
            && (0...1_073_741_824).contains(bodyBytes)
            && (1...86_400).contains(requestDeadlineSeconds)
            && headDeadlineSeconds >= 1 && patienceMilliseconds >= 1
        if !allowed { throw .invalidLimits }
    }
}

/// Why an `HTTPServer` could not be started.
public enum HTTPServerError: Error, Equatable, CustomStringConvertible {
    /// A limit is outside its sensible range: a mistake in the configuration.
    case invalidLimits
    /// The host is not an address of this machine, or its name is unknown.
    case unknownHost(String)
    /// A system call failed; `code` is its errno. `EADDRINUSE` of `bind`: another process has the
    /// port.
    case system(call: String, code: Int32)
    /// A file that is no socket stands at the path to listen at; it is left as it is.
    case occupied(String)
    /// The library could not start (no memory or descriptors).
    case library
    /// libmicrohttpd cannot be loaded, in words.
    case missing(String)

    public var description: String {
        switch self {
        case .invalidLimits: "HTTP limits out of range"
        case .unknownHost(let host): "cannot resolve the host \(host)"
        case .system("bind", EADDRINUSE):
            "bind failed: \(String(cString: strerror(EADDRINUSE))); another program listens there"
        case .occupied(let path): "\(path) is a file and no socket; it is left as it is"
        case .system(let call, let code): "\(call) failed: \(String(cString: strerror(code)))"
        case .library: "the HTTP library did not start"
        case .missing(let words): words
        }
    }
}
