import Foundation
import Glibc
import Testing

/// Looks again and again until it is so, for at most a time no healthy machine needs.
func wait(until isSo: () throws -> Bool) throws {
    let end = ContinuousClock.now + .seconds(60)
    while try !isSo() {
        try #require(ContinuousClock.now < end, "it did not become so")
        usleep(1000)
    }
}

/// Runs something on a thread of its own and hands over what came of it.
final class Background<Value: Sendable>: @unchecked Sendable {
    // @unchecked: `result` is written once before the semaphore is signalled, read after it.
    private let done = DispatchSemaphore(value: 0)
    private var result: Result<Value, any Error>?

    init(_ body: @escaping @Sendable () throws -> Value) {
        Thread.detachNewThread {
            self.result = Result { try body() }
            self.done.signal()
        }
    }

    func value() throws -> Value {
        done.wait()
        return try #require(result).get()
    }
}
