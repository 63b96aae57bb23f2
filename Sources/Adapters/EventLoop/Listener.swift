import CUV
import Glibc

/// A listening socket, TCP or Unix-domain, on its loop. It accepts by itself instead of by libuv,
/// which cannot leave new connections in the kernel's backlog, and which in 1.44 neither reports
/// that descriptors ran out nor stops spinning once its spare one is gone.
public final class Listener: LoopHandle {
    /// Accepted in one turn at most, so that a flood of connects does not starve the rest.
    static let acceptsPerTurn = 64
    /// How long to leave the backlog alone when there are no descriptors.
    static let backOffMilliseconds: UInt64 = 50

    /// A new connection; it reads nothing until startReading(). Set before the next turn: without
    /// a handler connections are closed. The owner closes the stream.
    public var onConnection: ((Stream) -> Void)?
    /// A connection could not be taken. With `descriptorsExhausted` those waiting were closed, so
    /// that their peers try elsewhere, and accepting goes on after a pause: once per pause.
    public var onAcceptFailure: ((StreamError) -> Void)?
    /// The actual port; 0 for a Unix-domain socket.
    public let port: UInt16

    private let descriptor: Int32
    private let path: BoundPath?
    private var spare: Int32
    private var backOff: LoopTimer?
    /// Turns in which there was something to accept: a loop that spins shows here.
    private(set) var wakes: UInt64 = 0
    /// True between pauseAccepting() and resumeAccepting().
    public private(set) var isPaused = false

