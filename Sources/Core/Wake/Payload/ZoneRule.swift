/// What a zone's clocks do from the last change that its file lists: the string of POSIX.1-2017,
/// section 8.3 (`TZ`), with the wider hours of RFC 8536, section 3.3.1.
struct ZoneRule: Equatable, Sendable {
    /// Seconds east of UTC.
    private let standard: Int64
    private let summer: Summer?

    private struct Summer: Equatable {
        let offset: Int64
        let start, end: Day
    }

    /// A day of each year, and the second of it, on the clock that is changed then.
    private struct Day: Equatable {
        enum Kind: Equatable {
            /// Of 1 to 365; the 29th of February is never counted.
            case julian(Int64)
            /// Of 0 to 365.
            case ordinal(Int64)
            /// The so-manieth weekday of a month, 5 the last; Sunday is 0.
            case weekday(month: Int64, week: Int64, day: Int64)
        }

        let kind: Kind
        let second: Int64
    }

    /// `nil`: they are no such string.
    init?(_ text: [UInt8]) {
        var scanner = Scanner(rest: text[...])
        guard scanner.name(), let west = scanner.time(hoursMax: 24) else { return nil }
        standard = -west
        guard !scanner.rest.isEmpty else {
            summer = nil
            return
        }
        guard scanner.name() else { return nil }
        var offset = standard + 3_600
        if scanner.rest.first != UInt8(ascii: ",") {
            guard let west = scanner.time(hoursMax: 24) else { return nil }
            offset = -west
        }
        guard let start = scanner.day(), let end = scanner.day(), scanner.rest.isEmpty
        else { return nil }
        summer = Summer(offset: offset, start: start, end: end)
    }

    func offset(at seconds: Int64) -> Int64 {
        guard let summer else { return standard }
        // The year is that of the standard clock; a summer that crosses it ends before it starts.
        let year = CivilDay.year(
            ofDay: CivilDay.floorDivide(seconds + standard, 86_400))
        let start = moment(of: summer.start, in: year) - standard
        let end = moment(of: summer.end, in: year) - summer.offset
        let isSummer =
            start < end
            ? (start..<end).contains(seconds) : !(end..<start).contains(seconds)
        return isSummer ? summer.offset : standard
    }

    /// Seconds since 1970 on the clock itself.
    private func moment(of day: Day, in year: Int64) -> Int64 {
        let newYear = CivilDay.days(year: year, month: 1, day: 1)
        let days: Int64
        switch day.kind {
        case .julian(let number):
            days = newYear + number - 1 + (number >= 60 && CivilDay.isLeap(year) ? 1 : 0)
        case .ordinal(let number): days = newYear + number
        case .weekday(let month, let week, let weekday):
            let first = CivilDay.days(year: year, month: month, day: 1)
            // The 1st of January 1970 was a Thursday.
            let ahead = (weekday - (first + 4) % 7 + 14) % 7
            let length = CivilDay.days(inMonth: month, of: year)
            var date = ahead + (week - 1) * 7
            if date >= length { date -= 7 }
            days = first + date
        }
        return days * 86_400 + day.second
    }

    private struct Scanner {
        var rest: ArraySlice<UInt8>

        /// Three letters or more, or anything between angle brackets.
        mutating func name() -> Bool {
            if rest.first == UInt8(ascii: "<") {
                guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
                rest = rest[(end + 1)...]
                return true
            }
            let letters = rest.prefix { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A }
            rest = rest.dropFirst(letters.count)
            return letters.count >= 3
        }

        mutating func take(_ character: Character) -> Bool {
            guard rest.first == character.asciiValue else { return false }
            rest = rest.dropFirst()
            return true
        }

        mutating func number(_ allowed: ClosedRange<Int64>) -> Int64? {
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            guard (1...3).contains(digits.count) else { return nil }
            rest = rest.dropFirst(digits.count)
            let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
            return allowed.contains(value) ? value : nil
        }

        /// `[+-]hh[:mm[:ss]]`, in seconds.
        mutating func time(hoursMax: Int64) -> Int64? {
            let isNegative = take("-")
            if !isNegative { _ = take("+") }
            guard let hours = number(0...hoursMax) else { return nil }
            var seconds = hours * 3_600
            if take(":") {
                guard let minutes = number(0...59) else { return nil }
                seconds += minutes * 60
                if take(":") {
                    guard let more = number(0...59) else { return nil }
                    seconds += more
                }
            }
            return isNegative ? -seconds : seconds
        }

        mutating func day() -> Day? {
            guard take(",") else { return nil }
            let kind: Day.Kind
            if take("J") {
                guard let number = number(1...365) else { return nil }
                kind = .julian(number)
            } else if take("M") {
                guard let month = number(1...12), take("."), let week = number(1...5), take("."),
                    let day = number(0...6)
                else { return nil }
                kind = .weekday(month: month, week: week, day: day)
            } else {
                guard let number = number(0...365) else { return nil }
                kind = .ordinal(number)
            }
            guard take("/") else { return Day(kind: kind, second: 7_200) }
            guard let second = time(hoursMax: 167) else { return nil }
            return Day(kind: kind, second: second)
        }
    }
}
