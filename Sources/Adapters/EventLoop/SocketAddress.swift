import CUV
import Glibc

/// An address and port as the kernel takes them.
struct SocketAddress {
    private var storage = sockaddr_storage()
    private var length = socklen_t(0)

    /// A copy of what C handed out; nil when it is of a size no address has.
    init?(_ address: UnsafePointer<sockaddr>?, length: socklen_t) {
        guard let address, Int(length) <= MemoryLayout<sockaddr_storage>.size else { return nil }
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(length)))
        }
        self.length = length
    }

    /// A numeric IPv4 or IPv6 address; nil when `host` is neither, so perhaps a name.
    init?(numeric host: String, port: UInt16) {
        var four = sockaddr_in()
        var six = sockaddr_in6()
        if uv_ip4_addr(host, Int32(port), &four) == 0 {
            withUnsafeBytes(of: &four) { bytes in
                withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: bytes) }
            }
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
        } else if uv_ip6_addr(host, Int32(port), &six) == 0 {
            withUnsafeBytes(of: &six) { bytes in
                withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: bytes) }
            }
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        } else {
            return nil
        }
    }

    /// What `ask` (getsockname, getpeername) says of a descriptor; nil when it fails.
    init?(
        of descriptor: Int32,
        by ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) {
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                ask(descriptor, $0, &length)
            }
        }
        guard status == 0 else { return nil }
        self.length = min(length, socklen_t(MemoryLayout<sockaddr_storage>.size))
    }

    var family: Int32 { Int32(storage.ss_family) }

    func with<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    /// Numeric, without port or scope; an IPv4 address that came through an IPv6 socket is written
    /// as IPv4, so that one peer has one name. Empty for a Unix-domain socket.
    var host: String {
        guard family == AF_INET || family == AF_INET6 else { return "" }
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            let status = with { address, _ in
                uv_ip_name(address, buffer.baseAddress, buffer.count)
            }
            guard status == 0, let base = buffer.baseAddress else { return "" }
            return String(cString: base)
        }
        let mapped = "::ffff:"
        guard text.hasPrefix(mapped), text.contains(".") else { return text }
        return String(text.dropFirst(mapped.count))
    }

    /// 0 for a Unix-domain socket.
    var port: UInt16 {
        with { address, _ in
            let raw = UnsafeRawPointer(address)
            // The port follows the family in both: sockaddr_in and sockaddr_in6.
            guard family == AF_INET || family == AF_INET6 else { return 0 }
            return UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
    }

    /// The same host with another port.
    func with(port: UInt16) -> SocketAddress {
        guard family == AF_INET || family == AF_INET6 else { return self }
        var copy = self
        withUnsafeMutableBytes(of: &copy.storage) {
            $0.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
        }
        return copy
    }
}
