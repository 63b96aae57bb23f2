import Glibc

/// The process's file descriptors: each connection takes one.
public enum Descriptors {
    /// Raises the soft limit to the hard one and returns what holds now. A refusal of the system
    /// leaves the old limit, which is then returned: the caller reports it.
    public static func raiseLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 {
                limit = raised
            }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// The soft limit.
    public static var limit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return Int(clamping: limit.rlim_cur)
    }

    /// How many descriptors are open now (from /proc/self/fd); nil when that cannot be read.
    public static var openCount: Int? {
        // Linux 6.2 and newer tells the number without a walk over all of them.
        var status = stat()
        if stat("/proc/self/fd", &status) == 0, status.st_size > 0 { return Int(status.st_size) }
        guard let directory = opendir("/proc/self/fd") else { return nil }
        defer { closedir(directory) }
        var entries = 0
        while readdir(directory) != nil { entries += 1 }
        // ".", ".." and the descriptor of this very listing are not the caller's.
        return max(0, entries - 3)
    }
}
