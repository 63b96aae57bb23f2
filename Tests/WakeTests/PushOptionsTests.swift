import Foundation
import Model
import Testing

@testable import Wake

/// What a backend may say about an alert, read back by Foundation's JSON parser.
@Suite struct PushOptionsTests {
    private let room = ConversationID(high: 3, low: 3)
    private let subject = PushPayload.Subject(
        event: "message", message: messageID(10),
        conversation: ConversationID(high: 3, low: 3), wake: wakeID(1))

    private func canonical(_ value: Any) throws -> String {
        let data = try JSONSerialization.data(
            withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes])
        return String(decoding: data, as: UTF8.self)
    }

    private func object(_ payload: [UInt8]) throws -> [String: Any] {
        let json = try JSONSerialization.jsonObject(with: Data(payload))
        return try #require(json as? [String: Any])
    }

    private func aps(
        _ options: PushOptions, title: String = "T", body: String = "B", others: UInt64 = 0,
        locale: String = "", otherwise: String = ""
    ) throws -> [String: Any] {
        let text = options.shown(
            title: title, body: body, locale: locale, otherwise: otherwise, others: others)
        let payload = PushPayload.alert(text, options: options, badge: 3, subject: subject)
        return try #require(try object(payload)["aps"] as? [String: Any])
    }

    private func alert(
        _ options: PushOptions, title: String = "T", body: String = "B", others: UInt64 = 0,
        locale: String = "", otherwise: String = ""
    ) throws -> [String: Any] {
        let aps = try aps(
            options, title: title, body: body, others: others, locale: locale,
            otherwise: otherwise)
        return try #require(aps["alert"] as? [String: Any])
    }

    @Test func everyKeyStandsWhereAppleReadsIt() throws {
        var options = PushOptions()
        options.subtitle = "S"
        options.sound = .named("ping.caf")
        options.thread = "orders"
        options.category = "ORDER"
        options.interruption = .timeSensitive
        options.relevance = 750
        options.targetContent = "window-1"
        options.isMutable = false
        options.event = "order.shipped"
        options.object = "4711"
        options.custom = try CustomData([
            "url": .text("https://example.org/a?b=\"c\""), "n": .list([.integer(-1), .null]),
            "o": .object(["x": .flag(true), "y": .number("1.5e3")]),
        ])
        let payload = PushPayload.alert(
            options.shown(title: "T", body: "B", locale: "", otherwise: ""), options: options,
            badge: 3, subject: subject)
        #expect(
            try canonical(try object(payload))
                == #"{"aps":{"alert":{"body":"B","subtitle":"S","title":"T"},"badge":3,"#
                + #""category":"ORDER","content-available":1,"#
                + #""interruption-level":"time-sensitive","relevance-score":0.75,"#
                + #""sound":"ping.caf","target-content-id":"window-1","thread-id":"orders"},"#
                + #""n":[-1,null],"o":{"x":true,"y":1500},"#
                + #""rouse":{"c":"\#(room)","e":"message","i":"4711","#
                + #""o":"\#(messageID(10))","t":"order.shipped","w":"\#(wakeID(1))"},"#
                + #""url":"https://example.org/a?b=\"c\""}"#)
    }

    @Test func soundsAreANameNothingOrACriticalOne() throws {
        var options = PushOptions()
        #expect(try aps(options)["sound"] as? String == "default")
        options.sound = .none
        #expect(try aps(options)["sound"] == nil)
        options.sound = .critical(name: "alarm.caf", volume: 5)
        let sound = try #require(try aps(options)["sound"])
        #expect(try canonical(sound) == #"{"critical":1,"name":"alarm.caf","volume":0.05}"#)
        options.sound = .critical(name: "alarm.caf", volume: 100)
        #expect((try aps(options)["sound"] as? [String: Any])?["volume"] as? Int == 1)
    }

    @Test func localizationKeysStandInPlaceOfTexts() throws {
        var options = PushOptions()
        options.titleKey = .init("TITLE", ["a"])
        options.subtitleKey = .init("SUB")
        options.bodyKey = .init("BODY", ["x", "\"y\""])
        #expect(
            try canonical(alert(options))
                == #"{"loc-args":["x","\"y\""],"loc-key":"BODY","subtitle-loc-key":"SUB","#
                + #""title-loc-args":["a"],"title-loc-key":"TITLE"}"#)
        // The plain text can name how many others there are; the key cannot.
        #expect(try alert(options, others: 2)["body"] as? String == "B (and 2 more)")
        #expect(try alert(options, others: 2)["loc-key"] == nil)
        options.moreKey = "BODY_MORE"
        #expect(try alert(options, others: 2)["loc-key"] as? String == "BODY_MORE")
        #expect(try alert(options, others: 2)["loc-args"] as? [String] == ["x", "\"y\"", "2"])
    }

    @Test func theTextIsTheDevicesElseTheAppsElseTheOneForAll() throws {
        var options = PushOptions()
        options.titleKey = .init("TITLE")
        options.texts = [
            .init(locale: "de", title: "Titel", body: "Text", more: " (und %d weitere)"),
            .init(locale: "de-CH", body: "Täxt"),
            .init(locale: "zh-Hant", body: "文字"),
        ]
        func body(_ locale: String, _ otherwise: String = "") throws -> String? {
            try alert(options, locale: locale, otherwise: otherwise)["body"] as? String
        }
        #expect(try body("de-AT") == "Text")
        #expect(try body("DE_ch") == "Täxt")
        #expect(try body("zh-Hant-TW") == "文字")
        #expect(try body("zh-Hant-x-private") == "文字")
        // The other script is another language to read.
        #expect(try body("zh-Hans-CN") == "B")
        #expect(try body("fr") == "B")
        #expect(try body("fr", "de") == "Text")
        #expect(try body("", "de") == "Text")
        #expect(try body("no tag!", "de") == "Text")
        // A chosen text stands in place of the key, and counts in its own language.
        let chosen = try alert(options, others: 6, locale: "de")
        #expect(try canonical(chosen) == #"{"body":"Text (und 6 weitere)","title":"Titel"}"#)
    }

    @Test func theFormInARowKeepsEverything() throws {
        #expect(PushOptions().encoded == [])
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let options = try Self.some(&random)
            #expect(PushOptions(encoded: options.encoded) == options)
            #expect(PushOptions.urgency(of: options.encoded) == options.urgency)
            // Cut anywhere it is refused or is options still: never a trap.
            let cut = Array(options.encoded.dropLast(Int.random(in: 0...40)))
            _ = PushOptions(encoded: cut)
        }
        #expect(PushOptions(encoded: [1, 0, 0]) == nil)
        #expect(PushOptions(encoded: [1, 0, 0, 0, 9, 1]) == nil)
        // What a later version writes is passed over.
        #expect(PushOptions(encoded: [99, 0, 0, 0, 1, 7]) == PushOptions())
    }

    /// Every text fits after its cut, is JSON, and ends at the edge of a character.
    @Test func anyTextFitsIntoAPush() throws {
        var random = SystemRandomNumberGenerator()
        for round in 0..<400 {
            let options = try Self.some(&random)
            let title = Self.text(&random, upTo: 400)
            let body = Self.text(&random, upTo: 3_000)
            let problem = options.problem(title: title, body: body)
            if round % 2 == 0, problem != nil { continue }
            let others = Bool.random() ? 0 : UInt64.random(in: 1...999)
            let locale = ["", "de", "ja-JP", "en"].randomElement() ?? ""
            let text = options.shown(
                title: title, body: body, locale: locale, otherwise: "en", others: others)
            let payload = PushPayload.alert(
                text, options: options, badge: .random(in: 0...999), subject: subject)
            #expect(payload.count <= PushPayload.bytesMax)
            let aps = try #require(try object(payload)["aps"] as? [String: Any])
            let shown = try #require(aps["alert"] as? [String: Any])
            if problem == nil {
                expectCut(shown["title"], of: text.title)
                expectCut(shown["subtitle"], of: text.subtitle)
                if others == 0 { expectCut(shown["body"], of: text.body) }
            }
            // Printable text stands as it is.
            #expect(!String(decoding: payload, as: UTF8.self).contains("\\u2"))
        }
    }

    /// Nothing but a beginning of the text, whole characters of it, and an ellipsis.
    private func expectCut(_ shown: Any?, of text: String) {
        guard let shown = shown as? String, shown != text else { return }
        #expect(shown.unicodeScalars.last == "…")
        let beginning = Array(String(shown.unicodeScalars.dropLast()))
        #expect(Array(text).starts(with: beginning), "\(shown) of \(text)")
    }

    @Test func whatCannotFitIsRefusedWithTheReason() throws {
        func problem(
            body: String = "B", _ change: (inout PushOptions) throws -> Void
        ) throws -> PushProblem? {
            var options = PushOptions()
            try change(&options)
            return options.problem(title: "T", body: body)
        }
        #expect(try problem { _ in } == nil)
        #expect(try problem(body: String(repeating: "x", count: 9_000)) { _ in } == nil)
        let large = try CustomData(["x": .text(String(repeating: "x", count: 3_000))])
        #expect(try problem { $0.custom = large } == nil)
        // Each fits alone; together they leave no room for a text.
        func fill(_ options: inout PushOptions) {
            options.custom = large
            options.bodyKey = .init(
                "K", Array(repeating: String(repeating: "y", count: 200), count: 4))
        }
        guard case .tooLarge(let reason)? = try problem(fill) else {
            Issue.record("it was taken")
            return
        }
        #expect(reason.hasSuffix("bytes beside its text, of 4096"))
        #expect(throws: PushProblem.tooLarge("more than 3072 bytes of custom data")) {
            try CustomData(["x": .text(String(repeating: "\u{1}", count: 600))])
        }
        #expect(throws: PushProblem.malformed("custom data named aps")) {
            try CustomData(["aps": .null])
        }
        #expect(throws: PushProblem.malformed("custom data named rouse")) {
            try CustomData(["rouse": .null])
        }
        for digits in ["", "01", "1.", "-", "1e", "NaN", "1,2", "+1", "1 "] {
            #expect(throws: PushProblem.malformed("a number that is none")) {
                try CustomData(["x": .number(digits)])
            }
        }
        var deep = CustomValue.null
        for _ in 0..<40 { deep = .list([deep]) }
        #expect(throws: PushProblem.self) { try CustomData(["x": deep]) }
    }

    @Test func eachMistakeIsNamed() throws {
        let long = String(repeating: "x", count: 129)
        let cases: [(String, (inout PushOptions) -> Void)] = [
            ("thread", { $0.thread = long }), ("category", { $0.category = "a\nb" }),
            ("target content id", { $0.targetContent = long }), ("event", { $0.event = long }),
            ("object", { $0.object = long }), ("sound", { $0.sound = .named("") }),
            ("sound", { $0.sound = .named(long) }),
            ("volume", { $0.sound = .critical(name: "a", volume: 101) }),
            ("relevance", { $0.relevance = 1_001 }), ("key", { $0.bodyKey = .init("") }),
            ("arguments", { $0.bodyKey = .init("a", Array(repeating: "", count: 17)) }),
            ("argument", { $0.titleKey = .init("a", [long + long]) }),
            ("single", { $0.moreKey = "a" }), ("more messages", { $0.more = long }),
            (
                "key",
                {
                    $0.moreKey = long + long
                    $0.bodyKey = .init("a")
                }
            ),
            ("subtitle", { $0.subtitle = String(repeating: "x", count: 2_049) }),
            ("language tag", { $0.texts = [.init(locale: "-de", body: "x")] }),
            (
                "two texts",
                {
                    $0.texts = [.init(locale: "de", body: "x"), .init(locale: "DE", body: "y")]
                }
            ),
            ("no title", { $0.texts = [.init(locale: "de")] }),
            (
                "text for de",
                {
                    $0.texts = [.init(locale: "de", body: String(repeating: "x", count: 2_049))]
                }
            ),
            (
                "64 locales",
                {
                    $0.texts = (0..<65).map {
                        .init(locale: "de-x-\(1_000 + $0)", body: "x")
                    }
                }
            ),
            (
                "push options",
                {
                    $0.texts = (0..<20).map {
                        .init(
                            locale: "de-x-\(1_000 + $0)",
                            body: String(repeating: "x", count: 2_000))
                    }
                }
            ),
        ]
        for (word, change) in cases {
            var options = PushOptions()
            change(&options)
            switch options.problem(title: "T", body: "B") {
            case .malformed(let reason)?, .tooLarge(let reason)?:
                #expect(reason.contains(word), "\(reason)")
            case nil: Issue.record("\(word) was taken")
            }
        }
        var options = PushOptions()
        options.texts = [.init(locale: "de", body: "x")]
        #expect(options.problem(title: "", body: "") != nil)
        options.titleKey = .init("K")
        #expect(options.problem(title: "", body: "") == nil)
    }

    // MARK: random values

    private static let pieces = [
        "a", "\"", "\\", "\n", "\u{0}", "\u{1F}", "é", "e\u{301}", "ß", "文", "\u{2028}", "👋",
        "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "👍🏽", "\u{200D}", "\u{600}", "נ", "กำ", "  ",
    ]

    static func text(_ random: inout SystemRandomNumberGenerator, upTo most: Int) -> String {
        let count = Int.random(in: 0...most, using: &random)
        return (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
    }

    static func some(_ random: inout SystemRandomNumberGenerator) throws -> PushOptions {
        var options = PushOptions()
        func maybe(_ change: () throws -> Void) rethrows { if Bool.random() { try change() } }
        func word() -> String { String((0..<Int.random(in: 1...20)).map { _ in "x" }) }
        options.urgency = Urgency.allCases.randomElement(using: &random) ?? .normal
        maybe { options.subtitle = text(&random, upTo: 30) }
        maybe { options.titleKey = .init(word(), [text(&random, upTo: 9)]) }
        maybe { options.subtitleKey = .init(word()) }
        maybe { options.bodyKey = .init(word(), [word(), text(&random, upTo: 9)]) }
        if options.bodyKey != nil { maybe { options.moreKey = word() } }
        maybe { options.more = " +%d" }
        let sounds: [PushOptions.Sound] = [
            .standard, .none, .named(word()), .critical(name: word(), volume: 30),
        ]
        options.sound = sounds.randomElement(using: &random) ?? .standard
        maybe { options.thread = word() }
        maybe { options.category = word() }
        options.interruption = PushOptions.InterruptionLevel.allCases.randomElement()
        maybe { options.relevance = .random(in: 0...1_000) }
        maybe { options.targetContent = word() }
        options.isMutable = .random()
        maybe { options.event = word() }
        maybe { options.object = word() }
        try maybe {
            let filler = String(repeating: "d", count: .random(in: 0...2_900))
            options.custom = try CustomData(["d": .text(filler), "é": .integer(.min)])
        }
        for locale in ["de", "ja"] {
            maybe {
                options.texts.append(
                    .init(
                        locale: locale, title: word(), subtitle: word(),
                        body: text(&random, upTo: 60), more: " 他%d件"))
            }
        }
        return options
    }
}
