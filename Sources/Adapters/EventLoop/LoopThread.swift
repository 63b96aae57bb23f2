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
        // Nobody joins it: join() waits for `finished`, which any number of threads may do.
        let status = WorkThread.create(name) {
            LoopThread.live(opening, finished, setUp)
            finished.arrive()
        }
        guard status == 0 else { throw StreamError(.open, -status) }
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
            // What came while the loop stopped: whoever asked for it was told that it is done.
            control.finish()
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