    /// Listens on a TCP address of this host. `host` is numeric (`0.0.0.0`; `::` takes IPv4 too).
    /// `port` 0: one that is free. `reusePort`: several listeners, each on its own loop, share the
    /// port, and the kernel spreads connections over them (SO_REUSEPORT, socket(7)).
    public static func listen(
        loop: Loop, host: String, port: UInt16, reusePort: Bool = false, backlog: Int = 4096
    ) throws(StreamError) -> Listener {
        loop.preconditionInside()
        guard let address = SocketAddress(numeric: host, port: port) else {
            throw StreamError(.bind, UV_EADDRNOTAVAIL.status)
        }
        let descriptor = try Socket.open(family: address.family, .listen)
        do throws(StreamError) {
            // A restarted server must not wait for the old connections' TIME_WAIT to pass.
            Socket.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
            if reusePort {
                let status = Socket.set(descriptor, SOL_SOCKET, SO_REUSEPORT, 1)
                if status != 0 { throw StreamError(.bind, -status) }
            }
            if address.family == AF_INET6 {
                Socket.set(descriptor, SocketLevel.ipv6, IPV6_V6ONLY, 0)
            }
            try Socket.bind(descriptor, address)
            try Socket.listen(descriptor, backlog: backlog)
            return try Listener(loop: loop, descriptor: descriptor, path: nil)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    /// Listens on a TCP socket that somebody else holds, too, and that already listens: what is
    /// closed here is this process's share of it. Several listeners may share one.
    public static func listen(
        loop: Loop, inherited: Int32
    ) throws(StreamError) -> Listener {
        loop.preconditionInside()
        var isListening: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(inherited, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0,
            isListening == 1
        else { throw StreamError(.listen, UV_EINVAL.status) }
        let descriptor = fcntl(inherited, F_DUPFD_CLOEXEC, 3)
        guard descriptor >= 0 else { throw StreamError(.listen, -errno) }
        do throws(StreamError) {
            // Listeners of several loops meet at the same connection: only one gets it.
            guard fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0 else {
                throw StreamError(.listen, -errno)
            }
            return try Listener(loop: loop, descriptor: descriptor, path: nil)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    /// Listens at a path of at most 107 bytes, open to the users that `permissions` (the file mode,
    /// under the umask) lets write. A socket that a dead process left there is replaced; one that
    /// answers is `addressInUse`. close() removes the path.
    public static func listen(
        loop: Loop, path: String, permissions: UInt16 = 0o600, backlog: Int = 4096
    ) throws(StreamError) -> Listener {
        loop.preconditionInside()
        let address = try Socket.address(path: path, .bind)
        let descriptor = try Socket.open(family: AF_UNIX, .listen)
        do throws(StreamError) {
            // Before bind(2): the file gets this mode at once, and is never open to more.
            guard fchmod(descriptor, mode_t(permissions)) == 0 else {
                throw StreamError(.bind, -errno)
            }
            do throws(StreamError) {
                try Socket.bind(descriptor, address)
            } catch {
                guard error.reason == .addressInUse, BoundPath.removeStale(path, address) else {
                    throw error
                }
                try Socket.bind(descriptor, address)
            }
            let bound = BoundPath(path)
            do throws(StreamError) {
                try Socket.listen(descriptor, backlog: backlog)
                return try Listener(loop: loop, descriptor: descriptor, path: bound)
            } catch {
                bound?.remove()
                throw error
            }
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    /// Takes over `descriptor` unless it throws.
    private init(loop: Loop, descriptor: Int32, path: BoundPath?) throws(StreamError) {
        self.descriptor = descriptor
        self.path = path
        port = SocketAddress(of: descriptor, by: { getsockname($0, $1, $2) })?.port ?? 0
        spare = Listener.openSpare()
        super.init(loop: loop)
        do throws(StreamError) {
            try open(.listen, uv_poll_t.self) { [raw = loop.raw] in
                uv_poll_init(raw, $0, descriptor)
            }
        } catch {
            if spare >= 0 { Glibc.close(spare) }
            throw error
        }
        backOff = loop.timer { [unowned self] in poll() }
        poll()
    }

    /// Leaves new connections in the kernel's backlog, where their peers see them connected, until
    /// resumeAccepting(). When the backlog is full too, peers repeat their connect.
    public func pauseAccepting() {
        loop.preconditionInside()
        isPaused = true
        backOff?.stop()
        guard let handle = handle(uv_poll_t.self) else { return }
        uv_poll_stop(handle)
    }

    /// Takes pauseAccepting() back.
    public func resumeAccepting() {
        loop.preconditionInside()
        isPaused = false
        poll()
    }

    private func poll() {
        guard !isPaused, let handle = handle(uv_poll_t.self) else { return }
        let status = uv_poll_start(handle, Int32(UV_READABLE.rawValue), listenerIsReadable)
        precondition(status == 0, "uv_poll_start: \(status)")
    }

    fileprivate func acceptWaiting(_ status: Int32) {
        wakes &+= 1
        if status < 0 {
            // An error of the listening socket itself; libuv has stopped looking at it.
            backOff?.start(afterMilliseconds: Listener.backOffMilliseconds)
            onAcceptFailure?(StreamError(.accept, status))
            return
        }
        var left = Listener.acceptsPerTurn
        while left > 0, !isClosed, !isPaused {
            left -= 1
            let accepted = accept4(descriptor, nil, nil, rouse_sock_nonblock_cloexec())
            if accepted >= 0 {
                take(accepted)
                continue
            }
            switch errno {
            case EAGAIN:
                return
            case EINTR, ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET,
                EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
                // That connection's own fault (accept(2), "Error handling"): on to the next.
                continue
            case let error:
                refuse(error)
                return
            }
        }
    }

    private func take(_ accepted: Int32) {
        do throws(StreamError) {
            let stream = try Stream(
                loop: loop, isTCP: path == nil, adopting: accepted, .accept)
            if let onConnection { onConnection(stream) } else { stream.close() }
        } catch {
            onAcceptFailure?(error)
        }
    }

    /// No descriptor or memory: the readable backlog would wake the loop again at once, for ever.
    private func refuse(_ error: Int32) {
        if error == EMFILE || error == ENFILE { closeWaiting() }
        if let handle = handle(uv_poll_t.self) { uv_poll_stop(handle) }
        backOff?.start(afterMilliseconds: Listener.backOffMilliseconds)
        onAcceptFailure?(StreamError(.accept, -error))
    }

    /// With the spare descriptor free there is one to accept with, only to close it again.
    private func closeWaiting() {
        guard spare >= 0 else {
            spare = Listener.openSpare()
            return
        }
        Glibc.close(spare)
        for _ in 0..<Listener.acceptsPerTurn {
            let accepted = accept4(descriptor, nil, nil, rouse_sock_nonblock_cloexec())
            if accepted < 0 { break }
            Glibc.close(accepted)
        }
        // Another thread may have taken the free one: then the next turn tries again.
        spare = Listener.openSpare()
    }

    override func willClose() {
        onConnection = nil
        onAcceptFailure = nil
        backOff?.close()
        backOff = nil
        path?.remove()
    }

    override func closeBegan() {
        // Here and not in a later turn, so that the port is free when close() returns.
        Glibc.close(descriptor)
        if spare >= 0 { Glibc.close(spare) }
    }

    private static func openSpare() -> Int32 {
        Glibc.open("/", O_RDONLY | O_CLOEXEC)
    }
}

private func listenerIsReadable(
    _ poll: UnsafeMutablePointer<uv_poll_t>?, _ status: Int32, _ events: Int32
) {
    owner(poll?.pointee.data, Listener.self).acceptWaiting(status)
}

/// The file of a Unix-domain listener, known by its inode: what another process put in its place
/// meanwhile is not ours to remove.
private struct BoundPath {
    private let path: String
    private let device: dev_t
    private let inode: ino_t

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.path = path
        device = status.st_dev
        inode = status.st_ino
    }

    func remove() {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode
        else { return }
        unlink(path)
    }

    /// Removes a socket nobody listens on. False: it answers, or is no socket.
    static func removeStale(_ path: String, _ address: SocketAddress) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return false }
        let probe = socket(AF_UNIX, rouse_sock_stream() | rouse_sock_nonblock_cloexec(), 0)
        guard probe >= 0 else { return false }
        defer { close(probe) }
        let isRefused = address.with { connect(probe, $0, $1) } != 0 && errno == ECONNREFUSED
        return isRefused && unlink(path) == 0
    }
}
