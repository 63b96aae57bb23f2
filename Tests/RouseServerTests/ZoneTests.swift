import EventLoop
import Foundation
import Model
import Testing
import Wake

@testable import RouseServer

/// The zones of the system, as the core asks for them.
@Suite struct ZoneTests {
    private let zones = SystemZones()

    @Test("summer time begins and ends when it does", arguments: 0..<2)
    func summerTime(_ round: Int) {
        func hours(_ zone: String, _ seconds: UInt64) -> Int64? {
            zones.offset(of: zone, at: Timestamp(milliseconds: seconds * 1_000)).map {
                $0 / 3_600
            }
        }
        // 2026-03-29T01:00Z and 2026-10-25T01:00Z.
        #expect(hours("Europe/Berlin", 1_774_745_999) == 1)
        #expect(hours("Europe/Berlin", 1_774_746_000) == 2)
        #expect(hours("Europe/Berlin", 1_792_889_999) == 2)
        #expect(hours("Europe/Berlin", 1_792_890_000) == 1)
        #expect(hours("America/New_York", 1_774_746_000) == -4)
        #expect(hours("UTC", 1_774_746_000) == 0)
        #expect(hours("Europe/Atlantis", 1_774_746_000) == nil)
        #expect(hours("", 1_774_746_000) == nil)
    }

    @Test("a time that Berlin's clocks pass over, and one that comes twice")
    func gapAndOverlap() {
        func instant(_ wall: UInt64) -> UInt64 {
            LocalMoment(wall: wall * 1_000, isDaily: false).instant(
                zone: "Europe/Berlin", offset: 0, published: Timestamp(milliseconds: 0),
                zones: zones
            ).milliseconds / 1_000
        }
        // 02:30 of each day, as if it were UTC.
        #expect(instant(1_774_746_000 + 5_400) == 1_774_746_000 + 1_800)
        #expect(instant(1_792_890_000 + 5_400) == 1_792_890_000 - 1_800)
    }

    @Test("every zone of the system says what Python's zoneinfo says of it")
    func oracle() throws {
        // Every 19 days and some hours from 1971 to 2060, so that each month and each hour comes.
        let moments = stride(from: UInt64(31_536_000), to: 2_840_140_800, by: 1_658_111)
        let program = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("peers/zones.py").path
        let python = try ChildProcess(
            ["/usr/bin/python3", program] + moments.map { "\($0)" }, output: .pipe)
        let lines = String(decoding: python.readToEnd(), as: UTF8.self).split(separator: "\n")
        #expect(python.waitForEnd() == .exit(0))
        #expect(lines.count > 400)
        for line in lines {
            let words = line.split(separator: " ")
            let zone = String(words[0])
            let found = moments.map {
                zones.offset(of: zone, at: Timestamp(milliseconds: $0 * 1_000))
            }
            #expect(found == words.dropFirst().map { Int64($0) }, "\(zone)")
        }
    }

    @Test(
        "no file but a zone's is read, whatever a device calls its zone",
        arguments: [
            "../../../etc/passwd", "/usr/share/zoneinfo/UTC", "Europe/../UTC", "Europe", "zone.tab",
            "Europe//Berlin", "right/UTC", "posix/UTC", "UTC\0", "Europe/Berlin/", ".", "tzdata.zi",
            String(repeating: "a", count: 4_000), "leapseconds", "localtime",
        ])
    func strange(_ name: String) {
        #expect(zones.offset(of: name, at: Timestamp(milliseconds: 0)) == nil)
    }

    @Test("no files, no zones")
    func none() {
        let empty = SystemZones(folder: "/nonexistent")
        #expect(!empty.areThere)
        #expect(empty.offset(of: "UTC", at: Timestamp(milliseconds: 0)) == nil)
        #expect(zones.areThere)
    }
}
