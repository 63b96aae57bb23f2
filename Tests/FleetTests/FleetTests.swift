import Foundation
import Model
import Testing
import Wake

@testable import Fleet

/// Whole runs: small ones of what `rouse fleet` does with a million devices.
@Suite struct FleetTests {
    static func options(_ policies: String...) throws -> FleetOptions {
        var options = FleetOptions()
        options.devices = 90
        options.days = 2
        options.shardDevices = 20
        options.policies = try policies.map { try PolicyChoice($0) }
        return options
    }

    @Test("the same seed gives the same bytes, whatever the number of threads")
    func deterministic() throws {
        var options = try Self.options("classic", "adaptive")
        let first = Fleet.run(options).json
        options.threads = 4
        #expect(Fleet.run(options).json == first)
        options.seed = 2
        #expect(Fleet.run(options).json != first)
    }

    @Test("every device is there, and every message ends in exactly one place")
    func conserved() throws {
        let report = Fleet.run(try Self.options("classic", "adaptive", "k-of-n", "alerts-only"))
        #expect(report.devices == 90 && report.users < 90 && report.policies.count == 4)
        for result in report.policies {
            let messages = result.messages
            #expect(messages.published > 500 && messages.sum == messages.published)
            #expect(messages.published == report.policies[0].messages.published)
            // What found the app in front or is muted is asked for no time.
            #expect(result.told.of == report.policies[0].told.of)
            #expect(result.told.reached <= result.told.of)
            #expect(
                result.told.of <= result.told.reached + messages.pending + messages.untold)
            #expect(result.arrived.reached <= result.arrived.of)
            #expect(result.toldCurve.last?.count == result.told.reached)
            let pushes = result.pushes
            #expect(pushes.silentUsed + pushes.silentWasted == pushes.silent)
            #expect(pushes.alertCauses.values.reduce(0, +) == pushes.alert)
            #expect(pushes.alertNeedless + pushes.alertRepeated <= pushes.alert)
            let ended = pushes.outcomes.filter { $0.key != "late" }.values.reduce(0, +)
            #expect(ended <= pushes.silent)
            #expect(pushes.alert > 0 && messages.toldByAlert > 0 && messages.live > 0)
        }
        #expect(report.policies[3].pushes.silent == 0)
        #expect(report.policies[0].pushes.silentUsed > 0)
        #expect(report.policies[0].messages.toldByApp > 0)
    }

    @Test("it has no policy of its own: another grace, and another budget, change what comes out")
    func policiesAreTheCores() throws {
        #expect(try PolicyChoice("classic").policy == WakePolicy())
        var options = try Self.options("classic")
        var changed = WakePolicy()
        changed.grace *= 4
        var poor = WakePolicy()
        poor.silentBudget = 1
        options.policies += [
            PolicyChoice(name: "slow", policy: changed), PolicyChoice(name: "poor", policy: poor),
            PolicyChoice(name: "classic", policy: WakePolicy()),
        ]
        let results = Fleet.run(options).policies
        #expect(results[0] == results[3])
        // Whoever waits longer tells later, and gives up fewer.
        #expect(try #require(results[1].told.p95) > #require(results[0].told.p95))
        #expect(results[1].demotions < results[0].demotions)
        #expect(results[2].pushes.silent < results[0].pushes.silent)
        #expect(results[2].pushes.alert > results[0].pushes.alert)
    }

    @Test("what an app's devices learn together holds from the time at which it is known")
    func sharedGrace() throws {
        let policy = try PolicyChoice("adaptive/grace_min_seconds=1").policy
        func minute(_ number: UInt64) -> Timestamp { fleetStart + number * 60_000 }
        // Not in order, as users are lived one after the other.
        let arrivals = (1...20).reversed().map { (number: UInt64) in
            SharedGrace.Arrival(
                at: minute(number), wake: WakeID(high: 0, low: number << 32),
                latency: number <= 8 ? 4_000 : 9_000)
        }
        let shared = SharedGrace(arrivals, policy: policy)
        #expect(shared.grace(at: fleetStart) == nil)
        #expect(shared.grace(at: minute(8) - 1) == nil)
        #expect(shared.grace(at: minute(8)) == 4_100)
        #expect(shared.grace(at: minute(9)) == 4_100)
        #expect(shared.grace(at: minute(20)) == 9_100)
        #expect(shared.grace(at: .never) == 9_100)
        #expect(SharedGrace([], policy: policy).grace(at: .never) == nil)
    }

    @Test("devices that learn tell no later than those that do not, where it is late")
    func adaptiveIsNoLater() throws {
        var options = try Self.options("classic", "adaptive")
        options.devices = 300
        let results = Fleet.run(options).policies
        let (classic, adaptive) = (results[0].told, results[1].told)
        #expect(try #require(adaptive.p95) <= #require(classic.p95))
    }

    @Test("a policy is one of the core's, with numbers changed")
    func choices() throws {
        let choice = try PolicyChoice("adaptive/grace_seconds=90/silent_budget_max=4")
        var expected = try #require(WakePolicy.named.first { $0.name == "adaptive" }).policy
        expected.grace = 90_000
        expected.adaptive.budgetMax = 4
        #expect(choice.policy == expected)
        #expect(choice.name == "adaptive/grace_seconds=90/silent_budget_max=4")
        for wrong in [
            "", "clasic", "classic/", "classic/grace=3", "classic/grace_seconds",
            "classic/grace_seconds=0", "classic/grace_seconds=x",
            // The core says that these make no sense.
            "classic/demotion_misses=2", "adaptive/grace_min_seconds=400",
        ] {
            #expect(throws: PolicyChoice.Mistake.self, "\(wrong)") { try PolicyChoice(wrong) }
        }
        for (name, policy) in WakePolicy.named {
            #expect(policy.adaptive.problem == nil, "\(name)")
        }
    }

    @Test("the JSON has its fields, and reads back")
    func json() throws {
        let report = Fleet.run(try Self.options("classic", "alerts-only"))
        let bytes = Data(report.json.utf8)
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(try decoder.decode(FleetReport.self, from: bytes) == report)
        let object = try #require(
            try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
        #expect(
            Set(object.keys) == [
                "days", "devices", "model", "policies", "seed", "traffic", "users",
            ])
        let result = try #require((object["policies"] as? [[String: Any]])?.first)
        #expect(
            Set(result.keys) == [
                "arrived", "arrived_curve", "demotions", "messages", "name", "policy", "pushes",
                "recoveries",
                "told", "told_curve",
            ])
        let pushes = try #require(result["pushes"] as? [String: Any])
        #expect(
            Set(pushes.keys) == [
                "alert", "alert_causes", "alert_needless", "alert_repeated", "badge", "outcomes",
                "per_message",
                "silent", "silent_fates", "silent_used", "silent_wasted",
            ])
    }

    @Test("the picture is well-formed and has a curve and a bar for each policy")
    func svg() throws {
        var options = try Self.options("classic", "alerts-only")
        options.policies.append(PolicyChoice(name: "a<b>&\"c\"", policy: WakePolicy()))
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("fleet-\(UUID().uuidString).svg")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(Fleet.run(options).svg.utf8).write(to: file)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [
            "-c",
            """
            import sys, xml.etree.ElementTree as tree
            space = '{http://www.w3.org/2000/svg}'
            root = tree.parse(sys.argv[1]).getroot()
            assert root.tag == space + 'svg'
            words = [part.text for part in root.iter(space + 'text')]
            assert len(list(root.iter(space + 'polyline'))) == 6
            assert any(word.startswith('a<b>&"c":') for word in words)
            assert 'classic' in words and 'alerts-only' in words
            """, file.path,
        ]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    @Test("the table has a column for each policy and a line for each number")
    func table() throws {
        let text = Fleet.run(try Self.options("classic", "k-of-n/grace_seconds=9")).text
        let lines = text.split(separator: "\n")
        #expect(lines.contains { $0.contains("classic") && $0.hasSuffix("k-of-n") })
        #expect(lines.contains { $0.hasSuffix("grace_seconds=9") && !$0.contains("k-of-n") })
        for name in [
            "publish to told, p50", "publish to device, p50", "pushes per message",
            "silent pushes wasted", "nobody told",
        ] {
            #expect(lines.contains { $0.hasPrefix(name) }, "\(name)")
        }
        #expect(lines.allSatisfy { !$0.hasSuffix(" ") })
    }
}
