import Crypto
import EventLoop

/// A device's connection in a tool that has thousands of them: socket and TLS. Loop-confined.
final class LoadSocket {
    /// The handshake is done.
    var onConnected: (() -> Void)?
    /// What one read of the socket brought, decrypted.
    var onBytes: (([UInt8]) -> Void)?
    /// The connection is gone, or never came about; called once, and not after `vanish`.
    var onEnded: ((String) -> Void)?
    private var dialing: Dialing?
    private var stream: EventLoop.Stream?
    private var engine: TLSEngine?
    private var isConnected = false
    private var isGone = false

    /// - Parameter source: a numeric address of this host to connect from.
    init(loop: Loop, port: UInt16, source: String, tls: TLSContext) {
        dialing = EventLoop.Stream.connect(
            loop: loop, host: "127.0.0.1", port: port, sourceAddress: source
        ) { [weak self] result in
            guard let self else {
                if case .success(let stream) = result { stream.close() }
                return
            }
            self.dialing = nil
            switch result {
            case .success(let stream): self.dialled(stream, tls)
            case .failure(let error): self.end("\(error)")
            }
        }
    }

    private func dialled(_ stream: EventLoop.Stream, _ tls: TLSContext) {
        self.stream = stream
        stream.onBytes = { [unowned self] bytes in self.received(bytes) }
        stream.onEnd = { [unowned self] in self.end("ended by the server") }
        stream.onFailure = { [unowned self] error in self.end("\(error)") }
        // The stream keeps this connection alive until it is closed.
        stream.onClosed = { self.engine = nil }
        stream.setNoDelay(true)
        do {
            let engine = try tls.makeEngine(serverName: "localhost")
            self.engine = engine
            try engine.startHandshake()
            flush()
            stream.startReading()
        } catch {
            end("\(error)")
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard let engine, !isGone else { return }
        var plaintext: [UInt8] = []
        do {
            try engine.received(bytes) { plaintext += $0 }
        } catch {
            return end("\(error)")
        }
        if engine.isHandshakeComplete, !isConnected {
            isConnected = true
            onConnected?()
        }
        if !plaintext.isEmpty, !isGone { onBytes?(plaintext) }
        flush()
        if engine.peerClosed { end("ended by the server") }
    }

    func send(_ bytes: [UInt8]) {
        guard let engine, !isGone else { return }
        do {
            try bytes.withUnsafeBytes { try engine.send($0) }
            flush()
        } catch {
            end("\(error)")
        }
    }

    private func flush() {
        guard let engine, let stream else { return }
        engine.takeOutput { _ = stream.write($0) }
    }

    /// The socket just goes.
    func vanish() {
        isGone = true
        dialing?.cancel()
        dialing = nil
        stream?.close()
    }

    private func end(_ why: String) {
        guard !isGone else { return }
        vanish()
        onEnded?(why)
    }
}
