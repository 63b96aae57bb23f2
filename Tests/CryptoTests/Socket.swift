import Glibc

/// A blocking TCP socket of the loopback interface, for talking to another program.
final class Socket {
    struct Failed: Error {
        let what: String
        let code: Int32
    }

    private let descriptor: Int32

    private init(descriptor: Int32) throws {
        self.descriptor = descriptor
        // A peer that says nothing fails the test instead of stopping it.
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        close(descriptor)
    }

    private static func make() throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failed(what: "socket", code: errno) }
        return descriptor
    }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    static func listening() throws -> (Socket, UInt16) {
        let descriptor = try make()
        let made = try Socket(descriptor: descriptor)
        var address = address(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, size) == 0 && listen(descriptor, 1) == 0
                    && getsockname(descriptor, generic, &size) == 0
            }
        }
        guard result else { throw Failed(what: "listen", code: errno) }
        return (made, UInt16(bigEndian: address.sin_port))
    }

    static func connected(port: UInt16) throws -> Socket {
        let descriptor = try make()
        let made = try Socket(descriptor: descriptor)
        var address = address(port: port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failed(what: "connect", code: errno) }
        return made
    }

    func accepted() throws -> Socket {
        let accepted = accept(descriptor, nil, nil)
        guard accepted >= 0 else { throw Failed(what: "accept", code: errno) }
        return try Socket(descriptor: accepted)
    }

    /// Up to 64 KiB; empty at the end of the stream.
    func receive() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count >= 0 else { throw Failed(what: "recv", code: errno) }
        return Array(bytes[..<count])
    }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = Glibc.send(
                descriptor, Array(bytes[sent...]), bytes.count - sent, Int32(MSG_NOSIGNAL))
            guard count > 0 else { throw Failed(what: "send", code: errno) }
            sent += count
        }
    }
}
