import EventLoop
import Glibc
import Model
import Wake

/// The time zones that the system knows: the files of its package tzdata, which follow the laws
/// that set the clocks as long as the system is kept up to date.
final class SystemZones: ZoneClock {
    /// Zones are kept once they were asked for; there are fewer names than this.
    private static let keptMax = 2_048

    private let folder: String
    private let lock = Lock()
    private nonisolated(unsafe) var known: [ExactText: ZoneFile] = [:]  // guarded by `lock`

    init(folder: String = "/usr/share/zoneinfo") { self.folder = folder }

    /// Whether there are any.
    var areThere: Bool { read("UTC") != nil }

    func offset(of zone: String, at time: Timestamp) -> Int64? {
        let found = lock.withLock { () -> ZoneFile? in
            let name = ExactText(zone)
            if let found = known[name] { return found }
            let found = read(zone)
            // A name that is none costs no more than a look: it may be anything.
            if let found, known.count < Self.keptMax { known[name] = found }
            return found
        }
        return found?.offset(at: Int64(time.milliseconds / 1_000))
    }

    private func read(_ zone: String) -> ZoneFile? {
        guard Self.isName(zone), let handle = fopen("\(folder)/\(zone)", "rbe") else { return nil }
        defer { fclose(handle) }
        let bytes = [UInt8](unsafeUninitializedCapacity: ZoneFile.bytesMax + 1) { buffer, count in
            count = fread(buffer.baseAddress, 1, buffer.count, handle)
        }
        return ZoneFile(bytes)
    }

    /// Names come from devices and backends: nothing but a zone of the folder may be opened.
    private static func isName(_ zone: String) -> Bool {
        guard zone.utf8.count <= 64, zone != "localtime", zone != "posixrules" else { return false }
        return zone.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { step in
            !step.isEmpty && step != "posix" && step != "right"
                && step.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"),
                        UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
                        UInt8(ascii: "+"), UInt8(ascii: "-"):
                        true
                    default: false
                    }
                }
        }
    }
}
