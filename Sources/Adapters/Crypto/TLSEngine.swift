import COpenSSL

/// TLS for one connection, without a socket: ciphertext from the socket goes in by `received`,
/// ciphertext for the socket comes out by `takeOutput`.
///
/// After every `received`, `send`, `startHandshake` and `close`, or a batch of them on the same
/// engine, the caller writes what `takeOutput` gives to the socket; also after an error, because
/// the alert that tells the peer is waiting there.
///
/// Re-entrance: the closures given to `received` and `takeOutput` may call any method of any
/// engine, except `received` on the engine that is calling them.
public final class TLSEngine {
    /// Whether both sides have finished the handshake; data flows from then on.
    public private(set) var isHandshakeComplete = false
    /// Whether the peer said that it sends no more (`close_notify`). A connection that ends
    /// without it may have been cut by somebody else.
    public private(set) var peerClosed = false
    /// The error that ended the connection, if one did. Every later call throws it.
    public private(set) var failure: TLSError?

    private let ssl: OpaquePointer
    private let buffers: TLSBuffers
    /// Keeps the lists alive that OpenSSL's callbacks read.
    private let context: TLSContext
    private let isServer: Bool
    private var isReceiving = false
    private var isClosed = false
    /// Output that had to leave the shared buffer for another engine.
    private var backlog: [UInt8] = []
    /// Records without data, less those earned back.
    private var silentRecords = 0
    /// Data bytes that have not earned a record back yet.
    private var unearned = 0
    private var recordsUnderKey = 0
    /// The newest that the server offered.
    private var session: TLSSession?

