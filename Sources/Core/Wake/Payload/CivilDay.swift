/// Days of the Gregorian calendar, counted from the 1st of January 1970.
enum CivilDay {
    private static let daysBefore: [Int64] = [
        0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334,
    ]

    static func isLeap(_ year: Int64) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    /// - Parameter month: 1 to 12.
    static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        let next = month == 12 ? 365 : daysBefore[Int(month)]
        return next - daysBefore[Int(month) - 1] + (month == 2 && isLeap(year) ? 1 : 0)
    }

    /// - Parameters:
    ///   - month: 1 to 12.
    ///   - day: from 1.
    static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let before = year - 1
        let leaps = floorDivide(before, 4) - floorDivide(before, 100) + floorDivide(before, 400)
        // 719,162 days lie between the 1st of January of the year 1 and that of 1970.
        let newYear = before * 365 + leaps - 719_162
        return newYear + daysBefore[Int(month) - 1] + (month > 2 && isLeap(year) ? 1 : 0) + day - 1
    }

    /// The year in which a day lies.
    static func year(ofDay day: Int64) -> Int64 {
        // 146,097 days are 400 years; what is one too late or too early is corrected.
        var year = 1970 + floorDivide(day * 400, 146_097)
        while days(year: year, month: 1, day: 1) > day { year -= 1 }
        while days(year: year + 1, month: 1, day: 1) <= day { year += 1 }
        return year
    }

    /// Rounded down.
    static func floorDivide(_ number: Int64, _ by: Int64) -> Int64 {
        let (quotient, remainder) = number.quotientAndRemainder(dividingBy: by)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
