import Model
import Testing

/// W3C Trace Context, 3.2.
@Suite struct TraceContextTests {
    private static let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test func aHeaderIsHandedOnAsItCame() throws {
        let trace = try #require(TraceContext(header: Self.header))
        #expect(trace.id == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(trace.header == Self.header)
        #expect(TraceContext(encoded: trace.encoded[...]) == trace)
        #expect(trace.encoded.count == 25)
    }

    @Test("of a version to come the shared part is taken, and flags that are not known are dropped")
    func laterVersion() throws {
        let later = try #require(
            TraceContext(header: "7f-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-more"))
        #expect(later.header == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03")
    }

    @Test(
        "what is no trace is none",
        arguments: [
            "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ])
    func wrong(_ header: String) { #expect(TraceContext(header: header) == nil) }

    @Test func rowsThatAreNoTraceAreNone() {
        #expect(TraceContext(encoded: []) == nil)
        #expect(TraceContext(encoded: [UInt8](repeating: 0, count: 25)[...]) == nil)
        #expect(TraceContext(encoded: [UInt8](repeating: 1, count: 24)[...]) == nil)
    }
}
