import Model
import Testing

@testable import Wake

/// A zone whose clocks go forward and back, as Berlin's did in 2026.
struct OneZone: ZoneClock {
    /// Seconds since 1970: 2026-03-29T01:00Z and 2026-10-25T01:00Z.
    static let spring: UInt64 = 1_774_746_000
    static let autumn: UInt64 = 1_792_890_000

    func offset(of zone: String, at time: Timestamp) -> Int64? {
        switch zone {
        case "UTC": return 0
        case "Far/East": return 14 * 3_600
        case "Berlin":
            let seconds = time.milliseconds / 1_000
            return (Self.spring..<Self.autumn).contains(seconds) ? 7_200 : 3_600
        // Forward by an hour at midnight, on the day of Berlin's spring.
        case "Midnight":
            return time.milliseconds / 1_000 < Self.spring ? 3_600 : 7_200
        default: return nil
        }
    }
}

@Suite struct AlertTimingTests {
    private let day: UInt64 = 86_400_000
    /// 2026-03-28T00:00Z and 2026-10-25T00:00Z.
    private let saturday: UInt64 = 1_774_656_000_000
    private let sunday: UInt64 = 1_792_886_400_000

    private func instant(
        _ wall: UInt64, in zone: String = "", offset: UInt64 = 0, daily: Bool = false,
        otherwise: String = "", published: UInt64 = 0
    ) -> UInt64 {
        LocalMoment(wall: wall, isDaily: daily, zone: otherwise).instant(
            zone: zone, offset: offset, published: Timestamp(milliseconds: published),
            zones: OneZone()
        ).milliseconds
    }

    private func hours(_ count: UInt64, _ minutes: UInt64 = 0) -> UInt64 {
        count * 3_600_000 + minutes * 60_000
    }

    @Test func aTimeIsThatOfTheDevicesOwnWall() {
        #expect(instant(saturday + hours(9), in: "Berlin") == saturday + hours(8))
        #expect(instant(sunday - day + hours(9), in: "Berlin") == sunday - day + hours(7))
        #expect(instant(saturday + hours(9), in: "Far/East") == saturday - hours(5))
    }

    @Test func whoHasNotSaidWhereItIsGetsTheOffsetThenTheNamedZoneThenUTC() {
        let wall = saturday + hours(9)
        // 1,440 is UTC; two hours west of it.
        #expect(instant(wall, offset: 1_320, otherwise: "Berlin") == wall + hours(2))
        #expect(instant(wall, in: "Nowhere", offset: 1_320) == wall + hours(2))
        #expect(instant(wall, in: "Nowhere", otherwise: "Berlin") == wall - hours(1))
        #expect(instant(wall) == wall)
        #expect(instant(wall, otherwise: "Nowhere") == wall)
        #expect(instant(wall, in: "Berlin", offset: 1_320) == wall - hours(1))
    }

    @Test func aTimeThatTheClocksPassOverComesAsMuchLater() {
        let sunday = saturday + day
        // 02:30 does not exist: 03:30 of summer time, 01:30Z.
        #expect(instant(sunday + hours(2, 30), in: "Berlin") == sunday + hours(1, 30))
        #expect(instant(sunday + hours(1, 59), in: "Berlin") == sunday + hours(0, 59))
        #expect(instant(sunday + hours(3), in: "Berlin") == sunday + hours(1))
    }

    @Test func aTimeThatComesTwiceIsTheFirst() {
        #expect(instant(sunday + hours(2, 30), in: "Berlin") == sunday + hours(0, 30))
        #expect(instant(sunday + hours(2), in: "Berlin") == sunday)
        #expect(instant(sunday + hours(3), in: "Berlin") == sunday + hours(2))
    }

    @Test func aTimeOfDayIsTheFirstAfterThePublish() {
        func nine(_ published: UInt64, _ zone: String = "Berlin") -> UInt64 {
            instant(hours(9), in: zone, daily: true, published: published)
        }
        #expect(nine(saturday) == saturday + hours(8))
        #expect(nine(saturday + hours(8)) == saturday + hours(8))
        // The next one comes after a day of 23 hours.
        #expect(nine(saturday + hours(8) + 1) == saturday + day + hours(7))
        #expect(nine(sunday - day + hours(12)) == sunday + hours(8))
        // On that wall it is Saturday afternoon already.
        #expect(nine(saturday, "Far/East") == saturday + day - hours(5))
        #expect(nine(saturday, "UTC") == saturday + hours(9))
    }

    @Test func yesterdaysTimeThatCameTodayIsNotPassedOver() {
        // Where that zone's clocks go from 02:00 to 03:00 on the day; 02:59 comes at 03:59.
        let sunday = saturday + day
        #expect(
            instant(hours(2, 59), in: "Midnight", daily: true, published: sunday + hours(1, 30))
                == sunday + hours(1, 59))
    }

    @Test func noNumberOfARowTraps() {
        for wall in [0, 1, UInt64.max, UInt64.max >> 1] {
            for daily in [true, false] {
                for published in [0, UInt64.max >> 1, UInt64.max] {
                    _ = instant(wall, in: "Far/East", daily: daily, published: published)
                }
            }
        }
    }

    @Test func itEndsAtTheEarlierOfItsEnds() {
        let shown = Timestamp(milliseconds: 1_000)
        #expect(AlertTiming().expiry(from: shown) == nil)
        let absolute = Timestamp(milliseconds: 1_500)
        #expect(AlertTiming(expires: absolute).expiry(from: shown) == absolute)
        #expect(AlertTiming(lifetime: 200).expiry(from: shown)?.milliseconds == 1_200)
        #expect(
            AlertTiming(expires: absolute, lifetime: 700).expiry(from: shown) == absolute)
        #expect(
            AlertTiming(expires: absolute, lifetime: 200).expiry(from: shown)?.milliseconds
                == 1_200)
    }

    @Test func aTimingIsKeptInARow() throws {
        let time = Timestamp(milliseconds: 1_795_000_000_123)
        for timing in [
            AlertTiming(), AlertTiming(moment: .at(time), expires: time, lifetime: 60_000),
            AlertTiming(
                moment: .local(LocalMoment(wall: 32_400_000, isDaily: true, zone: "Berlin"))),
            AlertTiming(moment: .local(LocalMoment(wall: 7, isDaily: false)), lifetime: 1),
        ] {
            var options = PushOptions()
            options.timing = timing
            options.thread = "x"
            let bytes = options.encoded
            #expect(PushOptions(encoded: bytes) == options)
            #expect(PushOptions.timing(of: bytes) == timing)
        }
        #expect(PushOptions().encoded.isEmpty)
    }

    @Test func whatNeverAlertsHasNoTimeForIt() {
        var options = PushOptions()
        options.timing.moment = .at(Timestamp(milliseconds: 1))
        #expect(options.problem(title: "", body: "x") == nil)
        options.urgency = .passive
        #expect(options.problem(title: "", body: "x") != nil)
    }
}
