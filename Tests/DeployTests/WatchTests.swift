import Foundation
import Testing

/// Alerts and the dashboard, with a real Prometheus.
@Suite(
    .enabled(
        if: Deployed.isInstalled("/usr/bin/prometheus", "/usr/bin/promtool"),
        "prometheus is not installed"))
struct WatchTests {
    private static let rules = "Deploy/prometheus/rouse.rules.yml"
    private static let cases = "Deploy/prometheus/rouse.rules.test.yml"

    @Test("promtool takes the settings and the rules, and each alert fires as its case says")
    func rules() throws {
        let folder = Deployed.root.appendingPathComponent("Deploy/prometheus")
        let checked = try Deployed.run(
            ["/usr/bin/promtool", "check", "config", "prometheus.yml"], in: folder)
        #expect(checked.status == 0, "\(checked.output)")
        let tested = try Deployed.run(
            ["/usr/bin/promtool", "test", "rules", "rouse.rules.test.yml"], in: folder)
        #expect(tested.status == 0, "\(tested.output)")
    }

    /// The alerts' names.
    private func alerts() throws -> [String] {
        try Deployed.text(Self.rules).matches(of: /- alert: (\w+)/).map { String($0.1) }
    }

    @Test("each alert has a case, and leads to a section of the manual")
    func cases() throws {
        let (names, cases) = (try alerts(), try Deployed.text(Self.cases))
        #expect(names.count >= 20 && Set(names).count == names.count)
        for name in names { #expect(cases.contains("alertname=\"\(name)\""), "\(name)") }
        let sections = try Deployed.text("Deploy/README.md").matches(of: /\]\(#([a-z-]+)\)/)
            .map { String($0.1) }
        let runbooks = try Deployed.text(Self.rules).matches(of: /README\.md#([a-z-]+)/)
        #expect(runbooks.count == names.count)
        for runbook in runbooks {
            #expect(sections.contains(String(runbook.1)), "\(runbook.1)")
        }
    }

    @Test("the tests of rules are no rubber stamp: another threshold fails them")
    func otherRules() throws {
        let folder = try Folder()
        let text = try Deployed.text(Self.rules)
        let other = text.replacingOccurrences(
            of: "rouse_webhooks_deactivated{job=\"rouse\"} > 0",
            with: "rouse_webhooks_deactivated{job=\"rouse\"} > 1")
        #expect(other != text)
        try folder.write(other, "rouse.rules.yml")
        try folder.write(try Deployed.text(Self.cases), "rouse.rules.test.yml")
        let tested = try Deployed.run(
            ["/usr/bin/promtool", "test", "rules", "rouse.rules.test.yml"], in: folder.url)
        #expect(tested.status != 0 && tested.output.contains("RouseWebhookDeactivated"))
    }

    @Test("a server with traffic, scraped by Prometheus: each query of dashboard and rules works")
    func queries() throws {
        let folder = try Folder()
        let watched = try Deployed.run([
            "/usr/bin/python3", Deployed.path("Tests/peers/watched.py"), "--rouse",
            Deployed.rouse, "--deploy", Deployed.path("Deploy"), "--folder", folder.url.path,
        ])
        #expect(watched.status == 0 && watched.output.contains("watched: ok"), "\(watched.output)")
    }
}
