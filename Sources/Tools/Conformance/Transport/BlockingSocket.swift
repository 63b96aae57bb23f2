import Glibc

/// A moment on the clock that deadlines are measured with.
typealias Moment = ContinuousClock.Instant

/// What the network did to a connection.
enum TransportError: Error, Equatable, CustomStringConvertible {
    case cannotConnect(String)
    /// The deadline passed.
    case timedOut
    /// The peer is gone: reset, or closed while bytes were written.
    case broken(String)

    var description: String {
        switch self {
        case .cannotConnect(let reason): "cannot connect: \(reason)"
        case .timedOut: "the time is over"
        case .broken(let reason): "the connection broke: \(reason)"
        }
    }
}

/// A stream socket whose every step ends at a deadline. Of one thread.
final class BlockingSocket {
    private var descriptor: Int32

    /// Connects to a name or an address; the first address that answers is taken.
    init(host: String, port: UInt16, deadline: Moment) throws(TransportError) {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, "\(port)", &hints, &found)
        guard status == 0 else {
            throw .cannotConnect("\(host): \(String(cString: gai_strerror(status)))")
        }
        defer { freeaddrinfo(found) }
        var reason = "no address"
        var next = found
        descriptor = -1
        while let address = next?.pointee {
            next = address.ai_next
            do throws(TransportError) {
                descriptor = try Self.open(
                    family: address.ai_family, address: address.ai_addr,
                    length: address.ai_addrlen, deadline: deadline)
                var on: Int32 = 1
                setsockopt(
                    descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on,
                    socklen_t(MemoryLayout<Int32>.size))
                return
            } catch {
                reason = "\(error)"
            }
        }
        throw .cannotConnect("\(host):\(port): \(reason)")
    }

    /// Takes over a socket that a listener has accepted.
    init(accepted: Int32) {
        descriptor = accepted
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        // A child must not inherit it: the connection would outlive its end here.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var on: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on,
            socklen_t(MemoryLayout<Int32>.size))
    }

    deinit { close() }

    private static func open(
        family: Int32, address: UnsafePointer<sockaddr>?, length: socklen_t, deadline: Moment
    ) throws(TransportError) -> Int32 {
        let flags =
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, flags, 0)
        guard descriptor >= 0 else { throw .cannotConnect(errorText()) }
        do throws(TransportError) {
            if connect(descriptor, address, length) != 0 {
                guard errno == EINPROGRESS else { throw .cannotConnect(errorText()) }
                try wait(descriptor, for: Int16(POLLOUT), deadline: deadline)
                var error: Int32 = 0
                var size = socklen_t(MemoryLayout<Int32>.size)
                getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
                guard error == 0 else { throw .cannotConnect(errorText(error)) }
            }
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        return descriptor
    }

    static func errorText(_ number: Int32 = errno) -> String {
        String(cString: strerror(number))
    }

    /// Milliseconds until the deadline, as poll(2) takes them; rounded up, so that a wait does
    /// not end before its time.
    private static func milliseconds(until deadline: Moment) -> Int32 {
        let left = ContinuousClock.now.duration(to: deadline)
        guard left > .zero else { return 0 }
        let (seconds, attoseconds) = left.components
        return Int32(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
    }

    static func wait(
        _ descriptor: Int32, for events: Int16, deadline: Moment
    ) throws(TransportError) {
        while true {
            var entry = pollfd(fd: descriptor, events: events, revents: 0)
            let ready = poll(&entry, 1, milliseconds(until: deadline))
            if ready > 0 { return }
            if ready == 0 {
                if ContinuousClock.now >= deadline { throw .timedOut }
                continue
            }
            guard errno == EINTR else { throw .broken(errorText()) }
        }
    }

    /// Writes all of it.
    func write(_ bytes: UnsafeRawBufferPointer, deadline: Moment) throws(TransportError) {
        var rest = bytes
        while !rest.isEmpty {
            guard descriptor >= 0 else { throw .broken("closed here") }
            let written = send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            if written > 0 {
                rest = UnsafeRawBufferPointer(rebasing: rest[written...])
            } else if errno == EAGAIN || errno == EWOULDBLOCK {
                try Self.wait(descriptor, for: Int16(POLLOUT), deadline: deadline)
            } else if errno != EINTR {
                throw .broken(Self.errorText())
            }
        }
    }

    /// Reads what is there; empty: the peer sends no more.
    func read(max: Int = 65_536, deadline: Moment) throws(TransportError) -> [UInt8] {
        while true {
            guard descriptor >= 0 else { throw .broken("closed here") }
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: max) { buffer, filled in
                count = recv(descriptor, buffer.baseAddress, max, 0)
                filled = Swift.max(0, count)
            }
            if count >= 0 { return bytes }
            if errno == EAGAIN || errno == EWOULDBLOCK {
                try Self.wait(descriptor, for: Int16(POLLIN), deadline: deadline)
            } else if errno != EINTR {
                throw .broken(Self.errorText())
            }
        }
    }

    /// Says that no more comes from here; reading goes on.
    func endWriting() {
        if descriptor >= 0 { shutdown(descriptor, Int32(SHUT_WR)) }
    }

    func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
    }
}
