import Foundation
import Testing

/// How `Deploy/run-tests` and `Deploy/count-tests` judge a run, with a bundle that tells by a plan.
@Suite struct RunTests {
    private func run(_ plan: String) throws -> (status: Int32, said: String) {
        let folder = try Folder()
        try folder.write(plan, "plan")
        let (python, events) = ("/usr/bin/python3", folder.url.appendingPathComponent("events"))
        let run = try Deployed.run(
            [
                python, Deployed.path("Deploy/run-tests"), Deployed.path("Tests/peers/bundle.py"),
                events.path,
            ], settings: ["PLAN": folder.url.appendingPathComponent("plan").path])
        let count = try Deployed.run(
            [python, Deployed.path("Deploy/count-tests"), events.path, "\(run.status)"])
        #expect((run.status == 0) == (count.status == 0), "\(run.output)\n\(count.output)")
        return (count.status, run.output + count.output)
    }

    @Test("a suite that failed beside others and passes alone is told, and does not fail the run")
    func unsteady() throws {
        let (status, said) = try run(
            """
            {"ServerTests.Flood": ["failed", "passed"], "FeedTests.Feed": ["passed"]}
            """)
        #expect(status == 0, "\(said)")
        #expect(said.contains("ServerTests.Flood: once more, with nothing beside it"))
        #expect(said.contains("failed beside others, passed alone: ServerTests.Flood runs"))
        #expect(said.contains("    run 0 failed\n1 unsteady\n2 passed, 0 failed, 0 skipped\n"))
    }

    @Test(
        "what fails alone as well, crashes, or has no clock fails the run",
        arguments: [
            (#"{"ServerTests.Flood": ["failed", "failed"]}"#, 2),
            (#"{"ServerTests.Flood": ["crashed", "passed"]}"#, 1),
            (#"{"FeedTests.Feed": ["failed", "passed"]}"#, 1),
        ])
    func failed(_ plan: String, runs: Int) throws {
        let (status, said) = try run(plan)
        #expect(status == 1, "\(said)")
        #expect(said.hasSuffix("\n0 passed, 1 failed, 0 skipped\n"), "\(said)")
        #expect(said.components(separatedBy: "✘ Test run with 1 test").count > runs, "\(said)")
        #expect(said.contains("once more") == (runs == 2))
    }

    @Test("where many suites fail the build is broken, and none runs again")
    func broken() throws {
        let suites = (0..<4).map { "\"ServerTests.Suite\($0)\": [\"failed\", \"passed\"]" }
        let (status, said) = try run("{\(suites.joined(separator: ", "))}")
        #expect(status == 1)
        #expect(said.hasSuffix("\n0 passed, 4 failed, 0 skipped\n"), "\(said)")
        #expect(!said.contains("once more"))
    }
}
