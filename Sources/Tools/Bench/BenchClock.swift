import Glibc

/// The clocks that figures are taken from, in nanoseconds.
enum BenchClock {
    static func monotonic() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }
    /// The processor time of this thread; what other threads did meanwhile is not in it.
    static func processor() -> UInt64 { nanoseconds(CLOCK_THREAD_CPUTIME_ID) }
    static func wall() -> UInt64 { nanoseconds(CLOCK_REALTIME) }

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
