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

    @Test("a copy that comes twice to one device stands for none that another lacks")
    func copies() {
        var flight = PublishDrive.Flight(due: 0, to: .group(2))
        let news = [1, 1, 2, 0].map { flight.arrived(at: $0) }
        #expect(news == [true, false, false, true] && flight.missing.isEmpty)
        var single = PublishDrive.Flight(due: 0, to: .device(7))
        let own = [0, 7].map { single.arrived(at: $0) }
        #expect(own == [false, true] && single.missing.isEmpty)
    }

    @Test("of a server's log a failure shows what went wrong, and not the everyday")
    func logs() {
        let opened = "time=1 level=info event=session.opened app=demo\n"
        let log =
            opened + "time=1 level=warning event=x\nFatal error\n"
            + String(repeating: opened, count: 20)
        #expect(ServerProcess.troubles(in: log, 5) == "time=1 level=warning event=x\nFatal error")
        #expect(ServerProcess.troubles(in: opened, 5) == "(its log holds no warning)")
    }
}
