import Testing

@testable import Telemetry

@Suite struct LogTests {
    @Test(
        "values are bare or quoted, never able to make a second line",
        arguments: [
            ("plain", "plain"), ("", "\"\""), ("two words", "\"two words\""),
            ("a=b", "\"a=b\""), ("line\nbreak", "\"line\\nbreak\""),
            ("say \"hi\"", "\"say \\\"hi\\\"\""),
            ("bell\u{7}", "\"bell\\u{7}\""), ("a\u{9b}31m", "\"a\\u{9b}31m\""),
            ("a\u{2028}b", "\"a\\u{2028}b\""), ("a\u{202e}b", "\"a\\u{202e}b\""),
            ("a\u{2066}b", "\"a\\u{2066}b\""), ("a\u{85}b", "\"a\\u{85}b\""), ("grüß", "\"grüß\""),
        ])
    func quoting(_ value: String, _ expected: String) {
        #expect(Log.quoted(value) == expected)
    }

    @Test("a value is cut at its limit")
    func cut() {
        let text = Log.quoted(String(repeating: "x", count: 10_000))
        #expect(text.utf8.count == Log.valueBytesMax)
    }

    @Test("time is RFC 3339 in UTC")
    func time() {
        #expect(Log.timeText(1_700_000_000_007) == "2023-11-14T22:13:20.007Z")
    }
}

@Suite struct MetricsTests {
    @Test("the text names type, help, labels and buckets")
    func text() {
        let metrics = Metrics()
        metrics.counter("rouse_a_total", "A.").add(3)
        metrics.gauge("rouse_b", "B.").set(-2)
        let family = metrics.counters("rouse_c_total", "C.", labels: ["code"])
        family["x\"y"].add()
        family["x\"y"].add()
        let histogram = metrics.histogram("rouse_d_seconds", "D.")
        histogram.observe(milliseconds: 30)
        histogram.observe(milliseconds: 3_000_000)
        metrics.reading("rouse_e", "E.") { 1.5 }
        let lines = metrics.text.split(separator: "\n").map(String.init)
        #expect(lines.contains("# TYPE rouse_a_total counter"))
        #expect(lines.contains("rouse_a_total 3"))
        #expect(lines.contains("rouse_b -2"))
        #expect(lines.contains("rouse_c_total{code=\"x\\\"y\"} 2"))
        #expect(lines.contains("rouse_d_seconds_bucket{le=\"0.025\"} 0"))
        #expect(lines.contains("rouse_d_seconds_bucket{le=\"0.05\"} 1"))
        #expect(lines.contains("rouse_d_seconds_bucket{le=\"300\"} 1"))
        #expect(lines.contains("rouse_d_seconds_bucket{le=\"+Inf\"} 2"))
        #expect(lines.contains("rouse_d_seconds_count 2"))
        #expect(lines.contains("rouse_e 1.5"))
    }

    @Test("a family does not grow without end")
    func familyIsBounded() {
        let family = CounterFamily()
        for index in 0..<(CounterFamily.seriesMax + 100) { family["\(index)"].add() }
        #expect(family.series.count <= CounterFamily.seriesMax + 1)
        #expect(family["other"].current >= 100)
    }
}
