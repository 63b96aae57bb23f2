import COpenSSL

/// What all connections of one context share, so that an idle connection holds no buffer: the
/// ciphertext being read, the plaintext of one record, the plaintext gathered for the next record
/// and the ciphertext waiting for the socket.
///
/// At most one engine, the owner, has bytes in `staged` and `output`; before another engine
/// writes, the owner moves its bytes into a backlog of its own. A caller that takes the output
/// after each batch of calls on one engine never pays for that.
final class TLSBuffers {
    /// TLS caps the plaintext of a record at 2^14 bytes (RFC 8446 section 5.1).
    static let recordSize = 16_384
    /// The output block starts with this size and returns to it once it has grown.
    static let outputSize = 65_536

    /// Ciphertext that the current `received` call has not consumed yet.
    var input = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Record headers seen by OpenSSL on the read side, over all connections.
    var recordsRead = 0
    /// Alerts, handshake messages and data written by `bioWrite`.
    private(set) var output = Block(capacity: TLSBuffers.outputSize)
    /// Plaintext that waits to fill a record.
    let staged = UnsafeMutableRawPointer.allocate(
        byteCount: TLSBuffers.recordSize, alignment: 16)
    var stagedCount = 0
    /// Unowned: an engine takes itself out before it goes.
    unowned(unsafe) var owner: TLSEngine?

    private var spareOutput: Block?
    private var sparePlaintext: UnsafeMutableRawPointer?
    /// One BIO for all connections: it has no state beyond this object.
    private let bio: OpaquePointer

    struct Block {
        var base: UnsafeMutableRawPointer
        var capacity: Int
        var count = 0

        init(capacity: Int) {
            base = .allocate(byteCount: capacity, alignment: 16)
            self.capacity = capacity
        }

        mutating func append(_ bytes: UnsafeRawBufferPointer) {
            if count + bytes.count > capacity {
                let grown = max(capacity * 2, count + bytes.count)
                let base = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
                base.copyMemory(from: self.base, byteCount: count)
                self.base.deallocate()
                self.base = base
                capacity = grown
            }
            guard let source = bytes.baseAddress else { return }
            (base + count).copyMemory(from: source, byteCount: bytes.count)
            count += bytes.count
        }

        var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }
    }

    init() {
        guard let bio = BIO_new(BufferMethod.method) else {
            preconditionFailure("out of memory: BIO_new")
        }
        self.bio = bio
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
    }

    deinit {
        BIO_set_data(bio, nil)
        BIO_free(bio)
        staged.deallocate()
        output.base.deallocate()
        spareOutput?.base.deallocate()
        sparePlaintext?.deallocate()
    }

    /// Gives the shared BIO to a connection as both its read and its write side.
    func attach(to ssl: OpaquePointer) {
        // SSL_set_bio(3): with the same BIO on both sides one reference is consumed.
        BIO_up_ref(bio)
        SSL_set_bio(ssl, bio, bio)
    }

    /// A block for one record's plaintext, for the length of one `received` call. It is handed
    /// out, not shared, because the plaintext closure may receive on another engine.
    func takePlaintext() -> UnsafeMutableRawPointer {
        if let spare = sparePlaintext {
            sparePlaintext = nil
            return spare
        }
        return .allocate(byteCount: TLSBuffers.recordSize, alignment: 16)
    }

    func givePlaintext(_ block: UnsafeMutableRawPointer) {
        if sparePlaintext == nil { sparePlaintext = block } else { block.deallocate() }
    }

    /// Takes the output out, so that the closure that reads it may write on any engine.
    func detachOutput() -> Block {
        let block = output
        output = spareOutput ?? Block(capacity: TLSBuffers.outputSize)
        spareOutput = nil
        return block
    }

    func giveOutput(_ block: Block) {
        if spareOutput == nil, block.capacity == TLSBuffers.outputSize {
            spareOutput = block
            spareOutput?.count = 0
        } else {
            block.base.deallocate()
        }
    }

    func dropOutput() {
        output.count = 0
        stagedCount = 0
    }

    func clearOutput() {
        output.count = 0
    }

    fileprivate func read(into target: UnsafeMutableRawPointer, count: Int) -> Int {
        let taken = min(count, input.count)
        guard taken > 0, let source = input.baseAddress else { return 0 }
        target.copyMemory(from: source, byteCount: taken)
        input = UnsafeRawBufferPointer(rebasing: input[taken...])
        return taken
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) {
        output.append(bytes)
    }
}

/// The BIO type that reads `TLSBuffers.input` and writes `TLSBuffers.output`.
private enum BufferMethod {
    // OpenSSL only reads a method once it is made, and it lives as long as the process.
    nonisolated(unsafe) static let method: OpaquePointer = {
        let type = BIO_TYPE_SOURCE_SINK | BIO_get_new_index()
        guard let method = BIO_meth_new(type, "rouse buffers") else {
            preconditionFailure("out of memory: BIO_meth_new")
        }
        BIO_meth_set_read(method, bufferRead)
        BIO_meth_set_write(method, bufferWrite)
        BIO_meth_set_ctrl(method, bufferControl)
        return method
    }()
}

private func buffers(of bio: OpaquePointer?) -> TLSBuffers? {
    guard let data = BIO_get_data(bio) else { return nil }
    return Unmanaged<TLSBuffers>.fromOpaque(data).takeUnretainedValue()
}

private func bufferRead(
    _ bio: OpaquePointer?, _ target: UnsafeMutablePointer<CChar>?, _ count: Int32
) -> Int32 {
    let retry = BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY
    BIO_clear_flags(bio, retry)
    guard let buffers = buffers(of: bio), let target, count > 0 else { return -1 }
    let taken = buffers.read(into: UnsafeMutableRawPointer(target), count: Int(count))
    if taken == 0 {
        BIO_set_flags(bio, retry)
        return -1
    }
    return Int32(taken)
}

private func bufferWrite(
    _ bio: OpaquePointer?, _ source: UnsafePointer<CChar>?, _ count: Int32
) -> Int32 {
    guard let buffers = buffers(of: bio), let source, count > 0 else { return -1 }
    buffers.write(UnsafeRawBufferPointer(start: source, count: Int(count)))
    return count
}

private func bufferControl(
    _ bio: OpaquePointer?, _ command: Int32, _ number: Int, _ pointer: UnsafeMutableRawPointer?
) -> Int {
    // Without a successful flush OpenSSL would never finish a handshake flight.
    command == BIO_CTRL_FLUSH ? 1 : 0
}
