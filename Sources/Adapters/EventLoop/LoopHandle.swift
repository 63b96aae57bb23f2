import CUV

/// What all things that live on a loop have in common: one C handle at a stable address, that the
/// loop keeps alive until it is closed. Loop-confined; not Sendable.
///
/// Invariant: while `raw` is set, the handle's `data` holds one retain of this object; the close
/// callback gives it back and frees the memory. So a callback always finds its object alive, and
/// an object that nobody closes lives until its loop ends.
public class LoopHandle {
    /// The loop this lives on.
    public final let loop: Loop
    final private(set) var raw: UnsafeMutableRawPointer?

    init(loop: Loop) {
        self.loop = loop
    }

    /// True from the moment close() is called, and for a thing made while its loop was closing.
    public final var isClosed: Bool { raw == nil }

    /// Allocates the C handle and lets `initialise` fill it in.
    final func open<Handle>(
        _ operation: StreamError.Operation, _ type: Handle.Type,
        _ initialise: (UnsafeMutablePointer<Handle>) -> Int32
    ) throws(StreamError) {
        loop.preconditionInside()
        precondition(raw == nil, "a handle is opened once")
        guard !loop.isClosing else { throw StreamError(operation, UV_ECANCELED.status) }
        let memory = UnsafeMutablePointer<Handle>.allocate(capacity: 1)
        let status = initialise(memory)
        guard status >= 0 else {
            memory.deallocate()
            throw StreamError(operation, status)
        }
        raw = UnsafeMutableRawPointer(memory)
        memory.withMemoryRebound(to: uv_handle_t.self, capacity: 1) {
            $0.pointee.data = Unmanaged<LoopHandle>.passRetained(self).toOpaque()
        }
    }

    /// The C handle as a type, or nil once closed.
    final func handle<Handle>(_ type: Handle.Type) -> UnsafeMutablePointer<Handle>? {
        raw?.assumingMemoryBound(to: type)
    }

    /// Ends it: no handler but `onClosed`, where there is one, is called from now on. Legal in any
    /// handler of the thing itself; a second call does nothing.
    public final func close() {
        loop.preconditionInside()
        guard let memory = raw else { return }
        willClose()
        raw = nil
        uv_close(memory.assumingMemoryBound(to: uv_handle_t.self), handleDidClose)
        closeBegan()
    }

    /// For subclasses: the last moment the C handle may be used.
    func willClose() {}
    /// For subclasses: libuv no longer looks at the descriptor.
    func closeBegan() {}
    /// For subclasses: the C handle is gone and every request on it was answered.
    func didClose() {}
}

/// Finds the owner of a C handle; the loop keeps it alive (see LoopHandle).
func owner<Owner: LoopHandle>(_ data: UnsafeMutableRawPointer?, _ type: Owner.Type) -> Owner {
    guard let data else { preconditionFailure("a handle without an owner") }
    return unsafeDowncast(
        Unmanaged<LoopHandle>.fromOpaque(data).takeUnretainedValue(), to: type)
}

private func handleDidClose(_ handle: UnsafeMutablePointer<uv_handle_t>?) {
    guard let handle, let data = handle.pointee.data else {
        preconditionFailure("a close without a handle")
    }
    let owner = Unmanaged<LoopHandle>.fromOpaque(data).takeRetainedValue()
    UnsafeMutableRawPointer(handle).deallocate()
    owner.didClose()
}
