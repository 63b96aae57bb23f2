import Glibc

/// The file of a socket that listens at a path, known by its inode: what another process has put
/// in its place meanwhile is not ours to remove.
struct SocketPath {
    private let path: String
    private let device: dev_t
    private let inode: ino_t

    /// `nil`: nothing is there.
    private init?(_ path: String) {
        guard let status = Self.status(path) else { return nil }
        self.path = path
        device = status.st_dev
        inode = status.st_ino
    }

    /// Binds a socket to the path, which gets the socket's mode. What a dead server left there is
    /// removed before.
    static func bind(
        _ descriptor: Int32, to path: String
    ) throws(HTTPServerError) -> SocketPath {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path), !bytes.contains(0) else {
            throw .system(call: "bind", code: ENAMETOOLONG)
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        try clear(path, &address)
        guard with(&address, { Glibc.bind(descriptor, $0, $1) }) == 0, let bound = Self(path)
        else { throw .system(call: "bind", code: errno) }
        return bound
    }

    func remove() {
        guard let status = Self.status(path), status.st_dev == device, status.st_ino == inode
        else { return }
        unlink(path)
    }

    /// Removes a socket on which nobody listens. A file of any other kind is somebody's: a wrong
    /// setting must not cost it.
    private static func clear(
        _ path: String, _ address: inout sockaddr_un
    ) throws(HTTPServerError) {
        guard let status = status(path) else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw .occupied(path) }
        let probe = socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { throw .system(call: "socket", code: errno) }
        defer { close(probe) }
        guard with(&address, { connect(probe, $0, $1) }) != 0, errno == ECONNREFUSED else {
            throw .system(call: "bind", code: EADDRINUSE)
        }
        guard unlink(path) == 0 else { throw .system(call: "unlink", code: errno) }
    }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 ? status : nil
    }

    private static func with(
        _ address: inout sockaddr_un, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
