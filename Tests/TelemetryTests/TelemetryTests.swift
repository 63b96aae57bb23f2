import Foundation
import Glibc
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

@Suite struct LogWriterTests {
    /// The two ends of a pipe.
    private func pipe() -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        precondition(Glibc.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    private func text(_ descriptor: Int32) -> String {
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        return String(decoding: (try? file.readToEnd()) ?? Data(), as: UTF8.self)
    }

    @Test("a log that nobody reads stops nobody; what was dropped is said once it is read")
    func unread() {
        let (reading, writing) = pipe()
        defer { close(reading) }
        let log = Log(level: .info, descriptor: writing)
        let logged = 3 * LogWriter.linesMax
        // The pipe holds 64 KiB: with a write in each call this would never return.
        for number in 0..<logged { log.info("test.line", [LogField("number", number)]) }
        #expect(!log.flush(seconds: 0))
        DispatchQueue.global().async {
            // The room that this makes lets the thread go on.
            while !log.flush(seconds: 1) {}
            close(writing)
        }
        let lines = text(reading).split(separator: "\n")
        let written = lines.filter { $0.contains("event=test.line") }.count
        let dropped = lines.filter { $0.contains("event=log.dropped") }
        let told = dropped.compactMap { line in
            line.split(separator: " ").first { $0.hasPrefix("lines=") }
                .flatMap { Int($0.dropFirst("lines=".count)) }
        }
        #expect(written < logged && written >= LogWriter.linesMax)
        #expect(told.count == 1 && written + told.reduce(0, +) == logged, "\(dropped)")
    }

    @Test("as JSON a line is one object, with numbers and truth values as such; it can be switched")
    func json() throws {
        let (reading, writing) = pipe()
        defer { close(reading) }
        let log = Log(level: .info, descriptor: writing)
        log.info("test.text", [LogField("n", 7)])
        log.flush()
        log.format = .json
        let nasty = "a\"b\\c\nd\u{7}\u{202e}\u{e0001}ü"
        log.info(
            "test.json",
            [
                LogField("n", 7), LogField("b", true), LogField("text", nasty),
                LogField("digits", "7"), LogField("long", String(repeating: "é", count: 500)),
            ])
        log.access("test.access", isRoutine: false, [LogField("n", 1)])
        log.logsAccess = true
        log.access("test.access", isRoutine: true, [LogField("n", 2)])
        log.access("test.access", isRoutine: false, [LogField("n", 3)])
        #expect(log.flush())
        close(writing)
        let lines = text(reading).split(separator: "\n")
        #expect(lines.count == 3 && lines[0].hasSuffix(" level=info event=test.text n=7"))
        let line = try #require(
            JSONSerialization.jsonObject(with: Data(lines[1].utf8)) as? [String: Any])
        #expect(line["event"] as? String == "test.json" && line["level"] as? String == "info")
        #expect(line["text"] as? String == nasty && line["digits"] as? String == "7")
        #expect(lines[1].contains(#""n":7,"b":true,"#))
        #expect((line["time"] as? String)?.hasSuffix("Z") == true)
        #expect((line["long"] as? String)?.count == Log.valueBytesMax / 2)
        for unseen in ["\u{7}", "\u{202e}", "\u{e0001}"] { #expect(!lines[1].contains(unseen)) }
        #expect(lines[2].contains(#""event":"test.access","n":3}"#))
    }

    @Test("lines keep their order, and a flush waits for them")
    func order() {
        let (reading, writing) = pipe()
        defer { close(reading) }
        let log = Log(level: .info, descriptor: writing)
        for number in 0..<100 { log.info("test.line", [LogField("number", number)]) }
        #expect(log.flush())
        close(writing)
        let numbers = text(reading).split(separator: "\n").compactMap { line in
            line.split(separator: "=").last.flatMap { Int($0) }
        }
        #expect(numbers == Array(0..<100))
    }

    @Test("of one kind of event there is so much in a while, and then how many were left out")
    func allowance() {
        let allowance = LogAllowance()
        for _ in 0..<LogAllowance.linesMax {
            #expect(allowance.take("refused", now: 5).isAllowed)
        }
        for _ in 0..<7 { #expect(!allowance.take("refused", now: 6).isAllowed) }
        #expect(allowance.take("another", now: 6) == (true, 0))
        #expect(allowance.takeLeftOut(now: 7).isEmpty)
        #expect(allowance.take("refused", now: 5 + LogAllowance.period) == (true, 7))
        #expect(allowance.takeLeftOut(now: 6 + 2 * LogAllowance.period).isEmpty)

        for _ in 0..<(LogAllowance.linesMax + 3) { _ = allowance.take("quiet", now: 50_000) }
        let told = allowance.takeLeftOut(now: 50_000 + LogAllowance.period)
        #expect(told.map(\.kind) == ["quiet"] && told.map(\.lines) == [3])
        #expect(allowance.takeLeftOut(now: 90_000).isEmpty)
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

    @Test("histograms of a family have their labels before the bound, and are one family for all")
    func histograms() {
        let metrics = Metrics()
        let family = metrics.histograms("rouse_f_seconds", "F.", labels: ["app"])
        family["chat"].observe(milliseconds: 1)
        family["chat"].observe(milliseconds: 1_500)
        metrics.histograms("rouse_f_seconds", "F.", labels: ["app"])["mail"]
            .observe(milliseconds: 400_000)
        let lines = metrics.text.split(separator: "\n").map(String.init)
        #expect(lines.count { $0 == "# TYPE rouse_f_seconds histogram" } == 1)
        #expect(lines.contains("rouse_f_seconds_bucket{app=\"chat\",le=\"0.001\"} 1"))
        #expect(lines.contains("rouse_f_seconds_bucket{app=\"chat\",le=\"2.5\"} 2"))
        #expect(lines.contains("rouse_f_seconds_sum{app=\"chat\"} 1.501"))
        #expect(lines.contains("rouse_f_seconds_bucket{app=\"mail\",le=\"300\"} 0"))
        #expect(lines.contains("rouse_f_seconds_bucket{app=\"mail\",le=\"+Inf\"} 1"))
    }

    @Test("apps beyond those with series of their own share one")
    func manyApps() {
        let metrics = Metrics(appsMax: 3)
        let delivery = DeliveryMetrics(metrics)
        // Another table of the same server: its apps are those that came first in any.
        let same = DeliveryMetrics(metrics)
        for number in 0..<13 {
            delivery["app\(number)"].applied.observe(milliseconds: 3)
        }
        for number in (0..<13).reversed() {
            same["app\(number)"].toldByAlert.observe(milliseconds: 3)
        }
        let counts = metrics.text.split(separator: "\n")
            .filter { $0.hasPrefix("rouse_publish_applied_seconds_count") }
        #expect(counts.count == 4)
        #expect(counts.contains("rouse_publish_applied_seconds_count{app=\"app0\"} 1"))
        #expect(counts.contains("rouse_publish_applied_seconds_count{app=\"other\"} 10"))
        let told = "rouse_publish_told_seconds_count{app=\"other\",by=\"alert\"} 10"
        #expect(metrics.text.contains(told))
    }

    @Test("a process tells what every program tells")
    func process() throws {
        let metrics = Metrics()
        ProcessMetrics.register(metrics)
        func value(_ name: String) throws -> Double {
            let line = metrics.text.split(separator: "\n").first { $0.hasPrefix(name + " ") }
            return try #require(line.flatMap { Double($0.dropFirst(name.count + 1)) })
        }
        let now = Date().timeIntervalSince1970
        let started = try value("process_start_time_seconds")
        #expect(started < now + 2 && started > now - 86_400)
        #expect(try value("process_resident_memory_bytes") > 1_000_000)
        let resident = try value("process_resident_memory_bytes")
        #expect(try value("process_virtual_memory_bytes") > resident)
        #expect(try value("process_cpu_seconds_total") > 0)
        let (held, most) = (try value("process_open_fds"), try value("process_max_fds"))
        #expect(held >= 3 && held < most)
    }

    @Test("one of them is read by its name, without the text of all")
    func readOne() {
        let metrics = Metrics()
        metrics.counter("rouse_a_total", "A.").add(3)
        metrics.reading("rouse_b", "B.") { 1.5 }
        let family = metrics.counters("rouse_c_total", "C.", labels: ["class", "status"])
        family["y", "2"].add(2)
        family["x", "1"].add()
        metrics.gauges("rouse_d", "D.", labels: ["class"])["x"].set(-4)
        metrics.histogram("rouse_e_seconds", "E.").observe(milliseconds: 30)
        #expect(metrics.read("rouse_a_total") == .number(3))
        #expect(metrics.read("rouse_b") == .number(1.5))
        guard case .series(let series) = metrics.read("rouse_c_total"),
            case .series(let gauges) = metrics.read("rouse_d"),
            case .distribution(let counts, let sum) = metrics.read("rouse_e_seconds")
        else {
            Issue.record("another kind of reading")
            return
        }
        #expect(series.map(\.labels) == [["x", "1"], ["y", "2"]])
        #expect(series.map(\.value) == [1, 2] && gauges.map(\.value) == [-4])
        #expect(counts.count == Histogram.secondsBounds.count + 1)
        #expect(counts.firstIndex(of: 1) == 5 && sum == 0.03)
        #expect(metrics.read("rouse_f") == nil)
    }

    @Test("a family does not grow without end")
    func familyIsBounded() {
        let family = CounterFamily()
        for index in 0..<(CounterFamily.seriesMax + 100) { family["\(index)"].add() }
        #expect(family.series.count <= CounterFamily.seriesMax + 1)
        #expect(family["other"].current >= 100)
    }
}
