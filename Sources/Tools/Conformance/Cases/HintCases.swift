import FoundationEssentials
import JSONTree
import Model
import Wire

// What a backend says of a push, as it comes with the message.
extension Conformance {
    /// The data of hints in one spelling, whatever it came in.
    private static func data(_ hints: PushHints?) -> String {
        let text = Data((hints?.data ?? "").utf8)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let object = try? JSONDecoder().decode(JSONValue.self, from: text),
            let same = try? encoder.encode(object)
        else { return "no JSON" }
        return String(decoding: same, as: UTF8.self)
    }

    /// Publishes with a push, and gives the entry as it came to the device.
    private static func published(
        _ push: String, to ben: Device, _ sender: String, _ conversation: ConversationID, _ t: Trial
    ) throws -> MessageState {
        let body =
            "{\"sender\":\(TokenDraft.quoted(sender)),\"parts\":[{\"mime_type\":\"text/plain\","
            + "\"text\":\"x\"}],\"push\":\(push)}"
        let known = ben.replica.messages(in: conversation).count
        try t.backend().call("POST", "/v1/conversations/\(conversation)/messages", body)
        try ben.pump(until: "the message") { $0.messages(in: conversation).count > known }
        return ben.replica.messages(in: conversation)[known]
    }

    static let hintCases: [ConformanceCase] = [
        .must(
            "messaging.hints", "what a backend said of a push comes with the message",
            ["MSG-54: The server MUST send them as `hints` with every entry"]
        ) { t in
            let backend = try t.backend()
            let (anna, ben, conversation) = try t.pair()
            let message = try published(
                "{\"title\":\"t\",\"body\":\"b\",\"subtitle\":\"s\",\"subtitle_loc_key\":\"SUB\","
                    + "\"subtitle_loc_args\":[\"1\",\"zwei\"],\"sound\":{\"critical\":true,"
                    + "\"name\":\"a.caf\",\"volume\":0.25},\"thread\":\"order\",\"category\":\"C\","
                    + "\"interruption_level\":\"time-sensitive\",\"relevance\":0.7,"
                    + "\"target_content_id\":\"w\",\"event\":\"order\",\"object\":\"42\","
                    + "\"data\":{\"b\":[1,null],\"a\":\"größer\"}}",
                to: ben, anna.user, conversation, t)
            try requireEqual(message.push, PushText(title: "t", body: "b"), "push")
            var wanted = PushHints(
                subtitle: "s", subtitleKey: LocalizedText(key: "SUB", arguments: ["1", "zwei"]),
                sound: PushSound(kind: .critical, name: "a.caf", volume: 25), thread: "order",
                category: "C", interruptionLevel: .timeSensitive, relevance: 701,
                targetContent: "w", event: "order", object: "42")
            wanted.data = message.hints?.data ?? ""
            try requireEqual(message.hints, wanted, "hints")
            try requireEqual(
                data(message.hints), #"{"a":"größer","b":[1,null]}"#, "data among the hints")
            if !t.lacks("history") {
                let objects = ben.replica.log.filter { entry in
                    if case .message = entry.body { true } else { false }
                }.map(\.object)
                let request = ben.request()
                try ben.peer.send(.fetch(Fetch(object: objects[0])), request: request)
                let page = try ben.peer.expect(.page, request: request)
                guard case .message(let same) = page.entries.first?.body else {
                    throw CaseEnd.failed("no message in the PAGE")
                }
                try requireEqual(same.hints, message.hints, "hints in a PAGE")
            }
            let plain = try published("{\"body\":\"b\"}", to: ben, anna.user, conversation, t)
            try requireEqual(plain.hints, nil, "hints of a push without any")
            if t.lacks("MSG-50") { return }
            let id: MessageID = t.newID()
            try backend.call(
                "POST", "/v1/announcements",
                "{\"id\":\"\(id)\",\"users\":[\(TokenDraft.quoted(ben.user))],\"parts\":"
                    + "[{\"mime_type\":\"text/plain\",\"text\":\"news\"}],"
                    + "\"push\":{\"body\":\"news\",\"sound\":\"none\",\"event\":\"news\"}}")
            func found(_ replica: Replica) -> PushHints? {
                for entry in replica.objects.values where entry.object == id.bytes {
                    if case .announcement(let state) = entry.body { return state.hints }
                }
                return nil
            }
            try ben.pump(until: "the announcement with hints") { found($0) != nil }
            try requireEqual(
                found(ben.replica),
                PushHints(sound: PushSound(kind: SoundKind.none), event: "news"),
                "hints of the announcement")
        },
        .must(
            "messaging.hints-language", "a device gets the text of a push in its language",
            ["MSG-55", "SES-25"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            ben.locale = "de-AT"
            try ben.logIn()
            let push =
                "{\"title\":\"Order\",\"body\":\"It is on its way\",\"loc_key\":\"SENT\","
                + "\"texts\":{\"de\":{\"title\":\"Bestellung\",\"subtitle\":\"42\","
                + "\"body\":\"Unterwegs\"}},\"category\":\"C\"}"
            let told = try published(push, to: ben, anna.user, conversation, t)
            try requireEqual(
                told.push, PushText(title: "Bestellung", body: "Unterwegs"), "push in German")
            try requireEqual(told.hints, PushHints(subtitle: "42", category: "C"), "hints")
            try anna.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            let other = anna.replica.messages(in: conversation)[0]
            try requireEqual(
                other.push, PushText(title: "Order", body: "It is on its way"), "push of another")
            try requireEqual(
                other.hints, PushHints(bodyKey: LocalizedText(key: "SENT"), category: "C"),
                "hints of another")
        },
    ]
}
