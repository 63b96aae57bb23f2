import EventLoop
import Glibc

/// What Prometheus' own clients tell of every program, by the same names.
public enum ProcessMetrics {
    public static func register(_ metrics: Metrics) {
        metrics.reading(
            "process_cpu_seconds_total",
            "Processor time used, by the program and by the kernel for it.", isCounter: true
        ) { cpuSeconds }
        metrics.reading("process_resident_memory_bytes", "Memory in use that is in RAM.") {
            Double(memoryPages(field: 1) * pageSize)
        }
        metrics.reading("process_virtual_memory_bytes", "Address space in use.") {
            Double(memoryPages(field: 0) * pageSize)
        }
        metrics.reading("process_open_fds", "Open file descriptors.") {
            Double(Descriptors.openCount ?? 0)
        }
        metrics.reading("process_max_fds", "The most file descriptors that may be open.") {
            Double(Descriptors.limit)
        }
        let started = startSeconds
        metrics.reading(
            "process_start_time_seconds", "When the process began, in seconds since 1970."
        ) { started }
    }

    private static var cpuSeconds: Double {
        var usage = rusage()
        guard getrusage(RUSAGE_SELF.rawValue, &usage) == 0 else { return 0 }
        return [usage.ru_utime, usage.ru_stime].reduce(0) {
            $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1_000_000
        }
    }

    private static var pageSize: Int { sysconf(Int32(_SC_PAGESIZE)) }

    /// Of /proc/self/statm: 0 the whole address space, 1 what is in RAM.
    private static func memoryPages(field: Int) -> Int {
        let fields = text(of: "/proc/self/statm").split(separator: " ")
        return fields.count > field ? Int(fields[field]) ?? 0 : 0
    }

    /// What the clock of the boot says now and said at the start, in ticks, told by the wall clock.
    /// The boot's own time in /proc/stat is hidden from a confined process.
    private static var startSeconds: Double {
        // The program's name, in parentheses, may hold anything; two fields stand before its end.
        let own = text(of: "/proc/self/stat")
        var uptime = timespec()
        guard let name = own.lastIndex(of: ")"), clock_gettime(CLOCK_BOOTTIME, &uptime) == 0
        else { return 0 }
        let fields = own[own.index(after: name)...].split(separator: " ")
        guard fields.count > 19, let ticks = Double(fields[19]) else { return 0 }
        let age =
            Double(uptime.tv_sec) + Double(uptime.tv_nsec) / 1_000_000_000
            - ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
        return Double(SystemClock.wallMilliseconds()) / 1000 - age
    }

    /// A short file of /proc; "": none.
    private static func text(of path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = read(file, &buffer, buffer.count)
        return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }
}
