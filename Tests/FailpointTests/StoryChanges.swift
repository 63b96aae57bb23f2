import APNsSimulator
import Foundation

@testable import Scenario

/// What is changed after it was said: edits, deletions, leaving and coming back, blocks; in
/// conversations of their own, by backend and by client.
extension Story {
    static let changing = "0190a1b2-c3d4-7000-8000-0000000000d0"
    static let fleeting = "0190a1b2-c3d4-7000-8000-0000000000e0"
    static let doomed = "0190a1b2-c3d4-7000-8000-0000000000f0"

    private struct New: Encodable {
        let id: String
        let participants: [String]
    }

    private struct Text: Encodable {
        let parts: [[String: String]]

        init(_ text: String) { parts = [["mime_type": "text/plain", "text": text]] }
    }

    private struct Reference: Encodable {
        struct Part: Encodable {
            struct Place: Encodable {
                let url = "https://example.org/picture"
                let size = 7
                let digest = Data(repeating: 7, count: 32).base64EncodedString()
            }

            let mimeType = "image/png"
            let reference = Place()

            enum CodingKeys: String, CodingKey {
                case mimeType = "mime_type"
                case reference
            }
        }

        let parts = [Part()]
    }

    static let webhook = "0190a1b2-c3d4-7000-8000-000000000110"

    struct NewWebhook: Encodable {
        let id = Story.webhook
        let url: String
        let secret = "a-secret-that-nobody-checks"
    }

    /// What an operator does with a webhook, of the app that is removed.
    func webhookChanges() throws {
        let all = "/apps/gone/webhooks"
        let one = all + "/\(Self.webhook)"
        _ = try operate("POST", all, NewWebhook(url: "http://127.0.0.1:9/"), or: 409)
        _ = try operate("POST", one + "/test")
        _ = try operate("PATCH", one, ["active": false])
        _ = try operate("POST", one + "/secrets", [String: String](), or: 422)
        _ = try operate("DELETE", one + "/secrets/second")
        _ = try operate("DELETE", one, or: 404)
    }

    static let scheduling = "0190a1b2-c3d4-7000-8000-000000000100"

    private struct Later: Encodable {
        let parts = [["mime_type": "text/plain", "text": "later"]]
        let time: String

        enum CodingKeys: String, CodingKey {
            case parts
            case time = "send_at"
        }
    }

    private struct Scheduled: Decodable {
        let id: String
        let state: String
    }

    /// Two messages with a time, so far ahead that the same can be asked again after a death; one
    /// is taken back.
    func scheduleChanges() throws {
        try change("POST", "/v1/conversations", New(id: Self.scheduling, participants: ["anna"]))
        let time = Date().addingTimeInterval(15).formatted(.iso8601)
        for isTaken in [true, false] {
            let answer = try change(
                "POST", "/v1/conversations/\(Self.scheduling)/messages", Later(time: time))
            let id = try Self.decoded(Scheduled.self, answer).id
            if isTaken { try change("DELETE", "/v1/scheduled/\(id)") } else { scheduled = id }
        }
    }

    /// Dora's phone has what is announced, and is told of it by an alert at its time all the same.
    func timedAlert() throws {
        struct Announcement: Encodable {
            let users = ["dora"]
            let parts = [["mime_type": "text/plain", "text": "timed"]]
            let push: [String: String]
        }
        let time = Date().addingTimeInterval(3).formatted(.iso8601)
        try change(
            "POST", "/v1/announcements", Announcement(push: ["body": "timed", "at": time]))
    }

    func waitTimedAlert() throws {
        try wait("dora's phone was alerted at the time") {
            try wakes("dora").contains { $0.kind == "alert" && $0.outcome == "accepted" }
        }
    }

    /// Once, whoever died meanwhile.
    func waitScheduled() throws {
        try wait("the scheduled message is published") {
            let answer = try ask("GET", "/v1/scheduled/\(scheduled)")
            return try Self.decoded(Scheduled.self, answer).state == "published"
        }
        try wait("anna holds it, and it alone") {
            try messages("anna", in: Self.scheduling).map(\.text) == ["later"]
        }
    }

