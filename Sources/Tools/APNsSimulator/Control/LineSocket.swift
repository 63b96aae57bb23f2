internal import Glibc

/// A blocking Unix-domain or loopback socket that carries lines.
final class LineSocket {
    private static let lineBytesMax = 64 << 20
    private let descriptor: Int32
    private var pending: [UInt8] = []
    private var searched = 0

    init(path: String) throws(SimulatorClientError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard bytes.count < room else { throw .socket("path is longer than \(room - 1) bytes") }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let made = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard made >= 0 else { throw .socket("socket: \(errno)") }
        descriptor = made
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(made, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            let code = errno
            throw .socket("connect to \(path): \(String(cString: strerror(code)))")
        }
    }

    deinit { Glibc.close(descriptor) }

    func write(_ line: [UInt8]) throws(SimulatorClientError) {
        let bytes = line + [UInt8(ascii: "\n")]
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
            } else if errno != EINTR {
                throw .socket("write: \(String(cString: strerror(errno)))")
            }
        }
    }

    /// The next line without its end; `nil`: none came in time.
    func line(timeoutMilliseconds: Int32) throws(SimulatorClientError) -> [UInt8]? {
        while true {
            if let end = pending[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(pending[..<end])
                pending.removeFirst(end + 1)
                searched = 0
                return line
            }
            searched = pending.count
            guard pending.count < Self.lineBytesMax else { throw .socket("a line without end") }
            guard try wait(timeoutMilliseconds) else { return nil }
            var block = [UInt8](repeating: 0, count: 64 * 1024)
            let count = block.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress, $0.count, 0)
            }
            if count > 0 {
                pending += block[..<count]
            } else if count == 0 {
                throw .socket("the simulator has closed the connection")
            } else if errno != EINTR {
                throw .socket("read: \(String(cString: strerror(errno)))")
            }
        }
    }

    private func wait(_ milliseconds: Int32) throws(SimulatorClientError) -> Bool {
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while true {
            let count = Glibc.poll(&poll, 1, milliseconds)
            if count >= 0 { return count > 0 }
            if errno != EINTR { throw .socket("poll: \(String(cString: strerror(errno)))") }
        }
    }
}
