import Glibc

/// How a broken peer is noticed by the kernel. Seconds and a count; see tcp(7).
public struct Keepalive: Hashable, Sendable {
    /// Silence after which the kernel probes (TCP_KEEPIDLE).
    public var idleSeconds: Int
    /// Between probes (TCP_KEEPINTVL).
    public var intervalSeconds: Int
    /// Unanswered probes that end the connection (TCP_KEEPCNT).
    public var probes: Int

    /// All three; the kernel refuses values below 1.
    public init(idleSeconds: Int, intervalSeconds: Int, probes: Int) {
        self.idleSeconds = idleSeconds
        self.intervalSeconds = intervalSeconds
        self.probes = probes
    }
}

/// Options of the socket. On a Unix-domain or closed stream those of TCP do nothing and say false;
/// false also when the kernel refuses.
extension Stream {
    /// Sends small writes at once (TCP_NODELAY).
    @discardableResult
    public func setNoDelay(_ isOn: Bool) -> Bool {
        setTCP([(TCP_NODELAY, isOn ? 1 : 0)])
    }

    /// Lets the kernel probe a silent peer; nil turns it off.
    @discardableResult
    public func setKeepalive(_ keepalive: Keepalive?) -> Bool {
        loop.preconditionInside()
        guard isTCP, let descriptor else { return false }
        guard let keepalive else {
            return Socket.set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 0) == 0
        }
        return Socket.set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1) == 0
            && setTCP([
                (TCP_KEEPIDLE, Int32(clamping: keepalive.idleSeconds)),
                (TCP_KEEPINTVL, Int32(clamping: keepalive.intervalSeconds)),
                (TCP_KEEPCNT, Int32(clamping: keepalive.probes)),
            ])
    }

    /// Breaks the connection (ETIMEDOUT) when sent bytes stay unacknowledged for so long
    /// (TCP_USER_TIMEOUT, RFC 5482); 0 restores the kernel's own patience.
    @discardableResult
    public func setUserTimeout(milliseconds: Int) -> Bool {
        setTCP([(TCP_USER_TIMEOUT, Int32(clamping: milliseconds))])
    }

    /// Bounds what the kernel holds for this connection, in bytes; it doubles the figure for its
    /// book-keeping and then no longer adapts it (SO_SNDBUF, SO_RCVBUF, socket(7)).
    @discardableResult
    public func setKernelBuffers(send: Int? = nil, receive: Int? = nil) -> Bool {
        loop.preconditionInside()
        guard let descriptor else { return false }
        var isDone = true
        if let send {
            isDone = Socket.set(descriptor, SOL_SOCKET, SO_SNDBUF, Int32(clamping: send)) == 0
        }
        if let receive {
            let status = Socket.set(descriptor, SOL_SOCKET, SO_RCVBUF, Int32(clamping: receive))
            isDone = isDone && status == 0
        }
        return isDone
    }

    private func setTCP(_ options: [(Int32, Int32)]) -> Bool {
        loop.preconditionInside()
        guard isTCP, let descriptor else { return false }
        return options.allSatisfy { option, value in
            Socket.set(descriptor, SocketLevel.tcp, option, value) == 0
        }
    }
}