    /// By the backend, under keys of their own.
    func backendChanges() throws {
        for id in [Self.changing, Self.fleeting, Self.doomed] {
            try change(
                "POST", "/v1/conversations", New(id: id, participants: ["anna", "ben", "clara"]))
        }
        let room = "/v1/conversations/\(Self.changing)"
        let edited = try message("to edit", in: Self.changing)
        let deleted = try message("to delete", in: Self.changing)
        _ = try change("POST", room + "/messages", Reference())
        try change("PUT", "/v1/messages/\(edited)", Text("edited"))
        try change("DELETE", "/v1/messages/\(deleted)")
        try change("POST", room + "/participants/remove", ["users": ["ben"]])
        _ = try message("without ben", in: Self.changing)
        try change("POST", room + "/participants", ["users": ["ben"]])
        _ = try message("with ben", in: Self.changing)
        try change("DELETE", "/v1/conversations/\(Self.doomed)")
        struct Mistake: Encodable {
            let id = "0190a1b2-c3d4-7000-8000-000000000110"
            let users = ["anna", "ben"]
            let parts = [["mime_type": "text/plain", "text": "a mistake"]]
        }
        let mistake = Mistake()
        try change("POST", "/v1/announcements", mistake)
        try change("DELETE", "/v1/announcements/\(mistake.id)")
    }

    /// By Anna's phone, through its outbox.
    func clientChanges() throws {
        var sent: [String] = []
        for text in ["mine to edit", "mine to delete", "mine to hide"] {
            let answer = try tell("anna", .deviceSend) {
                $0.conversation = Self.changing
                $0.text = text
            }
            sent.append(answer.message ?? "")
        }
        try anna(.edit) {
            $0.message = sent[0]
            $0.text = "mine, edited"
        }
        // What is deleted before it has left is never sent.
        try wait("anna's messages are answered") {
            try status("anna").app?.hasUnanswered == false
        }
        try anna(.delete) {
            $0.message = sent[1]
            $0.everyone = true
        }
        try anna(.delete) { $0.message = sent[2] }
        try anna(.metadata) {
            $0.conversation = Self.changing
            $0.text = "a title"
        }
        try anna(.mute) {
            $0.conversation = Self.changing
            $0.on = true
        }
        for isBlocked in [true, false] {
            try anna(.block) {
                $0.users = ["dora"]
                $0.on = isBlocked
            }
        }
        try anna(.remove) {
            $0.conversation = Self.fleeting
            $0.users = ["ben"]
        }
        try anna(.deleteConversation) {
            $0.conversation = Self.fleeting
            $0.everyone = true
        }
        try wait("anna's changes are answered") {
            try status("anna").app?.hasUnanswered == false
        }
        // So that the icon is about the room again.
        try waitHolds("tablet", "mine to hide", in: Self.changing)
        try read("tablet", Self.changing)
        try wait("the webhook is told of that reading") {
            try world.receiver.events(of: "/\(name)").contains {
                $0.kind == "message.read" && $0.conversationId == Self.changing
            }
        }
    }

    private func anna(
        _ change: ControlRequest.Change, _ fill: (inout ControlRequest) -> Void
    ) throws {
        try tell("anna", .deviceChange) {
            $0.change = change
            fill(&$0)
        }
    }

    private func message(_ text: String, in conversation: String) throws -> String {
        let answer = try change(
            "POST", "/v1/conversations/\(conversation)/messages", Text(text))
        return try Self.decoded(PublishedMessage.self, answer).id
    }

    /// P2, once more at the end; and every device of a user shows what the others show.
    func judgeChanges() throws {
        for made in changes {
            let again = try ask(made.method, made.path, made.body, key: made.key)
            guard again == made.answer else {
                throw StoryError(
                    "\(made.method) \(made.path) was answered "
                        + "\(String(decoding: made.answer, as: UTF8.self)), and then "
                        + String(decoding: again, as: UTF8.self))
            }
        }
        let common = ["edited", "", "without ben", "with ben", "mine, edited", "mine to hide"]
        for device in Self.members {
            let expected =
                switch device {
                case "anna": common.filter { $0 != "mine to hide" }
                case "ben": common.filter { $0 != "without ben" }
                default: common
                }
            try wait("\(device) holds \(expected)") {
                try messages(device, in: Self.changing).map(\.text) == expected
            }
            for gone in [Self.fleeting, Self.doomed] {
                try wait("\(device) has nothing of \(gone)") {
                    try messages(device, in: gone).isEmpty
                }
            }
        }
    }
}
