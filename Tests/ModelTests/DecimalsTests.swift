import Model
import Testing

/// Numbers as tables show them: what C's printf makes of the same.
@Suite struct DecimalsTests {
    @Test(
        "digits behind the point, rounded",
        arguments: [
            (0, 0, "0"), (0, 2, "0.00"), (1.25, 1, "1.2"), (1.35, 1, "1.4"), (-0.04, 1, "0.0"),
            (-1.5, 0, "-2"), (9.995, 2, "9.99"), (99.96, 1, "100.0"), (0.06, 1, "0.1"),
            (1_234_567.891, 2, "1234567.89"), (1e30, 1, "1e+30"), (.infinity, 1, "inf"),
        ] as [(Double, Int, String)])
    func text(_ value: Double, _ decimals: Int, _ text: String) {
        #expect(value.text(decimals: decimals) == text)
    }
}
