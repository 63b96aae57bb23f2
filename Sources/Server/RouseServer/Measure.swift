/// Numbers with their units: read with or without, shown with.
public enum Measure {
    private static let times: [(unit: String, seconds: UInt64)] = [
        ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1),
    ]
    private static let sizes: [(unit: String, bytes: UInt64)] = [
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
    ]

    /// `90s`, `15m`, `2h`, `3d`; a bare number is of seconds.
    public static func seconds(_ text: String) -> UInt64? {
        number(text, times.map { (unit: $0.unit, size: $0.seconds) })
    }

    /// `64MiB`; a bare number is of bytes.
    static func bytes(_ text: String) -> UInt64? {
        number(text, sizes.map { (unit: $0.unit, size: $0.bytes) })
    }

    /// `50/s`, or a bare number.
    static func rate(_ text: String) -> UInt64? {
        UInt64(text.hasSuffix("/s") ? text.dropLast(2) : text[...])
    }

    /// In the largest unit that holds it whole.
    public static func text(seconds: UInt64) -> String {
        shown(seconds, times.map { (unit: $0.unit, size: $0.seconds) }, none: "0s")
    }

    static func text(bytes: UInt64) -> String {
        shown(bytes, sizes.map { (unit: $0.unit, size: $0.bytes) }, none: "0B")
    }

    private static func number(_ text: String, _ units: [(unit: String, size: UInt64)]) -> UInt64? {
        if let number = UInt64(text) { return number }
        guard let unit = units.first(where: { text.hasSuffix($0.unit) }) else { return nil }
        var digits = text.dropLast(unit.unit.count)
        if digits.last == " " { digits = digits.dropLast() }
        guard let count = UInt64(digits) else { return nil }
        let product = count.multipliedReportingOverflow(by: unit.size)
        return product.overflow ? nil : product.partialValue
    }

    private static func shown(
        _ number: UInt64, _ units: [(unit: String, size: UInt64)], none: String
    ) -> String {
        guard number > 0, let unit = units.first(where: { number % $0.size == 0 }) else {
            return none
        }
        return "\(number / unit.size)\(unit.unit)"
    }
}
