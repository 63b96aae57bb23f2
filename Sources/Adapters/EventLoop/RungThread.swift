/// Tells an object on a loop that there may be something to do. Made before whoever rings it and
/// before the loop: until then, and after the end, a ring is nothing. From any thread.
public final class Doorbell: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var mailbox: Mailbox<Void>?  // guarded by `lock`

    public init() {}

    /// Only posts; a ring that finds another one waiting is dropped.
    public func ring() {
        _ = lock.withLock { mailbox }?.post(())
    }

    fileprivate func attach(_ mailbox: Mailbox<Void>?) { lock.withLock { self.mailbox = mailbox } }
}

/// A thread with a loop and one object that lives there, which a doorbell rings.
public final class RungThread<Resident>: Sendable {
    private let thread: LoopThread
    private let box: Box
    private let doorbell: Doorbell
    private let stopSeconds: Int

    /// The object, named from other threads only to be handed back to its own.
    private struct Box: @unchecked Sendable {
        // @unchecked: used inside `LoopThread.perform` of the same loop only.
        let resident: Resident
    }

    /// Starts the thread and makes the object there.
    ///
    /// - Parameters:
    ///   - name: of the thread; the kernel shows the first 15 bytes.
    ///   - stopSeconds: how long `stop` waits for the object's end.
    ///   - make: on the new thread.
    ///   - ring: what a ring does, on the thread.
    /// - Throws: a `StreamError` when the process has no thread or descriptor left; what `make`
    ///   throws.
    public init(
        name: String, doorbell: Doorbell, stopSeconds: Int,
        make: @escaping @Sendable (Loop) throws -> Resident,
        ring: @escaping @Sendable (Resident) -> Void
    ) throws {
        let (thread, (box, rings)) = try LoopThread.startReturning(name: name) { loop in
            let resident = try make(loop)
            // The mailbox keeps it alive until the loop ends.
            let rings = Mailbox<Void>(loop: loop, limit: 1) { _ in ring(resident) }
            return (Box(resident: resident), rings)
        }
        doorbell.attach(rings)
        self.thread = thread
        self.box = box
        self.doorbell = doorbell
        self.stopSeconds = stopSeconds
    }

    /// Takes the doorbell away, has the object end, waits until it says that it has, and ends the
    /// thread. Again does nothing.
    ///
    /// - Parameter end: on the thread; calls its second argument when the object has ended.
    public func stop(_ end: @escaping @Sendable (Resident, @escaping () -> Void) -> Void) {
        doorbell.attach(nil)
        let ended = Latch()
        if thread.perform({ [box] _ in end(box.resident) { ended.arrive() } }) {
            _ = ended.wait(seconds: stopSeconds)
        }
        thread.stop()
        thread.join()
    }
}
