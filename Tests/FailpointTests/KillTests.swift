import APNsSimulator
import Foundation
import Glibc
import Testing

@testable import Scenario

/// kill -9 by the test: what was owed to a device is found again from rows alone.
@Suite(.serialized) struct KillTests {
    private static let room = "0190a1b2-c3d4-7000-8000-0000000000d0"

    /// A world of its own, and a story whose server runs with one user's phone online.
    private func withStory(
        grace: UInt64, _ body: (World, Story) throws -> Void
    ) throws {
        let world = try World()
        defer { world.clear() }
        let story = try Story(world, name: "kill", point: nil)
        defer { story.end() }
        do {
            try story.start()
            story.use(apiKey: try story.makeApp("story", grace: grace).secret)
            struct New: Encodable {
                let id: String
                let participants: [String]
            }
            try story.ask(
                "POST", "/v1/conversations", New(id: Self.room, participants: ["anna"]))
            try story.addDevice("phone", user: "anna")
            try story.tell("phone", .deviceOpen)
            try story.waitServer("phone", "online, not behind") {
                $0.reachability == "online" && $0.pushToken.isHeld && !$0.feed.isBehind
            }
            try body(world, story)
        } catch {
            Issue.record("\(error)\n\(story.server.lastLogLines(12))")
        }
    }

    @Test("killed inside the grace: the demotion happens after the restart")
    func insideTheGrace() throws {
        try withStory(grace: 10) { _, story in
            try story.tell("phone", .deviceBackground)
            try story.tell("phone", .deviceSuspend)
            try story.tell("phone", .deviceForceQuit)
            try story.waitServer("phone", "asleep") { $0.sessions.isEmpty }
            let message = try story.publish("are you there", to: Self.room)
            try story.waitServer("phone", "woken, in its grace") { $0.reachability == "waking" }
            story.server.kill()
            let left = try ServerFacts(path: story.server.storePath)
            #expect(left.graceRows == 1 && left.unreachable == 0 && left.demotions == 0)
            try story.start()
            try story.waitServer("phone", "unreachable") { $0.reachability == "unreachable" }
            try story.waitShows("phone", message)
            // After a slow restart, an outage, the same wake was tried once more before. The phone
            // may show the alert before the server has written down that APNs took it.
            try story.wait("the alert is accepted") {
                let wakes = try story.wakes("phone").map { "\($0.kind) \($0.outcome)" }
                return wakes.first == "alert accepted" && wakes.contains("silent no-show")
            }
        }
    }

    @Test("killed right after a commit for an online device that does not come back: it is woken")
    func afterTheCommit() throws {
        try withStory(grace: 20) { world, story in
            // The phone and its system stand still: its connection is there, and nobody reads.
            let phone = try #require(world.simulator.identifier)
            #expect(kill(phone, SIGSTOP) == 0)
            defer { _ = kill(phone, SIGCONT) }
            let message = try story.publish("are you there", to: Self.room)
            story.server.kill()
            let left = try ServerFacts(path: story.server.storePath)
            #expect(left.wakesInFlight == 0 && left.graceRows == 0 && left.outcomes.isEmpty)
            // The app is put to sleep before there is a server to come back to. It may find the
            // message in its socket; nobody was told so.
            #expect(kill(phone, SIGCONT) == 0)
            try story.tell("phone", .deviceSuspend)
            try story.start()
            try story.waitHolds("phone", message.text, in: Self.room)
            try story.wait("the wake's outcome is synced") {
                try story.wakes("phone").map { "\($0.kind) \($0.outcome)" } == ["silent synced"]
            }
        }
    }
}
