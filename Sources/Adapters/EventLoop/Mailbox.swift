import CUV

/// The door between threads: any thread posts, the loop's thread receives, in batches. Messages of
/// one sender arrive in its order; none is lost unless post() said so. An open mailbox keeps its
/// loop running.
public final class Mailbox<Message: Sendable>: @unchecked Sendable {
    // @unchecked: `waiting` and `isOpen` are only touched while holding `lock`; `wake` is only
    // called on the loop's thread, except for its send(), which libuv allows from any thread and
    // which happens under `lock` while `isOpen`, so never after the handle's close began.
    private let lock = Lock()
    private let limit: Int
    private let wake: Wake
    private var waiting: [Message] = []
    private var isOpen: Bool

    /// Made on the loop. `limit`: how many messages may wait; nil only where something else bounds
    /// them. `receive` runs on the loop, with at least one message; it is dropped by close().
    /// On a loop that is closing the mailbox is closed from the start.
    public init(loop: Loop, limit: Int?, receive: @escaping ([Message]) -> Void) {
        precondition(limit ?? 1 > 0, "a mailbox needs room for a message")
        self.limit = limit ?? .max
        wake = Wake(loop: loop)
        isOpen = !wake.isClosed
        guard isOpen else { return }
        wake.onWake = { [unowned self] in
            let batch = take()
            if !batch.isEmpty { receive(batch) }
        }
        // The C handle holds its Wake, and so this mailbox, until the close.
        wake.keepsAlive = self
        wake.onClose = { [unowned self] in shut() }
    }

    /// Hands a message to the loop. False: closed, or `limit` messages already wait; it is dropped.
    @discardableResult
    public func post(_ message: Message) -> Bool {
        lock.withLock {
            guard isOpen, waiting.count < limit else { return false }
            waiting.append(message)
            // One wake per batch: the loop takes all that is there when it comes.
            if waiting.count == 1 { wake.send() }
            return true
        }
    }

    /// Hands over what waits now, before its turn: for a loop that must not see what another
    /// mailbox brought before what was posted here first. On the loop.
    public func deliver() {
        wake.loop.preconditionInside()
        wake.onWake?()
    }

    /// Takes no more, and hands over what waits: of what post() took nothing is lost. On the loop.
    public func finish() {
        lock.withLock { isOpen = false }
        deliver()
    }

    /// How many messages wait now. From any thread; for metrics.
    public var count: Int { lock.withLock { waiting.count } }

    /// Ends it, on the loop: waiting messages are dropped, post() returns false.
    public func close() { wake.close() }

    private func take() -> [Message] {
        lock.withLock {
            let batch = waiting
            waiting = []
            return batch
        }
    }

    private func shut() {
        // Messages are released outside the lock: their deinit may post again.
        let dropped = lock.withLock {
            isOpen = false
            let batch = waiting
            waiting = []
            return batch
        }
        _ = dropped.count
    }
}

/// The C side of a mailbox, apart because a generic class has no C callbacks.
final class Wake: LoopHandle {
    var onWake: (() -> Void)?
    var onClose: (() -> Void)?
    var keepsAlive: AnyObject?
    private var async: UnsafeMutablePointer<uv_async_t>?

    override init(loop: Loop) {
        super.init(loop: loop)
        do throws(StreamError) {
            try open(.open, uv_async_t.self) { [raw = loop.raw] in
                uv_async_init(raw, $0, wakeDidArrive)
            }
        } catch {
            // libuv opens its one event descriptor in uv_loop_init, so no descriptor is needed.
            precondition(error.reason == .cancelled, "uv_async_init: \(error)")
        }
        async = handle(uv_async_t.self)
    }

    /// From any thread, while the mailbox is open and locked.
    func send() {
        guard let async else { return }
        uv_async_send(async)
    }

    override func willClose() {
        onClose?()
        onClose = nil
        onWake = nil
    }

    override func didClose() { keepsAlive = nil }
}

private func wakeDidArrive(_ async: UnsafeMutablePointer<uv_async_t>?) {
    owner(async?.pointee.data, Wake.self).onWake?()
}
