import CUV
import Glibc

/// A thread without a loop, for work that blocks: it runs one body and is gone.
public enum WorkThread {
    /// Starts a thread that runs `body`. The kernel shows the first 15 bytes of `name`.
    public static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
        let status = create(name, body)
        precondition(status == 0, "pthread_create: \(status)")
    }

    /// Runs `body` on so many threads at once, and returns when it has returned on each.
    public static func run(
        onEachOf count: Int, _ name: String, _ body: @escaping @Sendable () -> Void
    ) {
        let done = Latch(count: count)
        for _ in 0..<count {
            start(name) {
                body()
                done.arrive()
            }
        }
        done.wait()
    }

    /// Sleeps on this thread.
    public static func sleep(milliseconds: Int) {
        var left = timespec(
            tv_sec: milliseconds / 1_000, tv_nsec: milliseconds % 1_000 * 1_000_000)
        var rest = timespec()
        while nanosleep(&left, &rest) < 0, errno == EINTR { left = rest }
    }

    /// Starts a thread that nobody joins. An error number: there is none.
    static func create(_ name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let shown = String(decoding: name.utf8.prefix(15), as: UTF8.self)
        let retained = Unmanaged.passRetained(ThreadBody(name: shown, run: body))
        var thread = pthread_t()
        let status = pthread_create(&thread, &attributes, threadDidStart, retained.toOpaque())
        if status != 0 { retained.release() }
        return status
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

// A function, because a closure would inherit an isolation of its surroundings.
private func threadDidStart(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { preconditionFailure("a thread without a body") }
    let body = Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue()
    _ = pthread_setname_np(pthread_self(), body.name)
    body.run()
    return nil
}
