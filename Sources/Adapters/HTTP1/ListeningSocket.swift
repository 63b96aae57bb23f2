import Glibc

/// Opens the listening socket here, not in the library, for clear errors and a choice of host.
enum ListeningSocket {
    /// The descriptor and the port it got.
    static func open(
        host: String, port: UInt16
    ) throws(HTTPServerError) -> (descriptor: Int32, port: UInt16) {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let found else {
            throw .unknownHost(host)
        }
        defer { freeaddrinfo(found) }
        let address = found.pointee
        let descriptor = socket(
            address.ai_family,
            address.ai_socktype | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system(call: "socket", code: errno) }
        do {
            return (descriptor, try listen(descriptor, at: address))
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// A share of a socket that listens already, and the port it has; 0: it is none of IP.
    static func share(
        _ inherited: Int32
    ) throws(HTTPServerError) -> (descriptor: Int32, port: UInt16) {
        var isListening: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(inherited, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0 else {
            throw .system(call: "getsockopt", code: errno)
        }
        guard isListening == 1 else { throw .system(call: "listen", code: EINVAL) }
        var bound = sockaddr_storage()
        guard withSocketAddress(&bound, { getsockname(inherited, $0, $1) }) == 0 else {
            throw .system(call: "getsockname", code: errno)
        }
        let descriptor = fcntl(inherited, F_DUPFD_CLOEXEC, 3)
        guard descriptor >= 0 else { throw .system(call: "fcntl", code: errno) }
        guard fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0 else {
            let code = errno
            close(descriptor)
            throw .system(call: "fcntl", code: code)
        }
        boundAnswers(of: descriptor)
        return (descriptor, numericService(&bound))
    }

    /// Connections have this from the socket that they were accepted at.
    private static func boundAnswers(of descriptor: Int32) {
        var bytes = HTTPLimits.kernelBytes
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Bytes that the kernel has of a connection's answers and the other end has not.
    static func unsentBytes(_ descriptor: Int32) -> Int {
        var bytes: Int32 = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &bytes) == 0 ? Int(bytes) : 0
    }

    /// Whether somebody waits to be accepted.
    static func isWaitedFor(_ descriptor: Int32) -> Bool {
        var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&watched, 1, 0) > 0
    }

    /// Ends a connection, of which the library hears. What the kernel holds of an answer goes with
    /// it once the library closes it: whoever takes nothing would keep it for minutes.
    static func end(_ descriptor: Int32, dropsUnsent: Bool) {
        if dropsUnsent {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// Listens at a path of the file system. Only this user may connect: who reaches an
    /// administration socket is let in.
    static func open(
        path: String
    ) throws(HTTPServerError) -> (descriptor: Int32, bound: SocketPath) {
        let descriptor = socket(
            AF_UNIX,
            Int32(
                SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system(call: "socket", code: errno) }
        do throws(HTTPServerError) {
            // The path gets the mode that the socket has when it is bound. Not by umask: that is
            // the whole process's, and another thread makes files meanwhile.
            guard fchmod(descriptor, 0o600) == 0 else {
                throw .system(call: "fchmod", code: errno)
            }
            let bound = try SocketPath.bind(descriptor, to: path)
            guard Glibc.listen(descriptor, SOMAXCONN) == 0 else {
                let code = errno
                bound.remove()
                throw .system(call: "listen", code: code)
            }
            return (descriptor, bound)
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func listen(
        _ descriptor: Int32, at address: addrinfo
    ) throws(HTTPServerError) -> UInt16 {
        var yes: Int32 = 1
        // Without it a restart fails while connections of the last run are in TIME_WAIT.
        setsockopt(
            descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        boundAnswers(of: descriptor)
        guard bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 else {
            throw .system(call: "bind", code: errno)
        }
        guard Glibc.listen(descriptor, SOMAXCONN) == 0 else {
            throw .system(call: "listen", code: errno)
        }
        var bound = sockaddr_storage()
        guard withSocketAddress(&bound, { getsockname(descriptor, $0, $1) }) == 0 else {
            throw .system(call: "getsockname", code: errno)
        }
        return numericService(&bound)
    }

    /// The numeric address of the peer of a connected socket; empty when it has gone.
    static func peerAddress(of descriptor: Int32) -> String {
        var peer = sockaddr_storage()
        guard withSocketAddress(&peer, { getpeername(descriptor, $0, $1) }) == 0 else { return "" }
        return name(&peer, flags: NI_NUMERICHOST | NI_NUMERICSERV).host
    }

    private static func numericService(_ address: inout sockaddr_storage) -> UInt16 {
        UInt16(name(&address, flags: NI_NUMERICHOST | NI_NUMERICSERV).service) ?? 0
    }

    private static func name(
        _ address: inout sockaddr_storage, flags: Int32
    ) -> (host: String, service: String) {
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        var service = [CChar](repeating: 0, count: Int(NI_MAXSERV))
        let hostCount = socklen_t(host.count)
        let serviceCount = socklen_t(service.count)
        let failed = withSocketAddress(&address) {
            getnameinfo($0, $1.pointee, &host, hostCount, &service, serviceCount, flags)
        }
        guard failed == 0 else { return ("", "") }
        return (text(host), text(service))
    }

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static func withSocketAddress(
        _ storage: inout sockaddr_storage,
        _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Int32 {
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
        }
    }
}
