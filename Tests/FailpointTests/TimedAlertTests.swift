import APNsSimulator
import Foundation
import Testing

@testable import Scenario

/// Scheduled, delayed and expiring: a backend, a server and a phone that sleeps.
@Suite(.serialized) struct TimedAlertStoryTests {
    private static let room = "0190a1b2-c3d4-7000-8000-0000000000d1"

    private struct New: Encodable {
        let parts = [["mime_type": "text/plain", "text": "x"]]
        var push: [String: String]
        var sendAt: String?

        enum CodingKeys: String, CodingKey {
            case parts, push
            case sendAt = "send_at"
        }
    }

    private struct Made: Decodable { let id: String }

    private func time(in seconds: Double) -> String {
        Date().addingTimeInterval(seconds).formatted(.iso8601)
    }

    @Test("a scheduled message is published at its time, and alerted at its own")
    func story() throws { try Story.play("timed", grace: 1, play) }

    private func play(_ story: Story) throws {
        struct Room: Encodable {
            let id = TimedAlertStoryTests.room
            let participants = ["anna"]
        }
        try story.ask("POST", "/v1/conversations", Room())
        try story.addDevice("phone", user: "anna")
        try story.tell("phone", .deviceOpen)
        try story.waitServer("phone", "online") {
            $0.reachability == "online" && $0.pushToken.isHeld && !$0.feed.isBehind
        }
        try story.tell("phone", .deviceSuspend)
        try story.waitServer("phone", "asleep") {
            $0.sessions.isEmpty && $0.reachability != "online"
        }
        let messages = "/v1/conversations/\(Self.room)/messages"
        let later = New(
            push: ["body": "good morning", "at": time(in: 9)], sendAt: time(in: 3))
        let id = try Story.decoded(Made.self, try story.ask("POST", messages, later)).id
        // As of a backend whose clock is behind.
        let ended = New(
            push: ["body": "too late", "at": time(in: -10), "expires_at": time(in: -5)],
            sendAt: nil)
        let lost = try Story.decoded(Made.self, try story.ask("POST", messages, ended)).id
        try story.wait("it is published") {
            let answer = try story.ask("GET", "/v1/scheduled/\(id)")
            return String(decoding: answer, as: UTF8.self).contains(#""state":"published""#)
        }
        #expect(try story.status("phone").shown == 0)
        func reasons(_ message: String) throws -> String {
            let answer = try story.ask("GET", "/v1/messages/\(message)/explain?user=anna")
            return String(decoding: answer, as: UTF8.self)
        }
        #expect(try reasons(id).contains("alert-delayed"))
        try story.wait("the other one is over") { try reasons(lost).contains("alert-expired") }
        try story.wait("it is shown") { try story.status("phone").shown == 1 }
        // Nothing woke the phone before.
        try story.wait("its answer is written down") {
            try story.wakes("phone").allSatisfy { $0.outcome != "pending" }
        }
        let pushes = try story.wakes("phone")
        #expect(pushes.map(\.messageId) == [id] && pushes.map(\.kind) == ["alert"])
    }
}
