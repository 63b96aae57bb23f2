import Testing

@testable import Scenario

/// What measurements say of a run in which something was wrong.
@Suite struct LoadReportTests {
    private func report(accepted: Int) -> PushLoadReport {
        var report = PushLoadReport(pushes: 1_000, payloadBytes: 150)
        let good = PushLoadReport.Run(seconds: 2, processor: 0.01, accepted: 1_000, retried: 0)
        report.gateway = good
        report.certificate = PushLoadReport.Run(
            seconds: 2, processor: 0.01, accepted: accepted, retried: 3, refused: 1_000 - accepted,
            refusal: "410 Unregistered")
        // It gives some up by itself.
        report.h2load = PushLoadReport.Run(seconds: 2, processor: 0, accepted: 900, retried: 0)
        return report
    }

    @Test("pushes that were refused are no speed, and fail the run")
    func refused() {
        let bad = report(accepted: 100)
        #expect(!bad.isGood)
        let line = bad.text.split(separator: "\n").first { $0.hasPrefix("gateway, cert") } ?? ""
        #expect(line.contains("100 accepted in 2.0 s: 50/s, 100.0 us of processor a push"))
        #expect(line.contains("3 retried, 900 refused (410 Unregistered)"))
        #expect(bad.text.contains("failed"))
        let good = report(accepted: 1_000)
        #expect(good.isGood && !good.text.contains("failed"))
    }

}
