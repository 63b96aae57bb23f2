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
}
