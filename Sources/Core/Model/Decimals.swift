extension Double {
    /// With so many digits behind the point, rounded, as tables show it.
    public func text(decimals: Int) -> String {
        guard isFinite else { return "\(self)" }
        var scale = 1.0
        for _ in 0..<decimals { scale *= 10 }
        let units = (magnitude * scale).rounded(.toNearestOrEven)
        // Beyond it the digits behind the point are none of the value's.
        guard units < 0x1p63 else { return "\(self)" }
        let whole = UInt64(units)
        let (front, back) = whole.quotientAndRemainder(dividingBy: UInt64(scale))
        let sign = sign == .minus && whole > 0 ? "-" : ""
        guard decimals > 0 else { return "\(sign)\(front)" }
        let digits = String(back)
        let zeros = String(repeating: "0", count: decimals - digits.count)
        return "\(sign)\(front).\(zeros)\(digits)"
    }
}
