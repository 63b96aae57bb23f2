import Crypto
import EventLoop
import FoundationEssentials
import Glibc
import SyncService
import Telemetry

/// Certificate and key as they were read.
struct ServerCertificate {
    let material: TLSMaterial
    let end: CertificateEnd
}

/// When a certificate is over, in milliseconds since 1970.
struct CertificateEnd: Equatable, Sendable {
    let at: Int64

    /// Who renews by hand needs some days for it, and who renews by a program wants to hear before
    /// the end that it does not.
    static let toldAhead: Int64 = 14 * day
    static let day: Int64 = 86_400_000

    /// Whole seconds that are left; negative: it is over since.
    func secondsLeft(_ wall: UInt64) -> Int64 {
        let left = at - Int64(clamping: wall)
        return (left - (left < 0 ? 999 : 0)) / 1000
    }

    func isOver(_ wall: UInt64) -> Bool { at <= Int64(clamping: wall) }

    /// Whether it ends so soon that somebody has to hear of it.
    func isNear(_ wall: UInt64) -> Bool { at - Int64(clamping: wall) <= Self.toldAhead }

    /// What is left of a certificate that is not over, for people.
    func leftText(_ wall: UInt64) -> String {
        let seconds = max(0, secondsLeft(wall))
        for (unit, size) in [("days", Int64(86_400)), ("hours", 3_600)] where seconds >= 2 * size {
            return "\(seconds / size) \(unit)"
        }
        return "\(seconds) s"
    }

    /// As people and scripts read it, in UTC.
    var text: String {
        Date(timeIntervalSince1970: Double(at / 1000)).formatted(.iso8601)
    }
}

/// When the end of a certificate is told: with it, once a day before, and when it has come.
struct CertificateReminder {
    private var told: (end: CertificateEnd, at: UInt64, wasOver: Bool)?

    /// Whether it is to be told now; then it counts as told.
    mutating func isDue(_ end: CertificateEnd, wall: UInt64) -> Bool {
        guard end.isNear(wall) else {
            told = nil
            return false
        }
        if let told, told.end == end, told.wasOver == end.isOver(wall),
            wall >= told.at, wall - told.at < UInt64(CertificateEnd.day)
        {
            return false
        }
        told = (end, wall, end.isOver(wall))
        return true
    }
}

/// What tells one state of a file from another, without reading it.
struct FileMark: Equatable, Sendable {
    private let device: UInt
    private let node: UInt
    private let size: Int
    private let modified: [Int]
    private let changed: [Int]

    /// Of what a link leads to: a secret of Kubernetes is renewed by another link. `nil`: there is
    /// no such file.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt(status.st_dev)
        node = UInt(status.st_ino)
        size = Int(status.st_size)
        modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
        changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
    }
}

/// Tells when files have changed and stand still again: who renews them writes one after the
/// other, and perhaps not each at once.
struct FileLooks {
    private var judged: [FileMark?]
    private var seen: [FileMark?]
    /// What was judged last may be judged otherwise at another time.
    private var isOpen = false

    init(_ marks: [FileMark?]) { (judged, seen) = (marks, marks) }

    /// Whether this is another state than the one judged last, and the last look found it, too.
    /// Then it counts as judged.
    mutating func isSettledChange(_ marks: [FileMark?]) -> Bool {
        defer { seen = marks }
        guard marks != judged || isOpen, marks == seen else { return false }
        judged = marks
        isOpen = false
        return true
    }

    /// What was judged last is looked at again: it was refused for what passes with time.
    mutating func leaveOpen() { isOpen = true }
}

/// The certificate in force: when it ends, and whether its files are others by now.
final class CertificateKeeper: Sendable {
    private let log: Log
    private let lock = Lock()
    private nonisolated(unsafe) var current: CertificateEnd  // guarded by `lock`
    private nonisolated(unsafe) var reminder = CertificateReminder()  // guarded by `lock`
    private nonisolated(unsafe) var looks: FileLooks  // guarded by `lock`
    /// Why files were refused, as it was told; guarded by `lock`.
    private nonisolated(unsafe) var refusal: String?

    /// - Parameter marks: the marks of the files, taken before the files were read.
    init(_ certificate: ServerCertificate, _ marks: [FileMark?], log: Log, metrics: Metrics) {
        self.log = log
        current = certificate.end
        looks = FileLooks(marks)
        metrics.reading(
            "rouse_tls_certificate_expires_seconds",
            "Until the server's certificate ends; negative: it is over since."
        ) { [weak self] in
            Double(self?.end.secondsLeft(SystemClock.wallMilliseconds()) ?? 0)
        }
    }

    /// The end of the certificate in force.
    var end: CertificateEnd { lock.withLock { current } }

    static func marks(_ configuration: Configuration) -> [FileMark?] {
        [FileMark(configuration.certificateFile), FileMark(configuration.privateKeyFile)]
    }

    /// Another one is in force, and whatever is to be told of it is told anew.
    func took(_ certificate: ServerCertificate, _ marks: [FileMark?]) {
        lock.withLock {
            current = certificate.end
            looks = FileLooks(marks)
            reminder = CertificateReminder()
            refusal = nil
        }
    }

    /// The files are not taken.
    ///
    /// - Parameter isOfTime: they are looked at again: the clock may be put right, or their time
    ///   may come.
    /// - Returns: whether that has to be told; the same is told once.
    func refused(_ problem: String, isOfTime: Bool) -> Bool {
        lock.withLock {
            if isOfTime { looks.leaveOpen() }
            defer { refusal = isOfTime ? problem : nil }
            return refusal != problem
        }
    }

    /// Whether the files have become others than those judged last.
    func haveFilesChanged(_ marks: [FileMark?]) -> Bool {
        lock.withLock { looks.isSettledChange(marks) }
    }

    /// Says that the end is near or has come, where that is due.
    func remind(_ configuration: Configuration) {
        let wall = SystemClock.wallMilliseconds()
        let (end, isDue) = lock.withLock { (current, reminder.isDue(current, wall: wall)) }
        guard isDue else { return }
        let fields = [
            LogField("file", configuration.certificateFile), LogField("end", end.text),
            LogField("seconds_left", end.secondsLeft(wall)),
        ]
        if end.isOver(wall) {
            log.error(
                "tls.certificate_over",
                fields + [
                    LogField("advice", "devices refuse it; renew the files tls.* names")
                ])
        } else {
            log.warning("tls.certificate_ends", fields)
        }
    }
}

// A renewed certificate is in force without a signal, which nothing sends in a container.
extension Server {
    /// Looks whether the certificate files were renewed, and how long the certificate in force is
    /// good. Whoever runs the server calls it every `certificateInterval`, from one thread.
    public func lookAtCertificate() {
        let now = configuration
        let marks = CertificateKeeper.marks(now)
        if certificates.haveFilesChanged(marks) {
            do {
                let renewed = try Self.certificate(now)
                try use(renewed, marks)
                log.info("tls.certificate_reloaded", [LogField("end", renewed.end.text)])
            } catch {
                let isOfTime = (error as? ServerError)?.isOfTime ?? false
                if certificates.refused("\(error)", isOfTime: isOfTime) {
                    log.error(
                        "tls.certificate_refused",
                        [LogField("problem", "\(error)"), LogField("kept", "the old one")])
                }
            }
        }
        certificates.remind(now)
    }

    /// Milliseconds from a look at the files to the next: a renewal is in force after two.
    public static let certificateInterval: UInt64 = 5_000
}
