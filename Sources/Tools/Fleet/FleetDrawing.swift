import FoundationEssentials
import Glibc
import Model

/// The picture of a report: on the left how many messages the person does not know of after a
/// time, on the right what that took in pushes. Down and to the left is better on both.
struct FleetDrawing {
    private let report: FleetReport
    private static let width = 1_000.0
    private static let height = 600.0
    private static let colours = [
        "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a", "#444444",
    ]
    /// What a bar is stacked from, from the bottom on: useful things are dark.
    private static let parts: [(name: String, colour: String)] = [
        ("silent, brought the app", "#2b6a4d"), ("silent, wasted", "#a9d3bd"),
        ("alert, needed", "#8c3b1f"), ("alert, a silent push would have done", "#eeb49f"),
        ("alert, already known", "#f7dfd5"), ("badge", "#bbbbbb"),
    ]

    init(_ report: FleetReport) { self.report = report }

    var svg: String {
        var text =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Self.format(Self.width)) "
            + "\(Self.format(Self.height))\" font-family=\"sans-serif\" font-size=\"12\" "
            + "fill=\"#222\">\n"
        text += "<title>rouse fleet: \(report.devices) devices, \(report.days) days</title>\n"
        text += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        text += label(
            20, 26,
            "\(report.devices) devices, \(report.days) days, traffic \(report.traffic), seed "
                + "\(report.seed)", size: 15)
        text += curves()
        text += bars()
        return text + "</svg>\n"
    }

    // MARK: Curves

    private static let plot = (left: 70.0, top: 70.0, right: 560.0, bottom: 430.0)
    private static let seconds = (from: 0.5, to: 172_800.0)
    /// Shares from all to one in a thousand.
    private static let decades = 3.0

    private func x(_ seconds: Double) -> Double {
        let plot = Self.plot
        let share = log(seconds / Self.seconds.from) / log(Self.seconds.to / Self.seconds.from)
        return plot.left + (plot.right - plot.left) * min(1, max(0, share))
    }

    private func y(_ share: Double) -> Double {
        let plot = Self.plot
        let depth = share <= 0 ? 1 : min(1, max(0, -log10(share) / Self.decades))
        return plot.top + (plot.bottom - plot.top) * depth
    }

    private func curves() -> String {
        let plot = Self.plot
        var text = label(
            plot.left, 52,
            "messages not told yet, by time since publish "
                + "(dotted: not on the device yet)")
        let times: [(Double, String)] = [
            (1, "1 s"), (10, "10 s"), (60, "1 min"), (300, "5 min"), (1_800, "30 min"),
            (7_200, "2 h"), (28_800, "8 h"), (86_400, "1 d"),
        ]
        for (seconds, name) in times {
            text += line(x(seconds), plot.top, x(seconds), plot.bottom, "#e4e4e4")
            text += label(x(seconds), plot.bottom + 18, name, anchor: "middle")
        }
        let shares: [(Double, String)] = [
            (1, "100 %"), (0.5, "50 %"), (0.1, "10 %"), (0.05, "5 %"), (0.01, "1 %"),
            (0.001, "0.1 %"),
        ]
        for (share, name) in shares {
            text += line(plot.left, y(share), plot.right, y(share), "#e4e4e4")
            text += label(plot.left - 8, y(share) + 4, name, anchor: "end")
        }
        for (share, name) in [(0.5, "p50"), (0.05, "p95"), (0.01, "p99")] {
            text += label(plot.right + 4, y(share) + 4, name, colour: "#888")
        }
        for (index, result) in report.policies.enumerated() {
            let colour = Self.colours[index % Self.colours.count]
            text += curve(result.arrivedCurve, of: result.arrived.of, colour, isDotted: true)
            text += curve(result.toldCurve, of: result.told.of, colour, isDotted: false)
        }
        return text + legend()
    }

    private func curve(
        _ points: [FleetReport.Point], of total: UInt64, _ colour: String, isDotted: Bool
    ) -> String {
        guard total > 0 else { return "" }
        let points = points.filter { $0.seconds >= Self.seconds.from }.map { point in
            let share = 1 - Double(point.count) / Double(total)
            return "\(Self.format(x(point.seconds))),\(Self.format(y(share)))"
        }
        return "<polyline fill=\"none\" stroke=\"\(colour)\" "
            + (isDotted ? "stroke-width=\"1.2\" stroke-dasharray=\"2 3\"" : "stroke-width=\"2\"")
            + " points=\""
            + points.joined(separator: " ") + "\"/>\n"
    }

    private func legend() -> String {
        var text = ""
        for (index, result) in report.policies.enumerated() {
            let top = Self.plot.bottom + 42 + Double(index) * 17
            let colour = Self.colours[index % Self.colours.count]
            text += line(Self.plot.left, top - 4, Self.plot.left + 24, top - 4, colour, width: 3)
            let lost = Double(result.messages.nobodyTold) / Double(max(1, result.told.of))
            text += label(
                Self.plot.left + 32, top,
                "\(result.name): p95 \(FleetReport.time(result.told.p95)), "
                    + "p99 \(FleetReport.time(result.told.p99)), "
                    + "nobody told \(FleetReport.number(lost * 10_000, digits: 1)) in 10,000")
        }
        return text
    }

    // MARK: Bars

    private static let chart = (left: 640.0, top: 70.0, right: 980.0, bottom: 430.0)

    private func heights(_ result: FleetReport.Result) -> [Double] {
        let pushes = result.pushes
        let published = Double(max(1, result.messages.published))
        let spent = pushes.alertNeedless + pushes.alertRepeated
        return [
            pushes.silentUsed, pushes.silentWasted, pushes.alert - min(pushes.alert, spent),
            pushes.alertNeedless, pushes.alertRepeated, pushes.badge,
        ].map { Double($0) / published }
    }

    private func bars() -> String {
        let chart = Self.chart
        let stacks = report.policies.map(heights)
        let most = max(0.001, stacks.map { $0.reduce(0, +) }.max() ?? 0)
        let step = Self.step(below: most)
        let top = (most / step).rounded(.up) * step
        func y(_ value: Double) -> Double {
            chart.bottom - (chart.bottom - chart.top) * value / top
        }
        var text = label(chart.left, 52, "pushes per message")
        for index in 0...Int((top / step).rounded()) {
            let value = Double(index) * step
            text += line(chart.left, y(value), chart.right, y(value), "#e4e4e4")
            text += label(
                chart.left - 6, y(value) + 4, FleetReport.number(value, digits: 2),
                anchor: "end")
        }
        let slot = (chart.right - chart.left) / Double(max(1, stacks.count))
        for (index, stack) in stacks.enumerated() {
            let left = chart.left + slot * (Double(index) + 0.18)
            var sum = 0.0
            for (part, value) in zip(Self.parts, stack) where value > 0 {
                text += rectangle(
                    left, y(sum + value), slot * 0.64, y(sum) - y(sum + value), part.colour)
                sum += value
            }
            let middle = left + slot * 0.32
            text += label(middle, y(sum) - 5, FleetReport.number(sum, digits: 2), anchor: "middle")
            text += label(
                middle, chart.bottom + 18, Self.short(report.policies[index].name),
                anchor: "middle", colour: Self.colours[index % Self.colours.count])
        }
        for (index, part) in Self.parts.enumerated() {
            let top = chart.bottom + 42 + Double(index) * 17
            text += rectangle(chart.left, top - 10, 12, 12, part.colour)
            text += label(chart.left + 18, top, part.name)
        }
        return text
    }

    /// A round number, four to ten of which make `most`.
    private static func step(below most: Double) -> Double {
        let power = pow(10, log10(most).rounded(.down))
        let digit = most / power
        return digit < 2 ? power / 5 : digit < 5 ? power / 2 : power
    }

    private static func short(_ name: String) -> String {
        name.count <= 14 ? name : name.prefix(13) + "…"
    }

    // MARK: Pieces

    private static func format(_ value: Double) -> String { value.text(decimals: 1) }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;")
            .replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }

    private func line(
        _ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ colour: String,
        width: Double = 1
    ) -> String {
        "<line x1=\"\(Self.format(x1))\" y1=\"\(Self.format(y1))\" x2=\"\(Self.format(x2))\" "
            + "y2=\"\(Self.format(y2))\" stroke=\"\(colour)\" "
            + "stroke-width=\"\(Self.format(width))\"/>\n"
    }

    private func rectangle(
        _ x: Double, _ y: Double, _ width: Double, _ height: Double, _ colour: String
    ) -> String {
        "<rect x=\"\(Self.format(x))\" y=\"\(Self.format(y))\" width=\"\(Self.format(width))\" "
            + "height=\"\(Self.format(height))\" fill=\"\(colour)\"/>\n"
    }

    private func label(
        _ x: Double, _ y: Double, _ words: String, anchor: String = "start", size: Int = 12,
        colour: String = "#222"
    ) -> String {
        "<text x=\"\(Self.format(x))\" y=\"\(Self.format(y))\" text-anchor=\"\(anchor)\" "
            + "font-size=\"\(size)\" fill=\"\(colour)\">\(Self.escaped(words))</text>\n"
    }
}

extension FleetReport {
    /// A picture that shows what one policy does better than another, and what for.
    public var svg: String { FleetDrawing(self).svg }
}
