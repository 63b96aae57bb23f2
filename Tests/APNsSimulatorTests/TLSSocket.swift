import Crypto
import Glibc

/// A blocking TLS connection to this machine.
final class TLSSocket {
    enum Failure: Error {
        case socket(Int32)
        case ended, timeout
    }

    private(set) var isEnded = false
    private let tls: TLSEngine
    private let descriptor: Int32

    init(
        port: UInt16, protocols: [String] = ["h2"], authority: String,
        certificate: IssuedCertificate? = nil
    ) throws {
        let context = try TLSContext.client(
            trustedCertificates: Array(authority.utf8), protocols: protocols,
            certificateChain: certificate.map { Array($0.certificatePEM.utf8) },
            privateKey: certificate.map { Array($0.privateKeyPEM.utf8) })
        tls = try context.makeEngine(serverName: "localhost")
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Failure.socket(errno) }
        try tls.startHandshake()
        try write()
        while !tls.isHandshakeComplete { _ = try read() }
    }

    deinit { close(descriptor) }

    func send(_ plaintext: [UInt8]) throws {
        try plaintext.withUnsafeBytes { try tls.send($0) }
        try write()
    }

    private func write() throws {
        var bytes: [UInt8] = []
        tls.takeOutput { bytes += $0 }
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else {
                isEnded = true
                if tls.isHandshakeComplete { return }
                throw Failure.ended
            }
            sent += count
        }
    }

    /// What came next; empty at the end.
    func read(timeoutMilliseconds: Int32 = 20_000) throws -> [UInt8] {
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, timeoutMilliseconds) == 1 else { throw Failure.timeout }
        var block = [UInt8](repeating: 0, count: 65_536)
        let count = block.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else {
            isEnded = true
            if !tls.isHandshakeComplete { throw Failure.ended }
            return []
        }
        var plaintext: [UInt8] = []
        try block[..<count].withUnsafeBytes { try tls.received($0) { plaintext += $0 } }
        try write()
        if tls.peerClosed { isEnded = true }
        return plaintext
    }
}

/// A provider that writes its HTTP/2 frames itself (RFC 9113), as no library lets it.
final class RawProvider {
    struct Frame: Equatable {
        var type: UInt8
        var flags: UInt8
        var stream: UInt32
        var payload: [UInt8]

        /// GOAWAY or RST_STREAM: the error code.
        var code: UInt32 {
            let bytes = type == 7 ? payload.dropFirst(4).prefix(4) : payload.prefix(4)
            return bytes.reduce(0) { $0 << 8 | UInt32($1) }
        }
        /// GOAWAY: the debug data.
        var debug: String { String(decoding: payload.dropFirst(8), as: UTF8.self) }
    }

    static let headers: UInt8 = 1
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
    static let ping: UInt8 = 6
    static let goAway: UInt8 = 7

    private let socket: TLSSocket
    private var pending: [UInt8] = []
    private var isPrefaced = false

    init(port: UInt16, authority: String) throws {
        socket = try TLSSocket(port: port, authority: authority)
        try socket.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        try send(Frame(type: Self.settings, flags: 0, stream: 0, payload: []))
    }

    func send(_ frame: Frame) throws {
        let count = frame.payload.count
        let head: [UInt8] = [
            UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), frame.type,
            frame.flags,
        ]
        let stream = (0..<4).map { UInt8(frame.stream >> (24 - 8 * $0) & 0xFF) }
        try socket.send(head + stream + frame.payload)
    }

    /// The server's SETTINGS are known from now on.
    func acknowledge() throws {
        try send(Frame(type: Self.settings, flags: 1, stream: 0, payload: []))
    }

    /// A request whose body does not come yet, so that its stream stays open.
    func open(_ stream: UInt32, _ fields: [(String, String)]) throws {
        var block: [UInt8] = []
        for (name, value) in fields {
            // A literal without indexing, its name too (RFC 7541 6.2.2).
            block.append(0)
            for text in [name, value] {
                let bytes = Array(text.utf8)
                precondition(bytes.count < 127, "a short text")
                block.append(UInt8(bytes.count))
                block += bytes
            }
        }
        try send(Frame(type: Self.headers, flags: 4, stream: stream, payload: block))
    }

    /// The next frame that fits; `nil`: the server has ended the connection.
    func frame(_ fits: (Frame) -> Bool) throws -> Frame? {
        while true {
            while let frame = next() { if fits(frame) { return frame } }
            if socket.isEnded { return nil }
            pending += try socket.read()
        }
    }

    private func next() -> Frame? {
        guard pending.count >= 9 else { return nil }
        let count = pending[..<3].reduce(0) { $0 << 8 | Int($1) }
        guard pending.count >= 9 + count else { return nil }
        let stream = pending[5..<9].reduce(0) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let frame = Frame(
            type: pending[3], flags: pending[4], stream: stream,
            payload: Array(pending[9..<(9 + count)]))
        pending.removeFirst(9 + count)
        return frame
    }
}
