import AppLife
import Model
import RouseClient
import Testing
import Wire

/// Where pushes and deep links lead: one place each, and nothing half loaded is seen.
@MainActor @Suite struct EventTests {
    enum Kind: String, EventKind {
        case order
        case refund = "Refund/é"
    }

    typealias Router = EventRouter<Kind, String>

    @MainActor final class Page: EventResponder {
        let takes: Set<String>
        var taken: [String] = []

        init(_ takes: Set<String>) { self.takes = takes }

        func respond(to event: Event<Kind>) -> Bool {
            guard takes.contains(event.object) else { return false }
            taken.append(event.object)
            return true
        }
    }

    /// What the person sees and hears, in order.
    @MainActor final class Screen {
        var log: [String] = []
        lazy var router = Router(
            present: { [unowned self] in log.append("shows \($0.joined(separator: ">"))") },
            offer: { [unowned self] path, _ in log.append("told of \(path.last ?? "")") })

        /// Paths that wait at `gate` before they are loaded.
        func gated(_ gates: [String: AsyncStream<Void>], begun: AsyncStream<String>.Continuation) {
            router.path(to: .order) { event in
                begun.yield(event.object)
                if let gate = gates[event.object] { for await _ in gate {} }
                try Task.checkCancellation()
                return ["orders", event.object]
            }
        }
    }

    @Test("a payload, the app's own notification and a link say the same two strings")
    func sameStrings() throws {
        let event = Event<Kind>(.order, object: "42")
        #expect(Event<Kind>(url: "shop://order/42") == event)
        #expect(Event<Kind>(url: "shop://order/42/?from=mail#top") == event)
        #expect(Event<Kind>(url: "https://shop.example/order/42") == event)
        #expect(event.url(scheme: "shop") == "shop://order/42")
        let odd = Event<Kind>(.refund, object: "a/b?c#d %é")
        #expect(Event<Kind>(url: odd.url(scheme: "shop")) == odd)
        for url in [
            "", "shop", "shop://", "://order/42", "shop:///42", "shop://order/4/2",
            "shop://order/%zz", "shop://order/%FF", "shop://order/%F0%9F%98", "shop://Order/42",
            "https://shop.example",
        ] {
            #expect(Event<Kind>(url: url) == nil, "\(url)")
        }
        #expect(Event<Kind>(url: "shop://order")?.object == "")
    }

    @Test("a notification leads where the push would: the one the app showed itself, too")
    func notifications() async throws {
        let screen = Screen()
        screen.router.path(to: .order) { ["orders", $0.object] }
        let notice = AppNotice(
            object: MessageID(high: 1, low: 2), conversation: nil, title: "", body: "sent",
            hints: PushHints(event: "order", object: "42", data: #"{"x":1}"#))
        #expect(
            await screen.router.dispatch(userInfo: notice.userInfo, .asked) == .presented)
        let pushed: [AnyHashable: Any] = [
            "aps": ["alert": "sent"], "rouse": ["e": "message", "t": "order", "i": "43"],
        ]
        #expect(await screen.router.dispatch(userInfo: pushed, .came) == .offered)
        #expect(screen.log == ["shows orders>42", "told of 43"])
        // Of the server's own kinds none is an event of the app's.
        #expect(
            await screen.router.dispatch(userInfo: ["rouse": ["e": "message"]], .asked) == .none)
        #expect(
            await screen.router.dispatch(
                userInfo: ["rouse": ["t": "ordr", "i": "1"]], .asked) == .unknown)
        #expect(await screen.router.open(url: "shop://nothing/1") == .unknown)
        #expect(screen.router.unknownEvents == 2)
        #expect(await screen.router.dispatch(Event(.refund, object: "1"), .asked) == .unrouted)
    }

    @Test("exactly one answers: the last pushed that takes it; who is gone is not asked")
    func chain() async {
        let screen = Screen()
        screen.router.path(to: .order) { ["orders", $0.object] }
        let list = Page(["1", "2"])
        var detail: Page? = Page(["2"])
        screen.router.push(list)
        detail.map { screen.router.push($0) }
        #expect(await screen.router.dispatch(Event(.order, object: "2"), .came) == .answered)
        #expect(detail?.taken == ["2"])
        #expect(list.taken.isEmpty)
        #expect(await screen.router.dispatch(Event(.order, object: "1"), .came) == .answered)
        #expect(list.taken == ["1"])
        // The router keeps nobody alive.
        weak let gone = detail
        detail = nil
        #expect(gone == nil)
        #expect(await screen.router.dispatch(Event(.order, object: "2"), .came) == .answered)
        #expect(list.taken == ["1", "2"])
        screen.router.remove(list)
        #expect(await screen.router.dispatch(Event(.order, object: "2"), .asked) == .presented)
        #expect(screen.log == ["shows orders>2"])
    }

    @Test("nothing is seen or heard before everything is loaded, nor of what fails")
    func wholeBeforeShown() async {
        let screen = Screen()
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let (begun, beginning) = AsyncStream<String>.makeStream()
        screen.gated(["42": gate], begun: beginning)
        let dispatched = Task { await screen.router.dispatch(Event(.order, object: "42"), .came) }
        for await _ in begun { break }
        #expect(screen.log.isEmpty)
        opened.finish()
        #expect(await dispatched.value == .offered)
        #expect(screen.log == ["told of 42"])
        struct NoNetwork: Error {}
        screen.router.path(to: .refund) { _ in throw NoNetwork() }
        #expect(await screen.router.dispatch(Event(.refund, object: "1"), .asked) == .failed)
        #expect(screen.log == ["told of 42"])
        // What failed is in nobody's way.
        #expect(await screen.router.dispatch(Event(.order, object: "7"), .asked) == .presented)
    }

    @Test(
        "while one is loaded, what comes waits its turn, and what the person asks for replaces it")
    func meanwhile() async {
        let screen = Screen()
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let (begun, beginning) = AsyncStream<String>.makeStream()
        var starts = begun.makeAsyncIterator()
        screen.gated(["1": gate], begun: beginning)
        let first = Task { await screen.router.dispatch(Event(.order, object: "1"), .asked) }
        #expect(await starts.next() == "1")
        let second = Task { await screen.router.dispatch(Event(.order, object: "2"), .came) }
        let third = Task { await screen.router.dispatch(Event(.order, object: "3"), .asked) }
        #expect(await third.value == .presented)
        #expect(await first.value == .replaced)
        #expect(await second.value == .offered)
        #expect(screen.log == ["shows orders>3", "told of 2"])
        opened.finish()
    }

    @Test("of more events than may wait the oldest is replaced, and the others come in order")
    func waiting() async {
        let screen = Screen()
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let (begun, beginning) = AsyncStream<String>.makeStream()
        var starts = begun.makeAsyncIterator()
        screen.gated(["0": gate], begun: beginning)
        let first = Task { await screen.router.dispatch(Event(.order, object: "0"), .came) }
        #expect(await starts.next() == "0")
        var others: [Task<EventOutcome, Never>] = []
        for number in 1...(Router.waitingMax + 1) {
            others.append(
                Task { await screen.router.dispatch(Event(.order, object: "\(number)"), .came) })
        }
        #expect(await others[0].value == .replaced)
        opened.finish()
        #expect(await first.value == .offered)
        for other in others.dropFirst() { #expect(await other.value == .offered) }
        #expect(screen.log == ([0] + (2...9)).map { "told of \($0)" })
    }
}
