import Crypto

/// TLS over a blocking socket: bytes in, bytes out, each with a deadline. Of one thread.
final class SecureSocket {
    private let socket: BlockingSocket
    private let engine: TLSEngine
    private var plaintext: [UInt8] = []
    private var hasEnded = false

    /// Whether the peer has ended the connection, as far as it was read.
    var isOver: Bool { hasEnded }

    /// Connects, and returns when the handshake is done and `rouse/1` is agreed on.
    init(
        host: String, port: UInt16, serverName: String, tls: TLSContext, deadline: Moment
    ) throws {
        socket = try BlockingSocket(host: host, port: port, deadline: deadline)
        engine = try tls.makeEngine(serverName: serverName)
        try engine.startHandshake()
        try flush(deadline: deadline)
        while !engine.isHandshakeComplete {
            guard try readOnce(deadline: deadline) else {
                throw TransportError.cannotConnect("closed in the TLS handshake")
            }
        }
    }

    /// The server's side of a connection that a listener has accepted; returns when the handshake
    /// is done.
    init(accepted: BlockingSocket, tls: TLSContext, deadline: Moment) throws {
        socket = accepted
        engine = tls.makeEngine()
        while !engine.isHandshakeComplete {
            guard try readOnce(deadline: deadline) else {
                throw TransportError.broken("closed in the TLS handshake")
            }
        }
    }

    var negotiatedVersion: TLSVersion? { engine.negotiatedVersion }
    var negotiatedProtocol: String? { engine.negotiatedProtocol }

    /// Sends the bytes as one TLS record, or as many as they need.
    func write(_ bytes: some Collection<UInt8>, deadline: Moment) throws {
        let bytes = Array(bytes)
        do {
            try bytes.withUnsafeBytes { buffer in try engine.send(buffer) }
        } catch {
            throw TransportError.broken("\(error)")
        }
        try flush(deadline: deadline)
    }

    /// What has come, at least one byte; `nil`: the peer has ended the connection.
    func read(deadline: Moment) throws -> [UInt8]? {
        while plaintext.isEmpty {
            guard try readOnce(deadline: deadline) else { return nil }
        }
        defer { plaintext = [] }
        return plaintext
    }

    private func readOnce(deadline: Moment) throws -> Bool {
        guard !hasEnded else { return false }
        let bytes: [UInt8]
        do throws(TransportError) {
            bytes = try socket.read(deadline: deadline)
        } catch .timedOut {
            throw TransportError.timedOut
        } catch {
            // A reset: what came before it has been read.
            hasEnded = true
            return false
        }
        guard !bytes.isEmpty else {
            hasEnded = true
            return false
        }
        do {
            try bytes.withUnsafeBytes { buffer in
                try engine.received(buffer) { plaintext.append(contentsOf: $0) }
            }
        } catch {
            try? flush(deadline: deadline)
            throw TransportError.broken("TLS: \(error)")
        }
        try? flush(deadline: deadline)
        if engine.peerClosed { hasEnded = true }
        return true
    }

    private func flush(deadline: Moment) throws {
        var failure: TransportError?
        engine.takeOutput { bytes in
            guard failure == nil else { return }
            do throws(TransportError) {
                try socket.write(bytes, deadline: deadline)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    /// Ends the connection in order.
    func close() {
        engine.close()
        try? flush(deadline: .now + .milliseconds(200))
        socket.close()
    }

    /// Ends it without a word, as a lost link does.
    func cut() { socket.close() }
}
