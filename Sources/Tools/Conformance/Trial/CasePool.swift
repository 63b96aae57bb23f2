import EventLoop

/// Runs cases on threads of their own, and keeps the results in the cases' order.
final class CasePool: Sendable {
    /// One case to run.
    struct Job: Sendable {
        let index: Int
        let run: @Sendable () -> CaseResult
    }

    private let lock = Lock()
    // Both guarded by `lock`.
    private nonisolated(unsafe) var waiting: [Job]
    private nonisolated(unsafe) var ended: [Int: CaseResult] = [:]
    private let progress: @Sendable (CaseResult) -> Void

    /// - Parameters:
    ///   - jobs: begun in this order.
    ///   - progress: called when one has ended, one call at a time.
    init(_ jobs: [Job], progress: @escaping @Sendable (CaseResult) -> Void) {
        waiting = jobs.reversed()
        self.progress = progress
    }

    /// Runs all, so many at once; returns when they have ended.
    func run(threads count: Int) {
        let threads = max(1, min(count, lock.withLock { waiting.count }))
        WorkThread.run(onEachOf: threads, "case") { [self] in
            while let job = lock.withLock({ waiting.popLast() }) { run(job) }
        }
    }

    /// Runs one more, on this thread.
    func run(_ job: Job) {
        let result = job.run()
        lock.withLock {
            ended[job.index] = result
            progress(result)
        }
    }

    var results: [CaseResult] {
        lock.withLock { ended.sorted { $0.key < $1.key }.map(\.value) }
    }
}

/// Milliseconds that have passed.
func milliseconds(since start: Moment) -> Int {
    let (seconds, attoseconds) = start.duration(to: .now).components
    return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
}
