import EventLoop
import Foundation

/// Answers held requests a moment after stop() was called elsewhere.
final class Answering: Sendable {
    private let thread: LoopThread

    init(_ server: ScriptedServer, _ requests: [SeenRequest]) throws {
        thread = try LoopThread.start(name: "answer") { loop in
            let timer = loop.timer { for request in requests { server.answerHeld(request, 200) } }
            timer.start(afterMilliseconds: 150)
        }
    }

    func join() {
        thread.stop()
        thread.join()
    }
}

/// True once for each name.
final class FirstOnly: @unchecked Sendable {
    // @unchecked: under `lock`.
    private let lock = Lock()
    private var known: Set<String> = []

    func isFirst(_ name: String) -> Bool { lock.withLock { known.insert(name).inserted } }
}

/// Lets 10 ms pass where a test needs time itself to do something.
func shortly() { usleep(10_000) }
