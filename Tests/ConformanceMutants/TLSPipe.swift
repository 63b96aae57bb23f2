import Crypto
import Glibc

/// A connected socket with TLS over it, for a loop that polls. Of one thread.
final class TLSPipe {
    let descriptor: Int32
    private let engine: TLSEngine
    private(set) var hasEnded = false

    /// Takes the socket over.
    init(descriptor: Int32, engine: TLSEngine) {
        self.descriptor = descriptor
        self.engine = engine
    }

    deinit { Glibc.close(descriptor) }

    var isReady: Bool { engine.isHandshakeComplete }

    /// A client's first step.
    func begin() throws {
        try engine.startHandshake()
        flush()
    }

    /// Reads what is there, which may be no plaintext; sets `hasEnded` at the end.
    func read() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else {
            hasEnded = true
            return []
        }
        var plain: [UInt8] = []
        do {
            try bytes[..<count].withUnsafeBytes { buffer in
                try engine.received(buffer) { plain.append(contentsOf: $0) }
            }
        } catch {
            hasEnded = true
        }
        flush()
        if engine.peerClosed { hasEnded = true }
        return plain
    }

    func write(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        try? bytes.withUnsafeBytes { try engine.send($0) }
        flush()
    }

    private func flush() {
        engine.takeOutput { bytes in
            var rest = bytes
            while !rest.isEmpty {
                let sent = Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
                guard sent > 0 else { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[sent...])
            }
        }
    }

    func finish() {
        engine.close()
        flush()
        shutdown(descriptor, Int32(SHUT_WR))
        // What still comes is read: closing over it would reset the connection, and the peer
        // would lose what it has not read yet.
        var bytes = [UInt8](repeating: 0, count: 4_096)
        for _ in 0..<1_000 {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 2_000) > 0, recv(descriptor, &bytes, bytes.count, 0) > 0 else {
                return
            }
        }
    }
}

/// Bytes cut into frames; from a faulty header on they stay bytes.
struct FrameSplitter {
    enum Piece {
        case frame([UInt8])
        /// A header that a server must refuse, and all that follows it.
        case faulty([UInt8])
    }

    var bodyBytesMax = 16_384
    private var buffer: [UInt8] = []
    private var isFaulty = false
    private static let known: Set<UInt8> = [
        0x01, 0x02, 0x03, 0x04, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x30,
        0x31, 0x32, 0x33, 0x40, 0x41, 0x42, 0x43, 0x44,
    ]

    mutating func take(_ bytes: [UInt8]) -> [Piece] {
        if isFaulty { return bytes.isEmpty ? [] : [.faulty(bytes)] }
        buffer += bytes
        var pieces: [Piece] = []
        while buffer.count >= 8 {
            let length = Int(buffer[0]) << 16 | Int(buffer[1]) << 8 | Int(buffer[2])
            let isKnown = Self.known.contains(buffer[3]) || buffer[4] & 4 != 0
            guard buffer[4] & ~5 == 0, buffer[5] == 0, isKnown, length <= bodyBytesMax else {
                isFaulty = true
                pieces.append(.faulty(buffer))
                buffer = []
                return pieces
            }
            guard buffer.count >= 8 + length else { break }
            pieces.append(.frame(Array(buffer[..<(8 + length)])))
            buffer.removeFirst(8 + length)
        }
        return pieces
    }
}
