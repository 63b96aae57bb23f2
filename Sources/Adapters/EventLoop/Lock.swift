import CUV
import Glibc

/// A mutual exclusion lock for the few values that threads share. A `pthread_mutex_t` of our own,
/// because ThreadSanitizer knows it, while it reports false races around Synchronization's Mutex.
public final class Lock: @unchecked Sendable {
    // @unchecked: the one field is a constant pointer to a mutex, which exists to be shared.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    /// An unlocked lock.
    public init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        precondition(pthread_mutex_init(mutex, nil) == 0, "pthread_mutex_init")
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` while holding the lock. Not recursive; `body` must not wait for other threads.
    public func withLock<Value, Failure: Error>(
        _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let status = pthread_mutex_lock(mutex)
        precondition(status == 0, "pthread_mutex_lock: \(status)")
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }
}

/// A mutex, and a condition that threads wait for while they hold it.
private final class Monitor: @unchecked Sendable {
    // @unchecked: the fields are constant pointers to what exists to be shared.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>

    init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        changed = .allocate(capacity: 1)
        changed.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // A wall clock that is set must not lengthen or shorten a wait.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        precondition(pthread_mutex_init(mutex, nil) == 0, "pthread_mutex_init")
        precondition(pthread_cond_init(changed, &attributes) == 0, "pthread_cond_init")
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    func withLock<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Lets the others in until one of them calls `wakeAll`. Holding the lock.
    func wait() { pthread_cond_wait(changed, mutex) }

    /// The same, at most until then by the monotonic clock.
    ///
    /// - Returns: `false`: it is later.
    func wait(until deadline: inout timespec) -> Bool {
        pthread_cond_timedwait(changed, mutex, &deadline) != ETIMEDOUT
    }

    func wakeAll() { pthread_cond_broadcast(changed) }
}

/// A gate that opens once and stays open: threads wait at it. For the end of a thread, and for
/// tests, which wait with a deadline instead of sleeping. Never wait on a loop's thread.
public final class Latch: @unchecked Sendable {
    // @unchecked: `remaining` is only touched while holding `monitor`.
    private let monitor = Monitor()
    private var remaining: Int

    /// A gate that opens after `count` calls of `arrive`.
    public init(count: Int = 1) { remaining = count }

    /// Counts one arrival; the last expected one opens the gate for good. From any thread.
    public func arrive() {
        monitor.withLock {
            if remaining > 0 { remaining -= 1 }
            if remaining == 0 { monitor.wakeAll() }
        }
    }

    /// Waits until the gate is open.
    public func wait() {
        monitor.withLock { while remaining > 0 { monitor.wait() } }
    }

    /// Waits until the gate is open or `seconds` have passed. False: it is still closed.
    public func wait(seconds: Int) -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        deadline.tv_sec += seconds
        return monitor.withLock {
            while remaining > 0, monitor.wait(until: &deadline) {}
            return remaining == 0
        }
    }
}

/// Threads that come one after the other, in the order in which they took a number. For threads
/// that may wait; never for a loop that serves connections.
public final class Turns: @unchecked Sendable {
    // @unchecked: the fields are only touched while holding `monitor`.
    private let monitor = Monitor()
    private var last: UInt64 = 0
    /// Numbers taken and not given back, ascending: as many as there are threads.
    private var open: [UInt64] = []

    public init() {}

    /// The next number.
    public func enter() -> UInt64 {
        monitor.withLock {
            last += 1
            open.append(last)
            return last
        }
    }

    /// Waits until all smaller numbers are given back.
    public func await(_ number: UInt64) {
        monitor.withLock { while let first = open.first, first < number { monitor.wait() } }
    }

    /// Gives the number back.
    public func leave(_ number: UInt64) {
        monitor.withLock {
            open.removeAll { $0 == number }
            monitor.wakeAll()
        }
    }
}
