import Glibc

/// How a server divides the descriptors that it may open.
///
/// What others open has a share of its own each: where devices could take all that is left, an API
/// with places on paper would stand still at the system's limit, and its probes with it.
public struct DescriptorShares: Equatable, Sendable {
    /// Connections of the apps' backends, and of the console's browsers.
    public let backends: Int
    public let console: Int
    /// The store's files or connections, pushes, webhooks, what the loops wait with, and a look
    /// around.
    public let own: Int
    /// The rest: connections of devices.
    public let devices: Int

    /// What one loop takes: what it waits with and is woken by, and its two listeners.
    private static let perLoop = 7

    /// - Parameters:
    ///   - webhooks: deliveries under way at most.
    ///   - loops: for device connections.
    public init(of descriptors: Int, webhooks: Int, loops: Int) {
        backends = min(512, descriptors / 8)
        console = min(128, descriptors / 32)
        own = min(224, descriptors / 5) + webhooks + Self.perLoop * loops
        devices = max(1, descriptors - backends - console - own)
    }
}

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
