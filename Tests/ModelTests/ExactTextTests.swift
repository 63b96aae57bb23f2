import Model
import Testing

/// Names are what their bytes are: "é" of one code point and "é" of two are two names.
@Suite struct ExactTextTests {
    static let composed = "caf\u{e9}"
    static let decomposed = "cafe\u{301}"

    @Test func stringsTakeThemForOne() {
        #expect(Self.composed == Self.decomposed)
        #expect(!Self.composed.isExactly(Self.decomposed))
        #expect(Self.composed.isExactly("caf\u{e9}"))
        #expect(![Self.composed].containsExactly(Self.decomposed))
    }

    @Test func namesOfUsersAndAppsAreTwo() {
        #expect(UserID(Self.composed) != UserID(Self.decomposed))
        #expect(Set([UserID(Self.composed), UserID(Self.decomposed)]).count == 2)
        #expect(AppID(Self.composed) != AppID(Self.decomposed))
        #expect(Set([AppID(Self.composed), AppID(Self.decomposed)]).count == 2)
        #expect(UserID(Self.composed) == UserID("caf\u{e9}"))
    }

    @Test func columnsCompareAsEnginesDo() {
        let (left, right) = (ColumnValue.text(Self.composed), ColumnValue.text(Self.decomposed))
        #expect(left != right)
        #expect(Set([left, right]).count == 2)
        #expect(left == .text("caf\u{e9}"))
        #expect(ColumnValue.null != .integer(0))
        #expect(ColumnValue.integer(7) == .integer(7))
        #expect(ColumnValue.blob([1]) != .blob([1, 0]))
    }

    @Test func theOrderIsThatOfTheBytes() {
        // By canonical order the accent would come first.
        let names = ["z", Self.composed, Self.decomposed, "", "a\0", "a"].map { ExactText($0) }
        #expect(
            names.sorted().map(\.text.utf8.first) == [nil, 0x61, 0x61, 0x63, 0x63, 0x7a])
        #expect(ExactText(Self.decomposed) < ExactText(Self.composed))
        #expect(UserID(Self.decomposed) < UserID(Self.composed))
        #expect(AppID(Self.decomposed) < AppID(Self.composed))
    }

    /// One bucket of a table must not be filled by names that are equivalent.
    @Test func equivalentNamesHashApart() {
        let marks = ["\u{301}", "\u{323}", "\u{327}", "\u{31b}"]
        var names: Set<ExactText> = []
        for a in 0..<4 {
            for b in 0..<4 where b != a {
                for c in 0..<4 where c != a && c != b {
                    names.insert(ExactText("o" + marks[a] + marks[b] + marks[c]))
                }
            }
        }
        #expect(names.count == 24)
        #expect(Set(names.map(\.hashValue)).count == 24)
    }

    /// Eight bytes are looked at together, and what is left alone.
    @Test func eachByteOfEachLengthCounts() {
        for count in 0...20 {
            let bytes = (0..<count).map { UInt8(0x61 + $0) }
            let name = String(decoding: bytes, as: UTF8.self)
            // Not the same object: what is compared is the content.
            let same = String(decoding: bytes + [0x7a], as: UTF8.self).dropLast()
            #expect(name.isExactly(String(same)))
            #expect(ExactText(name).hashValue == ExactText(String(same)).hashValue)
            var others = [name + "\0", "\0" + name]
            for place in 0..<count {
                var changed = bytes
                changed[place] = 0x7a
                others.append(String(decoding: changed, as: UTF8.self))
            }
            for other in others {
                #expect(!name.isExactly(other) && !other.isExactly(name))
                #expect(ExactText(name).hashValue != ExactText(other).hashValue)
            }
        }
    }
}
