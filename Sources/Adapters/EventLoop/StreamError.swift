import CUV

/// What a stream, listener, connect or look-up failed with. The fault of the world, never ours:
/// whoever gets one decides whether to try again, elsewhere or not at all.
public struct StreamError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was being done.
    public enum Operation: String, Hashable, Sendable {
        case open, resolve, connect, bind, listen, accept, read, write, shutdown, watch
    }

    /// The failures a caller tells apart; everything else is `other`, with its code.
    public enum Reason: Hashable, Sendable {
        /// Nobody listens at the address (or, with a Unix-domain path, nobody any more).
        case refused
        /// The peer broke the connection.
        case reset
        /// No answer in the time given to connect, or the kernel gave up retransmitting.
        case timedOut
        /// No route to the peer.
        case unreachable
        /// The address to listen on is taken.
        case addressInUse
        /// The address to bind is not one of this host, or is no address at all.
        case addressNotAvailable
        /// The process or the system has no descriptor left.
        case descriptorsExhausted
        /// No such host name or path.
        case notFound
        /// The system forbids it.
        case permissionDenied
        /// The caller, or the end of the loop, took it back.
        case cancelled
        /// Anything else: see `code`.
        case other
    }

    /// What was being done.
    public let operation: Operation
    /// libuv's number: the negated errno, or one of its own below -3000 for look-ups.
    public let code: Int32

    init(_ operation: Operation, _ code: Int32) {
        self.operation = operation
        self.code = code
    }

    /// The class of the failure.
    public var reason: Reason {
        switch uv_errno_t(rawValue: code) {
        case UV_ECONNREFUSED: .refused
        case UV_ECONNRESET, UV_EPIPE, UV_ECONNABORTED: .reset
        case UV_ETIMEDOUT: .timedOut
        case UV_EHOSTUNREACH, UV_ENETUNREACH, UV_ENETDOWN: .unreachable
        case UV_EADDRINUSE: .addressInUse
        case UV_EADDRNOTAVAIL, UV_EAFNOSUPPORT, UV_EINVAL, UV_ENAMETOOLONG: .addressNotAvailable
        case UV_EMFILE, UV_ENFILE: .descriptorsExhausted
        case UV_ENOENT, UV_EAI_NONAME, UV_EAI_NODATA, UV_EAI_ADDRFAMILY: .notFound
        case UV_EACCES, UV_EPERM: .permissionDenied
        case UV_ECANCELED, UV_EAI_CANCELED: .cancelled
        default: .other
        }
    }

    /// The system's name of the code, such as `ECONNREFUSED`.
    public var name: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            guard let base = buffer.baseAddress else { return "" }
            return String(cString: uv_err_name_r(code, base, buffer.count))
        }
    }

    /// One line for people and logs.
    public var description: String {
        let words = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
            guard let base = buffer.baseAddress else { return "" }
            return String(cString: uv_strerror_r(code, base, buffer.count))
        }
        let use = reason == .addressInUse ? "; another program listens there" : ""
        return "\(operation.rawValue) failed: \(words) (\(name))\(use)"
    }
}

extension uv_errno_t {
    /// The constant as the Int32 that libuv's functions return.
    var status: Int32 { Int32(rawValue) }
}
