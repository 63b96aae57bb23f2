import EventLoop
public import Model

/// The thread on which parts of the journal are moved, so that the writer need not wait for the
/// disk meanwhile.
public final class JournalMover: Sendable {
    private let thread: LoopThread
    private let moves: Mailbox<Job>

    private struct Job: Sendable {
        let move: any JournalMove
        let ended: @Sendable () -> Void
    }

    public init() throws {
        (thread, moves) = try LoopThread.startReturning(name: "store-journal") { loop in
            // A store has one move at a time.
            Mailbox<Job>(loop: loop, limit: 1) { jobs in
                for job in jobs {
                    job.move.run()
                    job.ended()
                }
            }
        }
    }

    /// - Parameter ended: called on this thread when the move has been run.
    public func run(_ move: any JournalMove, ended: @escaping @Sendable () -> Void) {
        let isTaken = moves.post(Job(move: move, ended: ended))
        precondition(isTaken, "a move was asked for beside another, or after the end")
    }

    /// Finishes the move at hand; one that has not begun never does.
    public func stop() {
        thread.stop()
        thread.join()
    }
}
