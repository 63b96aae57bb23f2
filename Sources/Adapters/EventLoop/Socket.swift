import CUV
import Glibc

/// Sockets opened by hand where libuv sets no option in time (SO_REUSEPORT before bind, a source
/// address before connect), as plain descriptors. Each throws with the negated errno.
enum Socket {
    static func open(
        family: Int32, _ operation: StreamError.Operation
    ) throws(StreamError) -> Int32 {
        let type = rouse_sock_stream() | rouse_sock_nonblock_cloexec()
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw StreamError(operation, -errno) }
        return descriptor
    }

    /// Sets an integer option; the errno if refused, else 0.
    @discardableResult
    static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) -> Int32 {
        var value = value
        let size = socklen_t(MemoryLayout<Int32>.size)
        return setsockopt(descriptor, level, option, &value, size) == 0 ? 0 : errno
    }

    static func bind(_ descriptor: Int32, _ address: SocketAddress) throws(StreamError) {
        let status = address.with { Glibc.bind(descriptor, $0, $1) }
        if status != 0 { throw StreamError(.bind, -errno) }
    }

    static func listen(_ descriptor: Int32, backlog: Int) throws(StreamError) {
        let status = Glibc.listen(descriptor, Int32(clamping: backlog))
        if status != 0 { throw StreamError(.listen, -errno) }
    }

    /// The sockaddr of a path; throws when the path does not fit (107 bytes on Linux), which libuv
    /// would silently cut.
    static func address(
        path: String, _ operation: StreamError.Operation
    ) throws(StreamError) -> SocketAddress {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let room = MemoryLayout.size(ofValue: address.sun_path) - 1
        guard !bytes.isEmpty, bytes.count <= room, !bytes.contains(0) else {
            throw StreamError(operation, UV_ENAMETOOLONG.status)
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let made = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                SocketAddress($0, length: socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard let made else { throw StreamError(operation, UV_ENAMETOOLONG.status) }
        return made
    }
}

/// Integer constants whose C type differs from what the functions take.
enum SocketLevel {
    static let tcp = Int32(IPPROTO_TCP)
    static let ip = Int32(IPPROTO_IP)
    static let ipv6 = Int32(IPPROTO_IPV6)
}
