import Glibc

/// A listener on a free port of 127.0.0.1. Of one thread.
final class ListeningSocket {
    let port: UInt16
    private let descriptor: Int32

    init() throws(TransportError) {
        let flags =
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            | Int32(SOCK_NONBLOCK.rawValue)
        descriptor = socket(AF_INET, flags, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = descriptor
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(listener, address, size) == 0, listen(listener, 16) == 0 else {
                    return Int32(-1)
                }
                return getsockname(listener, address, &size)
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard status == 0 else {
            close(descriptor)
            throw .cannotConnect("cannot listen: \(BlockingSocket.errorText())")
        }
    }

    deinit { close(descriptor) }

    /// The next connection.
    func accept(deadline: Moment) throws(TransportError) -> BlockingSocket {
        while true {
            let accepted = Glibc.accept(descriptor, nil, nil)
            if accepted >= 0 { return BlockingSocket(accepted: accepted) }
            guard errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR else {
                throw .broken(BlockingSocket.errorText())
            }
            try BlockingSocket.wait(descriptor, for: Int16(POLLIN), deadline: deadline)
        }
    }
}
