import Foundation
import Testing

/// The chat that comes with the program.
@Suite struct ChatTests {
    @Test("its file is what its seed makes")
    func seeded() throws {
        let made = try Deployed.run([
            "/usr/bin/python3", Deployed.path("Deploy/chat/make"), "--check",
        ])
        #expect(made.status == 0)
    }

    @Test("it runs through a server: nothing is lost, doubled or out of order")
    func replayed() throws {
        let outcome = try Deployed.run([
            Deployed.rouse, "replay", Deployed.path("Deploy/chat/channel.txt"), "--awake",
            "--factor", "960", "--lines", "150",
        ])
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("nothing lost, nothing doubled, everything in order"))
        // Joins, parts and renames are read: what is not a message takes no line of them.
        #expect(outcome.output.contains(/messages +1[0-4][0-9]/), "\(outcome.output)")
    }
}
