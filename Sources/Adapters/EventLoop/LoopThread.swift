import CUV
import Glibc

/// A thread with a loop of its own, from start() to the end of everything on the loop.
public final class LoopThread: Sendable {
    private let control: Mailbox<@Sendable (Loop) -> Void>
    // Of its own, so that a full `control` cannot keep a loop from ending.
    private let stopper: Mailbox<Void>
    private let finished: Latch

    private init(
        control: Mailbox<@Sendable (Loop) -> Void>, stopper: Mailbox<Void>, finished: Latch
    ) {
        self.control = control
        self.stopper = stopper
        self.finished = finished
    }

    /// Starts a thread, runs `setUp` on it and returns when that is done; the loop then runs until
    /// stop(). What `setUp` throws is thrown here, after the thread has ended again.
    /// The kernel shows the first 15 bytes of `name`.
    public static func start(
        name: String, _ setUp: @escaping @Sendable (Loop) throws -> Void
    ) throws -> LoopThread {
        try startReturning(name: name, setUp).thread
    }

    /// The same, and hands over what `setUp` made for other threads, such as its mailboxes.
    public static func startReturning<Value: Sendable>(
        name: String, _ setUp: @escaping @Sendable (Loop) throws -> Value
    ) throws -> (thread: LoopThread, value: Value) {
        let opening = Opening<(LoopThread, Value)>()
        let finished = Latch()
        let body = ThreadBody(name: String(decoding: name.utf8.prefix(15), as: UTF8.self)) {
            LoopThread.live(opening, finished, setUp)
            finished.arrive()
        }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        // Detached: join() waits for `finished`, which any number of threads may do.
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let retained = Unmanaged.passRetained(body)
        let status = pthread_create(&thread, &attributes, threadDidStart, retained.toOpaque())
        guard status == 0 else {
            retained.release()
            throw StreamError(.open, -status)
        }
        return try opening.result()
    }

    private static func live<Value: Sendable>(
        _ opening: Opening<(LoopThread, Value)>, _ finished: Latch,
        _ setUp: @Sendable (Loop) throws -> Value
    ) {
        do {
            let loop = try Loop()
            defer { loop.close() }
            let control = Mailbox<@Sendable (Loop) -> Void>(loop: loop, limit: 4096) {
                [unowned loop] bodies in
                for body in bodies { body(loop) }
            }
            let stopper = Mailbox<Void>(loop: loop, limit: 1) { [unowned loop] _ in loop.stop() }
            let value = try setUp(loop)
            let thread = LoopThread(control: control, stopper: stopper, finished: finished)
            opening.fill(.success((thread, value)))
            loop.updateNow()
            loop.run()
        } catch {
            opening.fill(.failure(error))
        }
    }

    /// Runs `body` on the loop, after what was asked for before. From any thread. False: the loop
    /// has ended or 4096 bodies wait. For set-up, tools and tests; data goes by a Mailbox.
    @discardableResult
    public func perform(_ body: @escaping @Sendable (Loop) -> Void) -> Bool {
        control.post(body)
    }

    /// Asks the loop to end: the current turn is finished, then all that lives on it is closed.
    /// From any thread; again does nothing.
    public func stop() {
        stopper.post(())
    }

    /// Waits for the end that stop() asked for. From any thread but the loop's own.
    public func join() { finished.wait() }

    /// The same with a deadline; false when it passed.
    public func join(seconds: Int) -> Bool { finished.wait(seconds: seconds) }
}

/// What setUp came to, handed from the new thread to the starting one.
private final class Opening<Value: Sendable>: @unchecked Sendable {
    // @unchecked: written once before the latch opens, read only after it.
    private let latch = Latch()
    private var outcome: Result<Value, any Error>?

    func fill(_ outcome: Result<Value, any Error>) {
        self.outcome = outcome
        latch.arrive()
    }

    func result() throws -> Value {
        latch.wait()
        guard let outcome else { preconditionFailure("a thread that started without an outcome") }
        return try outcome.get()
    }
}

private final class ThreadBody: Sendable {
    let name: String
    let run: @Sendable () -> Void

    init(name: String, run: @escaping @Sendable () -> Void) {
        self.name = name
        self.run = run
    }
}

private func threadDidStart(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { preconditionFailure("a thread without a body") }
    let body = Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue()
    _ = pthread_setname_np(pthread_self(), body.name)
    body.run()
    return nil
}
