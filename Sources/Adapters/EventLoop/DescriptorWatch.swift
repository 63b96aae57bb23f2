import CUV

/// Watches a descriptor that another library owns (libmicrohttpd's epoll, libpq's socket). That
/// library closes it, after this watch was closed.
public final class DescriptorWatch: LoopHandle {
    /// What the descriptor is ready for.
    public struct Readiness: OptionSet, Hashable, Sendable {
        /// libuv's bits.
        public let rawValue: UInt32
        /// A set with these bits.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// Reading will not block.
        public static let readable = Readiness(rawValue: UV_READABLE.rawValue)
        /// Writing will not block.
        public static let writable = Readiness(rawValue: UV_WRITABLE.rawValue)
    }

    private var onReady: ((Readiness) -> Void)?
    private var onFailure: ((StreamError) -> Void)?

    /// Watches nothing until start(). Makes the descriptor non-blocking. `onFailure`: the
    /// descriptor cannot be watched any more; the watch is closed then.
    public init(
        loop: Loop, descriptor: Int32, onReady: @escaping (Readiness) -> Void,
        onFailure: ((StreamError) -> Void)? = nil
    ) throws(StreamError) {
        self.onReady = onReady
        self.onFailure = onFailure
        super.init(loop: loop)
        try open(.watch, uv_poll_t.self) { [raw = loop.raw] in uv_poll_init(raw, $0, descriptor) }
    }

    /// Calls `onReady` whenever the descriptor is (still) ready: level-triggered. Replaces what was
    /// asked for before; an empty set stops.
    public func start(_ interest: Readiness) {
        loop.preconditionInside()
        guard let poll = handle(uv_poll_t.self) else { return }
        let status = uv_poll_start(poll, Int32(interest.rawValue), descriptorIsReady)
        precondition(status == 0, "uv_poll_start: \(status)")
    }

    /// Takes start() back.
    public func stop() {
        loop.preconditionInside()
        guard let poll = handle(uv_poll_t.self) else { return }
        uv_poll_stop(poll)
    }

    override func willClose() {
        onReady = nil
        onFailure = nil
    }

    fileprivate func isReady(_ status: Int32, _ events: Int32) {
        if status < 0 {
            let handler = onFailure
            close()
            handler?(StreamError(.watch, status))
        } else if let handler = onReady {
            handler(Readiness(rawValue: UInt32(bitPattern: events)))
        }
    }
}

private func descriptorIsReady(
    _ poll: UnsafeMutablePointer<uv_poll_t>?, _ status: Int32, _ events: Int32
) {
    owner(poll?.pointee.data, DescriptorWatch.self).isReady(status, events)
}
