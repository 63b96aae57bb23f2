import Foundation
import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// What a backend said of a push, as the feed shows it (MSG-54, MSG-55).
@Suite struct PushHintTests {
    private static let phone = DeviceID(high: 2, low: 1)
    private static let tablet = DeviceID(high: 2, low: 2)

    /// Everything that a backend can say but for languages.
    private static func everything() throws -> PushOptions {
        var options = PushOptions()
        options.subtitle = "Order 42"
        options.titleKey = .init("TITLE", ["a", ""])
        options.subtitleKey = .init("SUBTITLE")
        options.bodyKey = .init("BODY", ["b"])
        options.sound = .critical(name: "bell.caf", volume: 25)
        options.thread = "orders"
        options.category = "ORDER"
        options.interruption = .timeSensitive
        options.relevance = 700
        options.targetContent = "window"
        options.event = "order"
        options.object = "42"
        options.custom = try CustomData(["b": .list([.integer(1), .null]), "a": .text("größer")])
        return options
    }

    private static let everythingTold = PushHints(
        subtitle: "Order 42", titleKey: LocalizedText(key: "TITLE", arguments: ["a", ""]),
        subtitleKey: LocalizedText(key: "SUBTITLE"),
        bodyKey: LocalizedText(key: "BODY", arguments: ["b"]),
        sound: PushSound(kind: .critical, name: "bell.caf", volume: 25), thread: "orders",
        category: "ORDER", interruptionLevel: .timeSensitive, relevance: 701,
        targetContent: "window", event: "order", object: "42",
        data: #"{"a":"größer","b":[1,null]}"#)

    @discardableResult
    private func publish(
        _ world: World, _ room: ConversationID, _ options: PushOptions,
        push: PushText? = PushText(title: "Shop", body: "On its way")
    ) throws -> MessageRecord {
        var send = world.message0("text", to: room, world.fresh())
        send.push = push
        let answer = try world.ask(
            .publish(
                app: World.app, Publication(message: send, sender: "anna", options: options),
                idempotency: nil))
        guard case .published(let record) = answer else { throw Unexpected(answer: answer) }
        return record
    }

    private func announce(
        _ world: World, _ options: PushOptions, push: PushText?
    ) throws -> AnnouncementState? {
        _ = try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: world.fresh(), users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])], push: push,
                    options: options),
                idempotency: nil))
        guard case .announcement(let state) = try world.page("bob").entries.last?.body else {
            return nil
        }
        return state
    }

    private func newest(_ world: World, _ device: DeviceID? = nil) throws -> MessageState? {
        guard
            case .message(let state) = try world.page("bob", device: device).entries.last?.body
        else { return nil }
        return state
    }

    private func login(_ world: World, _ device: DeviceID, locale: String) throws {
        let answer = try world.ask(
            .openSession(
                OpenSession(
                    app: World.app, device: device, role: .app,
                    credential: .identity(UserID("bob")), newTokenHash: world.hash(),
                    freshEpochHalf: 5, boot: BootID(high: 9, low: 9),
                    place: DevicePlace(locale: locale))))
        guard case .opened = answer else { throw Unexpected(answer: answer) }
    }

    @Test func everythingComesByTailPageAndHistory() throws {
        let world = try World()
        let room = try world.converse(["anna", "bob"])
        try publish(world, room, try Self.everything())
        let tails = world.changes.compactMap(\.tail).flatMap(\.entries).map(\.state.entry)
        #expect(tails.count == 2)
        let paged = try #require(try world.page("bob").entries.last)
        var all = tails + [paged]
        for query in [
            HistoryQuery.fetch(
                World.app, UserID("bob"), Fetch(conversation: room), bytes: 1 << 16),
            .snapshot(World.app, UserID("bob"), SnapshotFrame(), bytes: 1 << 16),
        ] {
            switch try world.read(.history(query)) {
            case .history(.page(let page)): all += page.entries.suffix(1)
            case .history(.snapshotPage(let page)):
                all += page.conversations.flatMap(\.entries).filter {
                    if case .message = $0.body { true } else { false }
                }
            default: Issue.record("no page")
            }
        }
        #expect(all.count == 5)
        for entry in all {
            guard case .message(let state) = entry.body else {
                Issue.record("no message")
                continue
            }
            #expect(state.hints == Self.everythingTold)
            #expect(state.push == PushText(title: "Shop", body: "On its way"))
        }
    }

    @Test func aPushAsUsualHasNone() throws {
        let world = try World()
        let room = try world.converse(["anna", "bob"])
        try publish(world, room, PushOptions())
        #expect(try newest(world)?.hints == nil)
        var urgent = PushOptions()
        urgent.urgency = .urgent
        urgent.more = " (%d)"
        urgent.isMutable = false
        try publish(world, room, urgent)
        #expect(try newest(world)?.hints == nil)
    }

    @Test func withoutAnAlertOnlyTheAppsOwnWordsCome() throws {
        let world = try World()
        let room = try world.converse(["anna", "bob"])
        let own = PushHints(
            event: "order", object: "42", data: #"{"a":"größer","b":[1,null]}"#)
        var options = try Self.everything()
        options.urgency = .passive
        try publish(world, room, options)
        #expect(try newest(world)?.push == nil)
        #expect(try newest(world)?.hints == own)
        let told = try announce(world, options, push: PushText(title: "", body: "Sale"))
        #expect(told?.push == nil)
        #expect(told?.hints == own)
    }

    @Test func anAnnouncementOfKeysAloneHasAPush() throws {
        let world = try World()
        var options = PushOptions()
        options.bodyKey = .init("SALE", ["3"])
        let told = try announce(world, options, push: nil)
        #expect(told?.push == PushText())
        #expect(
            told?.hints == PushHints(bodyKey: LocalizedText(key: "SALE", arguments: ["3"])))
    }

    @Test func eachDeviceGetsItsLanguage() throws {
        let world = try World()
        let room = try world.converse(["anna", "bob"])
        try world.expectDone(.putApp(World.classic(createdAt: world.now, locale: "fr")))
        try login(world, Self.phone, locale: "de-AT")
        try login(world, Self.tablet, locale: "it")
        var options = PushOptions()
        options.titleKey = .init("TITLE")
        options.category = "ORDER"
        options.texts = [
            .init(locale: "de", title: "Laden", subtitle: "Bestellung 42", body: "Unterwegs"),
            .init(locale: "fr", body: "En route"),
        ]
        try publish(world, room, options)
        // Which text it is depends on the device: nothing is handed over to all.
        #expect(world.changes.compactMap(\.tail).isEmpty)
        let german = try #require(try newest(world, Self.phone))
        #expect(german.push == PushText(title: "Laden", body: "Unterwegs"))
        #expect(german.hints == PushHints(subtitle: "Bestellung 42", category: "ORDER"))
        // The app's own language, for who speaks none of them.
        let french = try #require(try newest(world, Self.tablet))
        #expect(french.push == PushText(title: "", body: "En route"))
        #expect(french.hints == PushHints(category: "ORDER"))
        // In history as it was published.
        let query = HistoryQuery.fetch(
            World.app, UserID("bob"), Fetch(conversation: room), bytes: 1 << 16)
        guard case .history(.page(let page)) = try world.read(.history(query)),
            case .message(let old) = page.entries.last?.body
        else { return #expect(Bool(false)) }
        #expect(old.push == PushText(title: "Shop", body: "On its way"))
        #expect(
            old.hints == PushHints(titleKey: LocalizedText(key: "TITLE"), category: "ORDER"))
    }

    @Test func aPeekAndAnAnnouncementSpeakTheLanguageToo() throws {
        let world = try World()
        try login(world, Self.phone, locale: "de")
        var options = PushOptions()
        options.texts = [.init(locale: "de", body: "Ausverkauf")]
        _ = try announce(world, options, push: PushText(title: "", body: "Sale"))
        let query = PageQuery(
            app: World.app, user: UserID("bob"), device: Self.phone, after: 0, bytes: 1 << 16,
            newestFirst: true)
        guard case .page(let page) = try world.read(.page(query)),
            case .announcement(let state) = page.entries.first?.body
        else { return #expect(Bool(false)) }
        #expect(state.push == PushText(title: "", body: "Ausverkauf"))
    }

    @Test func anEditKeepsThemButForTheTexts() throws {
        let world = try World()
        let room = try world.converse(["anna", "bob"])
        let record = try publish(world, room, try Self.everything())
        _ = try world.ask(
            .editMessage(
                app: World.app,
                EditMessage(
                    message: record.message, parts: [Part(mimeType: "a/b", content: [65])],
                    push: PushText(title: "", body: "new"), baseVersion: 0),
                idempotency: nil))
        var left = Self.everythingTold
        left.subtitle = ""
        (left.titleKey, left.subtitleKey, left.bodyKey) = (nil, nil, nil)
        #expect(try newest(world)?.hints == left)
    }

    @Test("an entry is never larger, in bytes and elements, than a page counts it")
    func bounds() throws {
        let world = try World()
        let room = try world.converse(["anna", "bob"])
        var chance = SeededGenerator(seed: 7)
        func text(_ most: UInt64) -> String {
            String(repeating: "ß", count: Int(chance.next() % (most / 2 + 1)))
        }
        for _ in 0..<200 {
            var options = PushOptions()
            options.subtitle = text(400)
            for path in [\PushOptions.titleKey, \.subtitleKey, \.bodyKey]
            where chance.next() % 2 == 0 {
                let arguments = (0..<chance.next() % 17).map { _ in text(20) }
                options[keyPath: path] = .init("K" + text(100), arguments)
            }
            options.sound = .critical(name: "s" + text(100), volume: chance.next() % 101)
            for path in [\PushOptions.thread, \.category, \.targetContent, \.event, \.object]
            where chance.next() % 2 == 0 {
                options[keyPath: path] = text(128)
            }
            options.interruption = .critical
            options.relevance = chance.next() % 1_001
            options.custom = try CustomData(["d": .text(text(300))])
            let record = try publish(world, room, options)
            let now = world.now
            try world.store.read { snapshot throws(StoreError) in
                let reader = PageReader(snapshot: snapshot, now: now) { _ in }
                let sized = try reader.entry(of: record)
                let page = Delta(entries: [sized.entry]).encoded
                #expect(page.count <= sized.bytes)
                let tight = FrameLimits(bodyBytes: 1 << 18, elements: sized.entry.elements)
                #expect((try? Delta(encoded: page, limits: tight)) != nil)
            }
        }
    }
}
