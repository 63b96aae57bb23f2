import CUV
import Glibc

/// The supervisor that started this process, if it speaks systemd's protocol: it may hold sockets
/// over restarts (sd_listen_fds(3)), and wants to hear when the process is ready and that it still
/// moves (sd_notify(3)). Both are plain enough to need no library.
public struct Supervisor: Sendable {
    /// Where it hears; `nil`: nowhere.
    private let notices: String?
    /// Milliseconds within which it wants a sign of life; `nil`: it wants none.
    public let watchdog: UInt64?
    /// Listening sockets that it holds, by the names it gives them: of one unit with several
    /// addresses all have the same.
    public let sockets: [String: [Int32]]

    /// The first descriptor that is passed (SD_LISTEN_FDS_START).
    private static let firstSocket: Int32 = 3

    /// Sockets taken at most.
    private static let socketsMax: Int32 = 16

    /// - Parameters:
    ///   - environment: the process's variables.
    ///   - process: its id, `nil`: this one's; what is meant for another one is ignored.
    public init(environment: [String: String], process: Int32? = nil) {
        let process = process ?? getpid()
        func isMeant(_ variable: String) -> Bool {
            environment[variable].map { Int32($0) == process } ?? false
        }
        notices = environment["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        let wanted = environment["WATCHDOG_USEC"].flatMap { UInt64($0) }.map { $0 / 1_000 }
        let isWatched = environment["WATCHDOG_PID"] == nil || isMeant("WATCHDOG_PID")
        watchdog = isWatched ? wanted.flatMap { $0 > 0 ? $0 : nil } : nil
        var sockets: [String: [Int32]] = [:]
        if isMeant("LISTEN_PID"), let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }) {
            let names = (environment["LISTEN_FDNAMES"] ?? "").split(
                separator: ":", omittingEmptySubsequences: false)
            for index in 0..<min(max(count, 0), Self.socketsMax) {
                let name = Int(index) < names.count ? String(names[Int(index)]) : ""
                sockets[name.isEmpty ? "\(index)" : name, default: []].append(
                    Self.firstSocket + index)
            }
        }
        self.sockets = sockets
    }

    /// Tells it something, such as `READY=1`. Nobody waits for it: a supervisor that does not
    /// listen misses it.
    public func tell(_ notice: String) {
        guard let notices else { return }
        var path = Array(notices.utf8)
        // An abstract name begins with a zero byte (unix(7)).
        if path[0] == UInt8(ascii: "@") { path[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let descriptor = socket(
            AF_UNIX, rouse_sock_datagram() | rouse_sock_nonblock_cloexec(), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let start = MemoryLayout<sockaddr_un>.offset(of: \sockaddr_un.sun_path) ?? 2
        let length = socklen_t(start + path.count)
        let bytes = Array(notice.utf8)
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = sendto(descriptor, bytes, bytes.count, 0, $0, length)
            }
        }
    }
}
