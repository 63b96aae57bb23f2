import Client
import Crypto
import EventLoop
import Foundation
import Glibc
import RouseClient
import Testing

/// What a connection of the client library has read, and its app has not taken yet.
@Suite(.timeLimit(.minutes(60))) struct UntakenBytesTests {
    /// A server with TLS that sends as fast as it is read, on a thread of its own.
    private final class Sender: @unchecked Sendable {
        // @unchecked: what changes is guarded by `lock`.
        let port: UInt16
        private let socket: Int32
        private let lock = Lock()
        private var sentBytes = 0
        private var isOver = false

        /// That the handshake is done is a byte too.
        var sent: Int { lock.withLock { sentBytes } }

        /// - Parameter reads: whether it takes what the client sends behind the handshake.
        init(
            _ certificates: DevelopmentCertificates, sending count: Int, reads: Bool = true
        ) throws {
            (socket, port) = try listenOnLoopback()
            let chain = Array(certificates.server.certificatePEM.utf8)
            let key = Array(certificates.server.privateKeyPEM.utf8)
            Thread {
                let context = try? TLSContext.server(
                    certificateChain: chain, privateKey: key, protocols: ["rouse/1"])
                if let context { self.serve(context.makeEngine(), count, reads) }
            }.start()
        }

        deinit { close(socket) }

        /// One that did not read does now.
        func end() { lock.withLock { isOver = true } }

        private func serve(_ engine: TLSEngine, _ count: Int, _ reads: Bool) {
            let descriptor = accept(socket, nil, nil)
            defer { close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 16_384)
            func flush() {
                engine.takeOutput { output in
                    var rest = output
                    while !rest.isEmpty {
                        let sent = Glibc.send(
                            descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
                        guard sent > 0 else { return }
                        rest = UnsafeRawBufferPointer(rebasing: rest[sent...])
                    }
                }
            }
            while !engine.isHandshakeComplete {
                let read = recv(descriptor, &bytes, bytes.count, 0)
                guard read > 0 else { return }
                try? bytes[..<read].withUnsafeBytes { try engine.received($0) { _ in } }
                flush()
            }
            lock.withLock { sentBytes = 1 }
            let piece = [UInt8](repeating: 7, count: 16_384)
            for _ in 0..<(count / piece.count) {
                try? piece.withUnsafeBytes { try engine.send($0) }
                flush()
                lock.withLock { sentBytes += piece.count }
            }
            while !reads, !lock.withLock({ isOver }) { usleep(10_000) }
            // Until the client leaves.
            while recv(descriptor, &bytes, bytes.count, 0) > 0 {}
        }
    }

    private let certificates: DevelopmentCertificates

    init() throws { certificates = try DevelopmentCertificates(names: ["localhost"]) }

    private func transport(_ server: Sender) throws -> SocketTransport {
        try SocketTransport(
            SyncEndpoint(host: "127.0.0.1", port: server.port, serverName: "localhost"),
            trustedCertificates: Array(certificates.authorityPEM.utf8))
    }

    /// Until the server has sent something and can send no more.
    private func stalled(_ server: Sender, below count: Int) async throws {
        var (last, still) = (0, 0)
        while still < 10 {
            try await Task.sleep(for: .milliseconds(30))
            let sent = server.sent
            still = sent > 1 && sent == last ? still + 1 : 0
            last = sent
        }
        #expect(last < count, "nothing keeps the server from sending on")
    }

    @Test("a server is not read on while nobody takes what came, and is read again then")
    func readAgain() async throws {
        let count = 64 << 20
        let server = try Sender(certificates, sending: count)
        let transport = try transport(server)
        let connection = transport.connect()
        try await stalled(server, below: count)
        let reading = Task {
            var taken = 0
            for await event in connection.events {
                if case .received(let bytes) = event { taken += bytes.count }
                if taken == count { break }
            }
            return taken
        }
        let watch = Task {
            try await Task.sleep(for: .seconds(60))
            transport.drop()
        }
        #expect(await reading.value == count, "the rest never came")
        watch.cancel()
        connection.close()
    }

    @Test("a server that takes nothing is left before what waits for it fills the device")
    func takesNothing() async throws {
        let server = try Sender(certificates, sending: 0, reads: false)
        defer { server.end() }
        let transport = try transport(server)
        let connection = transport.connect()
        let listener = Task {
            for await event in connection.events {
                if case .closed(let why) = event { return why }
            }
            return "nothing said"
        }
        while server.sent == 0 { try await Task.sleep(for: .milliseconds(10)) }
        // 16 MiB may wait, beside what the system holds for the socket.
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        for _ in 0..<64 { connection.send(piece) }
        let watch = Task {
            try await Task.sleep(for: .seconds(30))
            transport.drop()
        }
        #expect(await listener.value == "the server takes nothing")
        watch.cancel()
    }
}
