import EventLoop
import Glibc

/// Nanoseconds of the clock that never goes back.
func monotonicNanoseconds() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }

/// Nanoseconds of the processor that this process has used.
func ownProcessorNanoseconds() -> UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

private func nanoseconds(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Moments of a schedule, each told to the loop within some 0.1 ms: a loop's own timers know
/// milliseconds only, which would be most of what a fast server's answer takes. A thread sleeps
/// until each moment and writes into a pipe. Loop-confined but for that thread.
final class Metronome {
    private let watch: DescriptorWatch
    private let reading: Int32

    /// - Parameter beat: some moments have come; how many, the caller's clock tells.
    init(
        loop: Loop, start: UInt64, nanoseconds: UInt64, beats: Int, beat: @escaping () -> Void
    ) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw ScenarioError("no pipe: errno \(errno)") }
        let (reading, writing) = (ends[0], ends[1])
        self.reading = reading
        do {
            watch = try DescriptorWatch(loop: loop, descriptor: reading) { _ in
                var bytes = [UInt8](repeating: 0, count: 4_096)
                if read(reading, &bytes, bytes.count) > 0 { beat() }
            }
        } catch {
            Glibc.close(reading)
            Glibc.close(writing)
            throw error
        }
        WorkThread.start("metronome") {
            defer { Glibc.close(writing) }
            for number in 0..<beats {
                let at = start + UInt64(number) * nanoseconds
                var moment = timespec(
                    tv_sec: Int(at / 1_000_000_000), tv_nsec: Int(at % 1_000_000_000))
                while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nil) == EINTR {}
                var byte: UInt8 = 1
                // Once the loop has closed its end this fails (the loop ignores SIGPIPE).
                if write(writing, &byte, 1) != 1 { return }
            }
        }
        watch.start(.readable)
    }

    func close() {
        watch.close()
        Glibc.close(reading)
    }
}
