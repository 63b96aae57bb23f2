import CUV
import Glibc

/// One connection, TCP or Unix-domain, on its loop. Handlers are set after it was made (accepted or
/// connected) and before startReading(). After close() none of them but `onClosed` is called.
/// Whoever gets a stream closes it: dropping the last reference does not.
public final class Stream: LoopHandle {
    /// Bytes that arrived, in the loop's one read buffer: valid during the call only.
    public var onBytes: ((UnsafeRawBufferPointer) -> Void)?
    /// The peer sends no more (half close). Writing still works; close() is the owner's to call.
    public var onEnd: (() -> Void)?
    /// Called at most once; the stream closes itself afterwards. Never inside write().
    public var onFailure: ((StreamError) -> Void)?
    /// The queue of unsent bytes was not empty and now is.
    public var onDrained: (() -> Void)?
    /// The last call, exactly once, in a turn after close().
    public var onClosed: (() -> Void)?

    /// Bytes received so far.
    public private(set) var readBytes: UInt64 = 0

    private var acceptedBytes: UInt64 = 0
    private var knownPeer: SocketName?
    let isTCP: Bool
    private var failure: StreamError?
    private var isEnded = false
    private var isShut = false

    private struct SocketName {
        let host: String
        let port: UInt16
    }

    /// A stream without a socket yet; see `open`.
    init(loop: Loop, isTCP: Bool) throws(StreamError) {
        self.isTCP = isTCP
        super.init(loop: loop)
        if isTCP {
            try open(.open, uv_tcp_t.self) { [raw = loop.raw] in uv_tcp_init(raw, $0) }
        } else {
            try open(.open, uv_pipe_t.self) { [raw = loop.raw] in uv_pipe_init(raw, $0, 0) }
        }
    }

