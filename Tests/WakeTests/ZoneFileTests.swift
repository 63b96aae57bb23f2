import Testing

@testable import Wake

/// Files of time zones, built by hand (RFC 8536). RouseServerTests holds those of the system to
/// what another library says.
@Suite struct ZoneFileTests {
    private static func number(_ value: Int64, _ width: Int) -> [UInt8] {
        (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    /// - Parameter changes: moments, and the index of the offset that holds from there.
    private static func file(
        _ changes: [(Int64, UInt8)], _ offsets: [Int32], _ rule: String, version: Character = "2",
        leaps: Int64 = 0
    ) -> [UInt8] {
        func header(_ times: Int, _ types: Int) -> [UInt8] {
            Array("TZif\(version)".utf8) + [UInt8](repeating: 0, count: 15)
                + [0, 0, leaps, Int64(times), Int64(types), 4].flatMap { number($0, 4) }
        }
        let old = header(0, 1) + [0, 0, 0, 0, 0, 0] + Array("UTC\0".utf8)
        return old + header(changes.count, offsets.count)
            + changes.flatMap { number($0.0, 8) } + changes.map(\.1)
            + offsets.flatMap { number(Int64($0), 4) + [0, 0] } + Array("ABC\0\n\(rule)\n".utf8)
    }

    @Test("before the first change, between changes, and by the rule after the last")
    func changes() throws {
        let zone = try #require(
            ZoneFile(Self.file([(100, 1), (200, 2)], [600, 1_200, 1_800], "<+01>-1")))
        #expect(
            [-5, 99, 100, 199, 200, 5_000].map { zone.offset(at: $0) }
                == [600, 600, 1_200, 1_200, 3_600, 3_600])
        let bare = try #require(ZoneFile(Self.file([(100, 1)], [600, 1_200], "")))
        #expect([99, 100, 900].map { bare.offset(at: $0) } == [600, 1_200, 1_200])
        let only = try #require(ZoneFile(Self.file([], [600], "")))
        #expect(only.offset(at: 0) == 600)
    }

    @Test(
        "rules of all kinds",
        arguments: [
            // 2026-01-01T00:00Z is 1,767,225,600; its 60th day is the 1st of March.
            ("AAA0BBB,60/0,61/0", 1_767_225_600 + 60 * 86_400, 3_600),
            ("AAA0BBB,60/0,61/0", 1_767_225_600 + 60 * 86_400 - 1, 0),
            ("AAA0BBB,J60/0,J61/0", 1_767_225_600 + 59 * 86_400, 3_600),
            // 2028 is a leap year: the 60th day that is counted is the 1st of March again.
            ("AAA0BBB,J60/0,J61/0", 1_830_297_600 + 59 * 86_400, 0),
            ("AAA0BBB,J60/0,J61/0", 1_830_297_600 + 60 * 86_400, 3_600),
            // Hours beyond a day, and before it.
            ("AAA0BBB,J1/-1,J2/25", 1_767_225_600 + 2 * 86_400 - 1, 3_600),
            ("AAA0BBB,J1/-1,J2/25", 1_767_225_600 + 2 * 86_400, 0),
            // South of the equator summer goes over the new year.
            ("AAA-10BBB,M10.1.0,M4.1.0/3", 1_767_225_600, 39_600),
            ("AAA-10BBB,M10.1.0,M4.1.0/3", 1_767_225_600 + 150 * 86_400, 36_000),
            // An offset of its own, and the last Sunday of a month.
            ("<-0330>3:30BBB2:30:30,M3.5.0,M10.5.0", 1_767_225_600 + 150 * 86_400, -9_030),
        ] as [(String, Int64, Int64)])
    func rules(_ rule: String, _ moment: Int64, _ offset: Int64) throws {
        let zone = try #require(ZoneFile(Self.file([], [0], rule)))
        #expect(zone.offset(at: moment) == offset)
    }

    @Test(
        "what is no rule is no file",
        arguments: [
            "A0", "AAA", "AAA25", "AAA0BBB", "AAA0BBB,M13.1.0,M4.1.0", "AAA0BBB,J0,J1",
            "AAA0BBB,J1", "AAA0BBB,J1,J2,J3", "AAA0BBB,M1.6.0,M2.1.0", "<AAA0", "AAA0:60",
            "AAA0BBB,1/168,2", "AAA0BBB,9999999999,2",
        ])
    func brokenRules(_ rule: String) { #expect(ZoneFile(Self.file([], [0], rule)) == nil) }

    @Test("no file that is cut short, of the first version, out of order or with leap seconds")
    func brokenFiles() {
        let whole = Self.file([(100, 1), (200, 0)], [600, 1_200], "AAA0")
        #expect(ZoneFile(whole) != nil)
        for length in 0..<whole.count - 6 { #expect(ZoneFile(Array(whole.prefix(length))) == nil) }
        #expect(ZoneFile(Self.file([], [0], "AAA0", version: "\0")) == nil)
        #expect(ZoneFile(Self.file([(200, 0), (100, 0)], [0], "AAA0")) == nil)
        #expect(ZoneFile(Self.file([(100, 1)], [0], "AAA0")) == nil)
        #expect(ZoneFile(Self.file([], [0], "AAA0", leaps: 1)) == nil)
        #expect(ZoneFile(Self.file([], [], "AAA0")) == nil)
        #expect(ZoneFile([UInt8](repeating: 0x54, count: 100_000)) == nil)
    }

    @Test("no moment traps, however far away it is", arguments: ["AAA0BBB,M3.5.0,M10.5.0", "AAA0"])
    func far(_ rule: String) throws {
        let zone = try #require(ZoneFile(Self.file([], [0], rule)))
        for moment in [Int64(UInt64.max / 1_000), -62_135_596_800, 253_402_300_800] {
            #expect((0...3_600).contains(zone.offset(at: moment)))
        }
    }
}
