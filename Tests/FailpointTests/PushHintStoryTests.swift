import APNsSimulator
import Foundation
import Testing

@testable import Scenario

/// Phones that are alerted beside phones whose app tells its person itself, and what stands on
/// their screens.
@Suite(.serialized) struct PushHintStoryTests {
    private static let room = "0190a1b2-c3d4-7000-8000-0000000000d2"
    private static let talk = "0190a1b2-c3d4-7000-8000-0000000000d3"
    private static let news = "0190a1b2-c3d4-7000-8000-0000000000d4"

    /// Everything that a backend can say of a push, but for texts.
    private static let manner = #"""
        "sound": {"critical": true, "name": "bell.caf", "volume": 0.25}, "thread": "orders",
        "category": "ORDER", "interruption_level": "time-sensitive", "relevance": 0.7,
        "target_content_id": "window/1", "event": "order", "object": "42 \"a\"",
        "data": {"shop": {"name": "größer", "open": true, "none": null}, "numbers": [1, -2.5]}
        """#

    /// Whose phone is alerted, and whose app is woken.
    private static let pairs = [
        ("anna", "ben"), ("carl", "dora"), ("emil", "fay"), ("gus", "hal"),
    ]

    @Test("what an app shows of its own is what the alert would have been, field by field")
    func noticesEqualAlerts() throws { try Story.play("hints", grace: 5, play) }

    private func play(_ story: Story) throws {
        for (id, users) in [
            (Self.room, #"["anna","ben"]"#), (Self.talk, #"["emil","fay","gus","hal"]"#),
        ] {
            try story.ask(
                "POST", "/v1/conversations", try JSON(#"{"id":"\#(id)","participants":\#(users)}"#))
        }
        try sleep(story)
        try publish(story)
        for (alerted, woken) in Self.pairs {
            let one = try shown(alerted, isLocal: false, story)
            let other = try shown(woken, isLocal: true, story)
            for name in Set(one.keys).union(other.keys).sorted() {
                #expect(one[name] == other[name], "\(alerted) and \(woken): \(name)")
            }
        }
        try judgeWords(story)
        try judgeSilentPushes(story)
    }

    /// All have been online; half were swiped away since, so that nothing wakes them.
    private func sleep(_ story: Story) throws {
        for user in Self.pairs.flatMap({ [$0.0, $0.1] }) {
            let locale = ["emil", "fay"].contains(user) ? "de-AT" : nil
            try story.addDevice(user, user: user, locale: locale)
            try story.tell(user, .deviceOpen)
        }
        for (alerted, woken) in Self.pairs {
            for user in [alerted, woken] {
                try story.waitServer(user, "online, not behind") {
                    $0.reachability == "online" && $0.pushToken.isHeld && !$0.feed.isBehind
                }
                try story.tell(user, .deviceSuspend)
            }
            try story.tell(alerted, .deviceForceQuit)
            for user in [alerted, woken] {
                try story.waitServer(user, "asleep") { $0.sessions.isEmpty }
            }
        }
    }

    private func publish(_ story: Story) throws {
        let parts = #""parts": [{"mime_type": "text/plain", "text": "x"}]"#
        let words = #""title": "Shop", "subtitle": "Order 42", "body": "On its way""#
        try story.ask(
            "POST", "/v1/conversations/\(Self.room)/messages",
            try JSON(#"{\#(parts), "push": {\#(words), \#(Self.manner)}}"#))
        try story.ask(
            "POST", "/v1/announcements",
            try JSON(
                #"{\#(parts), "id": "\#(Self.news)", "users": ["carl", "dora"], "#
                    + #""push": {"body": "Sale", "sound": "none", "data": {"a": "b/c"}}}"#))
        let german =
            #"{"de": {"title": "Laden", "subtitle": "Nr. 42", "body": "Unterwegs"}}"#
        try story.ask(
            "POST", "/v1/conversations/\(Self.talk)/messages",
            try JSON(
                #"{\#(parts), "push": {\#(words), "title_loc_key": "SHOP", "#
                    + #""loc_key": "SENT", "loc_args": ["42", "a b"], "sound": "van.caf", "#
                    + #""texts": \#(german)}}"#))
    }

    private func notification(_ user: String, _ story: Story) throws -> ScreenNotification {
        var found: ScreenNotification?
        try story.wait("\(user) is shown it") {
            let screen = try story.tell(user, .deviceScreen).screen ?? []
            guard screen.count <= 1 else {
                throw StoryError("\(user) is shown \(screen.map(\.identifier))")
            }
            found = screen.first
            return found != nil
        }
        guard let found else { throw StoryError("nothing is shown to \(user)") }
        return found
    }

    /// The fields of the one notification on a screen, but for who showed it when.
    private func shown(
        _ user: String, isLocal: Bool, _ story: Story
    ) throws -> [String: String] {
        let found = try notification(user, story)
        #expect(found.isLocal == isLocal, "\(user)")
        let encoded = try JSONSerialization.jsonObject(with: JSONEncoder().encode(found))
        var fields = encoded as? [String: Any] ?? [:]
        for name in ["isLocal", "shownAtMs"] { fields[name] = nil }
        let look = fields.removeValue(forKey: "look") as? [String: Any] ?? [:]
        for (name, value) in look { fields["look.\(name)"] = value }
        return try fields.mapValues { value in
            String(
                decoding: try JSONSerialization.data(
                    withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed]),
                as: UTF8.self)
        }
    }

    /// That the two are the same says nothing if both are empty.
    private func judgeWords(_ story: Story) throws {
        let hinted = try notification("ben", story)
        #expect([hinted.title, hinted.body] == ["Shop", "On its way"])
        #expect(hinted.threadID == "orders")
        #expect(hinted.look.subtitle == "Order 42")
        #expect(
            hinted.look.sound == NotificationLook.Sound(name: "bell.caf", criticalVolume: 0.25))
        #expect(hinted.look.category == "ORDER")
        #expect(hinted.look.interruptionLevel == "time-sensitive")
        #expect(hinted.look.relevance == 0.7)
        #expect(hinted.look.targetContent == "window/1")
        let info = try #require(hinted.look.userInfo.firstRange(of: #""rouse":{"c":""#))
        #expect(hinted.look.userInfo[..<info.lowerBound] == #"{"numbers":[1,-2.5],"#)
        #expect(
            hinted.look.userInfo.hasSuffix(
                #""t":"order"},"shop":{"name":"größer","none":null,"open":true}}"#))
        let news = try notification("dora", story)
        #expect(news.look.sound == nil && news.threadID == nil)
        #expect([news.title, news.body] == ["", "Sale"])
        let german = try notification("fay", story)
        #expect([german.title, german.body] == ["Laden", "Unterwegs"])
        #expect(german.look.subtitle == "Nr. 42" && german.look.bodyArguments == nil)
        let keyed = try notification("hal", story)
        #expect([keyed.title, keyed.body] == ["SHOP", "SENT"])
        #expect(keyed.look.titleArguments == [] && keyed.look.bodyArguments == ["42", "a b"])
        #expect(keyed.look.subtitle == "Order 42")
        #expect(keyed.look.sound == NotificationLook.Sound(name: "van.caf"))
    }

    /// What woke ben's app says in the app's own words what it was for.
    private func judgeSilentPushes(_ story: Story) throws {
        let log = try story.tell("ben", .log) {
            $0.after = story.logStart
            $0.kinds = [.received]
        }
        let silent = (log.events ?? []).filter {
            $0.device == "hints-ben" && $0.pushType == "background"
        }
        let told = try #require(silent.first?.userInfo)
        #expect(told.contains(#""e":"message","i":"42 \"a\"","o":""#), "\(told)")
        #expect(told.hasSuffix(#"","t":"order"}}"#), "\(told)")
    }
}

/// A body of the API, written as JSON.
private enum JSON: Codable {
    case null
    case flag(Bool)
    case number(Double)
    case text(String)
    case list([JSON])
    case object([String: JSON])

    init(_ text: String) throws {
        self = try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
    }

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let flag = try? value.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let list = try? value.decode([JSON].self) {
            self = .list(list)
        } else {
            self = .object(try value.decode([String: JSON].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .null: try value.encodeNil()
        case .flag(let flag): try value.encode(flag)
        case .number(let number): try value.encode(number)
        case .text(let text): try value.encode(text)
        case .list(let list): try value.encode(list)
        case .object(let members): try value.encode(members)
        }
    }
}