    /// Takes over a socket. On failure the socket is closed and so is the stream.
    convenience init(
        loop: Loop, isTCP: Bool, adopting descriptor: Int32, _ operation: StreamError.Operation
    ) throws(StreamError) {
        do throws(StreamError) {
            try self.init(loop: loop, isTCP: isTCP)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        var status = UV_ECANCELED.status
        if isTCP, let tcp = handle(uv_tcp_t.self) {
            status = uv_tcp_open(tcp, descriptor)
        } else if let pipe = handle(uv_pipe_t.self) {
            status = uv_pipe_open(pipe, descriptor)
        }
        guard status == 0 else {
            close()
            Glibc.close(descriptor)
            throw StreamError(operation, status)
        }
    }

    var stream: UnsafeMutablePointer<uv_stream_t>? { handle(uv_stream_t.self) }

    /// The socket, while open.
    var descriptor: Int32? {
        guard let handle = handle(uv_handle_t.self) else { return nil }
        var descriptor: Int32 = -1
        return uv_fileno(handle, &descriptor) == 0 ? descriptor : nil
    }

    // MARK: Reading

    /// Begins, or goes on, to call `onBytes` and `onEnd`. Nothing when closed, failed or ended.
    public func startReading() {
        loop.preconditionInside()
        guard let stream, failure == nil, !isEnded else { return }
        let status = uv_read_start(stream, streamWantsBuffer, streamDidRead)
        if status < 0, status != UV_EALREADY.status { failLater(.read, status) }
    }

    /// Calls no `onBytes` until startReading(): what comes waits in the kernel, and then at the
    /// peer. A break of the connection is not noticed either until something is written.
    public func stopReading() {
        loop.preconditionInside()
        guard let stream else { return }
        uv_read_stop(stream)
    }

    fileprivate func didRead(_ count: Int) {
        guard !isClosed, failure == nil else { return }
        if count > 0 {
            readBytes &+= UInt64(count)
            onBytes?(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count]))
        } else if count == Int(UV_EOF.status) {
            isEnded = true
            onEnd?()
        } else if count < 0 {
            fail(StreamError(.read, Int32(clamping: count)))
        }
    }

    // MARK: Writing

    /// Sends `bytes`: what the kernel takes at once without a copy, the rest from one copy in
    /// libuv's queue, which has no limit of its own: the caller looks at `unsentBytes`. False: not
    /// sent, because the stream is closed, failed or shut down.
    @discardableResult
    public func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        loop.preconditionInside()
        guard let stream, failure == nil, !isShut else { return false }
        guard let base = bytes.baseAddress, bytes.count > 0 else { return true }
        var sent = 0
        if uv_stream_get_write_queue_size(stream) == 0 {
            // libuv only reads through the pointer; its type has no const.
            var buffer = uv_buf_t(
                base: UnsafeMutableRawPointer(mutating: base).assumingMemoryBound(to: CChar.self),
                len: min(bytes.count, Int(Int32.max)))
            let status = uv_try_write(stream, &buffer, 1)
            if status >= 0 {
                sent = Int(status)
            } else if status != UV_EAGAIN.status {
                failLater(.write, status)
                return false
            }
        }
        acceptedBytes &+= UInt64(bytes.count)
        guard sent < bytes.count else { return true }
        return queue(UnsafeRawBufferPointer(rebasing: bytes[sent...]), on: stream)
    }

    /// The same for an array.
    @discardableResult
    public func write(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { write($0) }
    }

    /// One block for the request and its bytes: freed in streamDidWrite, which libuv calls in any
    /// case, also when the stream is closed first.
    private func queue(
        _ bytes: UnsafeRawBufferPointer, on stream: UnsafeMutablePointer<uv_stream_t>
    ) -> Bool {
        let header = MemoryLayout<uv_write_t>.stride
        let block = UnsafeMutableRawPointer.allocate(
            byteCount: header + bytes.count, alignment: MemoryLayout<uv_write_t>.alignment)
        let request = block.bindMemory(to: uv_write_t.self, capacity: 1)
        let copy = UnsafeMutableRawBufferPointer(start: block + header, count: bytes.count)
        copy.copyMemory(from: bytes)
        var buffer = uv_buf_t(
            base: (block + header).assumingMemoryBound(to: CChar.self), len: bytes.count)
        let status = uv_write(request, stream, &buffer, 1, streamDidWrite)
        guard status == 0 else {
            block.deallocate()
            failLater(.write, status)
            return false
        }
        return true
    }

    fileprivate func didWrite(_ status: Int32) {
        guard let stream, failure == nil else { return }
        if status < 0 {
            fail(StreamError(.write, status))
        } else if uv_stream_get_write_queue_size(stream) == 0 {
            onDrained?()
        }
    }

    /// Half close: once the queue is sent, the peer gets an end. Reading goes on; write() refuses.
    public func shutdown() {
        loop.preconditionInside()
        guard let stream, failure == nil, !isShut else { return }
        isShut = true
        let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
        let status = uv_shutdown(request, stream, streamDidShutDown)
        guard status == 0 else {
            request.deallocate()
            failLater(.shutdown, status)
            return
        }
    }

    fileprivate func didShutDown(_ status: Int32) {
        guard !isClosed, failure == nil, status < 0 else { return }
        fail(StreamError(.shutdown, status))
    }

    /// Bytes taken by write() that the kernel has not taken yet.
    public var unsentBytes: Int {
        loop.preconditionInside()
        guard let stream else { return 0 }
        return uv_stream_get_write_queue_size(stream)
    }

    /// Bytes the kernel took and the peer's host has not acknowledged (SIOCOUTQ, tcp(7)); with a
    /// Unix-domain socket what the peer has not read. 0 when closed.
    public var kernelUnsentBytes: Int {
        loop.preconditionInside()
        guard let descriptor else { return 0 }
        var count: Int32 = 0
        // SIOCOUTQ is TIOCOUTQ under another name; only that one is visible to Swift.
        guard ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 else { return 0 }
        return Int(count)
    }

    /// Bytes the kernel has taken since the beginning. Less `kernelUnsentBytes`: what the peer's
    /// host has acknowledged, which is how progress shows. Counts on after close() to what it was.
    public var writtenBytes: UInt64 { acceptedBytes &- UInt64(unsentBytes) }

    // MARK: Ends

    override func willClose() {
        // What libuv still had queued is lost with the close and was never written.
        acceptedBytes = writtenBytes
        onBytes = nil
        onEnd = nil
        onFailure = nil
        onDrained = nil
    }

    override func didClose() {
        let handler = onClosed
        onClosed = nil
        handler?()
    }

    /// From a callback of the loop.
    private func fail(_ error: StreamError) {
        guard !isClosed, failure == nil else { return }
        failure = error
        deliverFailure()
    }

    /// From inside a call of the owner, who must not be called back before it returns.
    private func failLater(_ operation: StreamError.Operation, _ status: Int32) {
        guard failure == nil else { return }
        failure = StreamError(operation, status)
        stopReading()
        loop.nextTurn { [self] in deliverFailure() }
    }

    private func deliverFailure() {
        guard !isClosed, let failure else { return }
        onFailure?(failure)
        close()
    }

    // MARK: The peer

    /// The peer's numeric address, without port; empty for a Unix-domain socket. Read once: still
    /// known after the connection broke if it was asked for before.
    public var peerAddress: String { peer.host }

    /// The peer's port; 0 for a Unix-domain socket.
    public var peerPort: UInt16 { peer.port }

    private var peer: SocketName {
        loop.preconditionInside()
        if let knownPeer { return knownPeer }
        guard isTCP, let descriptor,
            let address = SocketAddress(of: descriptor, by: { getpeername($0, $1, $2) })
        else { return SocketName(host: "", port: 0) }
        let name = SocketName(host: address.host, port: address.port)
        knownPeer = name
        return name
    }
}

private func streamWantsBuffer(
    _ handle: UnsafeMutablePointer<uv_handle_t>?, _ suggested: Int,
    _ buffer: UnsafeMutablePointer<uv_buf_t>?
) {
    let stream = owner(handle?.pointee.data, Stream.self)
    let shared = stream.loop.readBuffer
    buffer?.pointee = uv_buf_t(
        base: shared.baseAddress?.assumingMemoryBound(to: CChar.self), len: shared.count)
}

private func streamDidRead(
    _ stream: UnsafeMutablePointer<uv_stream_t>?, _ count: Int, _ buffer: UnsafePointer<uv_buf_t>?
) {
    owner(stream?.pointee.data, Stream.self).didRead(count)
}

private func streamDidWrite(_ request: UnsafeMutablePointer<uv_write_t>?, _ status: Int32) {
    guard let request else { return }
    let stream = owner(request.pointee.handle.pointee.data, Stream.self)
    UnsafeMutableRawPointer(request).deallocate()
    stream.didWrite(status)
}

private func streamDidShutDown(_ request: UnsafeMutablePointer<uv_shutdown_t>?, _ status: Int32) {
    guard let request else { return }
    let stream = owner(request.pointee.handle.pointee.data, Stream.self)
    request.deallocate()
    stream.didShutDown(status)
}