    init(ssl: OpaquePointer, context: TLSContext, isServer: Bool) {
        self.ssl = ssl
        self.context = context
        self.isServer = isServer
        buffers = context.buffers
        // Read by the callback of `keepSessions`, which runs within this engine's own calls.
        if !isServer { SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque()) }
    }

    deinit {
        if buffers.owner === self {
            buffers.dropOutput()
            buffers.owner = nil
        }
        SSL_free(ssl)
    }

    // MARK: Input

    /// A client's first step: the output holds the ClientHello afterwards.
    public func startHandshake() throws(TLSError) {
        precondition(!isServer, "a server waits for its client")
        if let failure { throw failure }
        let outer = buffers.input
        buffers.input = UnsafeRawBufferPointer(start: nil, count: 0)
        defer { buffers.input = outer }
        try advanceHandshake()
    }

    /// Takes ciphertext as it came from the socket, in pieces of any size.
    ///
    /// All of it is consumed: whole records are opened, the rest of a last one is kept. What comes
    /// after the peer's `close_notify` is ignored (RFC 8446 section 6.1); data that comes after
    /// the own `close` is dropped.
    ///
    /// - Parameters:
    ///   - ciphertext: bytes from the socket; need to live for the length of the call only.
    ///   - plaintext: called once per record with data, in order. Its bytes live for the length
    ///     of the closure only.
    /// - Throws: the end of the connection. Plaintext given out before stays valid.
    public func received(
        _ ciphertext: UnsafeRawBufferPointer, plaintext: (UnsafeRawBufferPointer) -> Void
    ) throws(TLSError) {
        precondition(!isReceiving, "received was called by its own plaintext closure")
        if let failure { throw failure }
        guard !peerClosed, !ciphertext.isEmpty else { return }
        isReceiving = true
        let outer = buffers.input
        buffers.input = ciphertext
        let block = buffers.takePlaintext()
        defer {
            buffers.givePlaintext(block)
            buffers.input = outer
            isReceiving = false
        }
        if !isHandshakeComplete {
            try advanceHandshake()
            guard isHandshakeComplete else { return }
        }
        while !buffers.input.isEmpty || SSL_pending(ssl) > 0 {
            guard try readRecord(into: block, plaintext) else { return }
        }
    }

    /// Reads up to one record; false when the input holds no more.
    private func readRecord(
        into block: UnsafeMutableRawPointer, _ plaintext: (UnsafeRawBufferPointer) -> Void
    ) throws(TLSError) -> Bool {
        claim()
        ErrorQueue.clear()
        let recordsBefore = buffers.recordsRead
        var count = 0
        let result = SSL_read_ex(ssl, block, TLSBuffers.recordSize, &count)
        let status = result == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, result)
        switch status {
        case SSL_ERROR_NONE:
            earn(count)
            try countSilent(buffers.recordsRead - recordsBefore - 1)
            if !isClosed {
                plaintext(UnsafeRawBufferPointer(start: block, count: count))
                if let failure { throw failure }
            }
            return true
        case SSL_ERROR_WANT_READ:
            try countSilent(buffers.recordsRead - recordsBefore)
            return !buffers.input.isEmpty
        case SSL_ERROR_ZERO_RETURN:
            peerClosed = true
            return false
        default:
            throw failed()
        }
    }

    private func advanceHandshake() throws(TLSError) {
        guard !isClosed else { return }
        claim()
        ErrorQueue.clear()
        let recordsBefore = buffers.recordsRead
        let result = SSL_do_handshake(ssl)
        guard result == 1 else {
            guard SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else { throw failed() }
            try countSilent(buffers.recordsRead - recordsBefore)
            return
        }
        if context.requiresProtocol, negotiatedProtocol == nil {
            // A client's check; a server's is part of the handshake.
            SSL_shutdown(ssl)
            throw failed(.noCommonProtocol)
        }
        isHandshakeComplete = true
        silentRecords = 0
    }

    /// Key updates and other records without data cost CPU and bring nothing (a peer may send
    /// them without end), so they have a budget.
    ///
    /// - Parameter records: those begun in a call without the one whose data it gave. -1: the
    ///   record was begun in an earlier call, which counted it when it had its head alone.
    private func countSilent(_ records: Int) throws(TLSError) {
        silentRecords = max(0, silentRecords + records)
        guard silentRecords > context.limits.maximumSilentRecords else { return }
        if isHandshakeComplete { SSL_shutdown(ssl) }
        throw failed(.tooManySilentRecords)
    }

    private func earn(_ bytes: Int) {
        unearned += bytes
        guard unearned >= TLSBuffers.recordSize else { return }
        silentRecords = max(0, silentRecords - unearned / TLSBuffers.recordSize)
        unearned %= TLSBuffers.recordSize
    }

    private func failed(_ error: TLSError? = nil) -> TLSError {
        let error = error ?? ErrorQueue.takeTLSError(verifyResult: SSL_get_verify_result(ssl))
        ErrorQueue.clear()
        failure = error
        // Nothing can be sealed any more; only an alert still goes out.
        if buffers.owner === self { buffers.stagedCount = 0 }
        return error
    }

    // MARK: Output

    /// Sends data. Small pieces are gathered into one record until it is full or `takeOutput` is
    /// called.
    ///
    /// - Throws: `handshakeIncomplete`, `closed` and `outputFull` leave the connection as it was
    ///   and send nothing; anything else is its end.
    public func send(_ plaintext: UnsafeRawBufferPointer) throws(TLSError) {
        if let failure { throw failure }
        guard isHandshakeComplete else { throw .handshakeIncomplete }
        guard !isClosed else { throw .closed }
        guard plaintext.count <= context.limits.maximumPendingOutput - pendingOutput else {
            throw .outputFull
        }
        claim()
        var rest = plaintext
        while let source = rest.baseAddress, !rest.isEmpty {
            let free = TLSBuffers.recordSize - buffers.stagedCount
            let count = min(free, rest.count)
            if count == TLSBuffers.recordSize {
                try seal(UnsafeRawBufferPointer(rebasing: rest[..<count]))
            } else {
                (buffers.staged + buffers.stagedCount).copyMemory(from: source, byteCount: count)
                buffers.stagedCount += count
                if count == free { try sealStaged() }
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    /// Gives out everything that must go to the socket now, in order, in one or more pieces.
    /// The bytes live for the length of the closure only: write them or copy them.
    public func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
        if buffers.owner === self, failure == nil { try? sealStaged() }
        while true {
            if !backlog.isEmpty {
                let bytes = backlog
                backlog = []
                bytes.withUnsafeBytes(body)
            } else if buffers.owner === self, buffers.output.count > 0 {
                let block = buffers.detachOutput()
                body(block.bytes)
                buffers.giveOutput(block)
            } else {
                return
            }
        }
    }

    /// Bytes that wait for `takeOutput`, without the overhead of a record not made yet.
    public var pendingOutput: Int {
        guard buffers.owner === self else { return backlog.count }
        return backlog.count + buffers.output.count + buffers.stagedCount
    }

    /// Says `close_notify` after everything sent so far. Data that still arrives is dropped; the
    /// peer's `close_notify` is noticed. Before the handshake is complete nothing can be said.
    public func close() {
        guard !isClosed else { return }
        if isHandshakeComplete, failure == nil {
            claim()
            try? sealStaged()
            ErrorQueue.clear()
            if failure == nil { SSL_shutdown(ssl) }
        }
        isClosed = true
    }

    private func sealStaged() throws(TLSError) {
        guard buffers.stagedCount > 0 else { return }
        let bytes = UnsafeRawBufferPointer(start: buffers.staged, count: buffers.stagedCount)
        buffers.stagedCount = 0
        try seal(bytes)
    }

    /// Writes one record of at most 16 KiB.
    private func seal(_ bytes: UnsafeRawBufferPointer) throws(TLSError) {
        ErrorQueue.clear()
        recordsUnderKey += 1
        if recordsUnderKey > context.limits.recordsPerKey {
            recordsUnderKey = 1
            if negotiatedVersion == .tls13, SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1 {
                throw failed()
            }
        }
        var written = 0
        // The BIO takes everything, so a partial write cannot happen.
        guard SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &written) == 1,
            written == bytes.count
        else { throw failed() }
    }

    /// Makes this engine the owner of the shared output before it writes.
    private func claim() {
        if buffers.owner === self { return }
        buffers.owner?.spill()
        buffers.owner = self
    }

    /// Moves the own output out of the shared buffers.
    private func spill() {
        if failure == nil { try? sealStaged() }
        backlog += buffers.output.bytes
        buffers.clearOutput()
        buffers.stagedCount = 0
    }

    // MARK: Going on with a session

    func offered(_ session: TLSSession) { self.session = session }

    /// What the server offered to go on with on another connection, once; `nil`: nothing, or the
    /// context keeps none.
    public func takeSession() -> TLSSession? {
        defer { session = nil }
        return session
    }

    /// Whether this connection goes on with the session of an earlier one.
    public var isResumed: Bool { isHandshakeComplete && SSL_session_reused(ssl) == 1 }

    // MARK: What was agreed

    /// The application protocol agreed on; nil before the handshake or without one.
    public var negotiatedProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &bytes, &count)
        guard let bytes, count > 0 else { return nil }
        return String(
            decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    /// The protocol version agreed on; nil before the handshake is complete.
    public var negotiatedVersion: TLSVersion? {
        guard isHandshakeComplete else { return nil }
        return SSL_version(ssl) == TLS1_3_VERSION ? .tls13 : .tls12
    }

    /// The subject of the peer's certificate as one line (`CN=...`); nil without a certificate.
    public var peerCertificateSubject: String? {
        guard isHandshakeComplete, let certificate = SSL_get0_peer_certificate(ssl) else {
            return nil
        }
        return PEM.writing { bio in
            let style = rouse_XN_FLAG_RFC2253()
            return X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, style) >= 0
        }
    }

    /// The SHA-256 of the peer's certificate (its DER); nil without a certificate.
    public var peerCertificateDigest: [UInt8]? {
        guard isHandshakeComplete else { return nil }
        return SSL_get0_peer_certificate(ssl).flatMap { sha256(ofCertificate: $0) }
    }
}
