import Glibc
import Testing

/// A socket that listens on a port of its own on 127.0.0.1, for servers that a test plays by hand.
/// Whoever asks for it closes it.
func listenOnLoopback() throws -> (socket: Int32, port: UInt16) {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let length = size
    let status = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
            bind(socket, place, length) == 0 ? getsockname(socket, place, &size) : -1
        }
    }
    try #require(status == 0 && listen(socket, 8) == 0, "errno \(errno)")
    return (socket, UInt16(bigEndian: address.sin_port))
}
