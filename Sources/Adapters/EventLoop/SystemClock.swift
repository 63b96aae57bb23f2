import CUV
import Glibc

/// The system's two clocks. A loop's own `now` is cheaper and the same within one turn; these are
/// for places without a loop and for times that leave the process.
public enum SystemClock {
    /// Milliseconds since some moment before the process; never goes back. The clock of `Loop.now`.
    public static func monotonicMilliseconds() -> UInt64 { milliseconds(CLOCK_MONOTONIC) }

    /// Milliseconds since 1970 in UTC; may jump when the host's clock is set.
    public static func wallMilliseconds() -> UInt64 { milliseconds(CLOCK_REALTIME) }

    private static func milliseconds(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        precondition(clock_gettime(clock, &time) == 0, "clock_gettime(\(clock))")
        // Both fields are negative only on a host whose clock stands before 1970.
        return UInt64(max(0, time.tv_sec)) * 1000 + UInt64(max(0, time.tv_nsec)) / 1_000_000
    }
}
