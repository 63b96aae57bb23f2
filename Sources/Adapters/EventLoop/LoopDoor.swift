/// The door to a loop that its owner runs: what `LoopThread.perform` is for a loop with a thread of
/// its own. It keeps the loop running until the loop is closed.
public final class LoopDoor: Sendable {
    private let bodies: Mailbox<@Sendable (Loop) -> Void>

    /// Made on the loop. What waits is as much as its users let wait.
    public init(loop: Loop) {
        bodies = Mailbox(loop: loop, limit: nil) { [unowned loop] bodies in
            for body in bodies { body(loop) }
        }
    }

    /// Runs `body` on the loop, after what was asked for before. From any thread. False: the loop
    /// has ended, and nothing is run.
    @discardableResult
    public func perform(_ body: @escaping @Sendable (Loop) -> Void) -> Bool {
        bodies.post(body)
    }

    /// Runs what waits now, before its turn. On the loop.
    public func deliver() { bodies.deliver() }
}
