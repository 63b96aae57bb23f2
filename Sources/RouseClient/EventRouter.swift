/// Something on the screen, or behind it, that may take an event itself: the page of order 42 that
/// is open when order 42 changes.
@MainActor
public protocol EventResponder: AnyObject {
    associatedtype Kind: EventKind

    /// Whether it has taken the event; then nobody else is asked.
    func respond(to event: Event<Kind>) -> Bool
}

/// Why an event is dispatched.
public enum EventOrigin: Equatable, Sendable {
    /// The person asked for it, by a tap or a link.
    case asked
    /// It came while the person looks at the app.
    case came
}

/// What becomes of an event that comes while another one's screens are loaded.
public enum MeanwhileRule: Equatable, Sendable {
    case waits
    /// What is loaded is given up.
    case replaces
}

/// What became of an event.
public enum EventOutcome: Equatable, Sendable {
    /// A responder took it.
    case answered
    /// Its screens are loaded and shown.
    case presented
    /// Its screens are loaded, and the person was told: what to do is theirs.
    case offered
    /// A later event took its place.
    case replaced
    /// Its screens could not be loaded; nothing was shown.
    case failed
    /// Nobody answers, and there is no path to its kind.
    case unrouted
    /// The app does not know its kind.
    case unknown
    /// It names no event.
    case none
}

/// Leads each event to exactly one place: the responder pushed last that takes it, or else the
/// path of screens to it, which is loaded whole before the person sees or hears anything of it.
@MainActor
public final class EventRouter<Kind: EventKind, Screen: Sendable> {
    /// Builds and loads the screens that lead to an event, the outermost first. When it returns,
    /// nothing is left to load.
    public typealias Path = @MainActor (Event<Kind>) async throws -> [Screen]

    /// Events that wait at a time; of more the oldest is replaced.
    public static var waitingMax: Int { 8 }

    private struct Link {
        weak var object: AnyObject?
        let respond: (Event<Kind>) -> Bool
    }

    private struct Turn {
        let number: UInt64
        let event: Event<Kind>
        let origin: EventOrigin
        /// `nil`: it is its turn, and it has not begun to load.
        var task: Task<[Screen], any Error>?
    }

    private struct Waiting {
        let turn: Turn
        let go: CheckedContinuation<Void, Never>
    }

    private var chain: [Link] = []
    private var paths: [Kind: Path] = [:]
    private var current: Turn?
    private var waiting: [Waiting] = []
    private var last: UInt64 = 0
    private let present: @MainActor ([Screen]) -> Void
    private let offer: @MainActor ([Screen], Event<Kind>) -> Void
    private let rule: @MainActor (_ loading: EventOrigin, _ new: EventOrigin) -> MeanwhileRule
    /// Events of kinds that this app does not know: its backend is ahead of it, or mistaken.
    public private(set) var unknownEvents = 0

    /// - Parameters:
    ///   - rule: what an event does to one that is loaded. If nothing is said, what the person asks
    ///     for replaces it, and what comes by itself waits.
    ///   - present: shows screens that the person has asked for.
    ///   - offer: tells the person, who looks at something else, of screens that are ready.
    public init(
        rule: @escaping @MainActor (_ loading: EventOrigin, _ new: EventOrigin) -> MeanwhileRule = {
            $1 == .asked ? .replaces : .waits
        },
        present: @escaping @MainActor ([Screen]) -> Void,
        offer: @escaping @MainActor ([Screen], Event<Kind>) -> Void
    ) {
        self.rule = rule
        self.present = present
        self.offer = offer
    }

    // MARK: - Who answers

    /// From now on the first to be asked. It is not kept alive; when it is gone, nobody misses it.
    public func push<Responder: EventResponder>(
        _ responder: Responder
    ) where Responder.Kind == Kind {
        remove(responder)
        chain.append(
            Link(object: responder) { [weak responder] in responder?.respond(to: $0) ?? false })
    }

    /// Asks it no more; one that is not there is passed over.
    public func remove(_ responder: some EventResponder) {
        chain.removeAll { $0.object == nil || $0.object === responder }
    }

    /// The path to events of a kind.
    public func path(to kind: Kind, _ path: @escaping Path) { paths[kind] = path }

    // MARK: - What comes in

    /// A notification was tapped, or came while the app is in front.
    public func dispatch(
        userInfo: [AnyHashable: Any], _ origin: EventOrigin
    ) async -> EventOutcome {
        guard let words = EventWords(userInfo: userInfo) else { return .none }
        return await dispatch(words, origin)
    }

    /// A deep link was opened.
    public func open(url: String) async -> EventOutcome {
        guard let words = EventWords(url: url) else { return .none }
        return await dispatch(words, .asked)
    }

    private func dispatch(_ words: EventWords, _ origin: EventOrigin) async -> EventOutcome {
        guard let event = Event<Kind>(kind: words.kind, object: words.object) else {
            unknownEvents += 1
            return .unknown
        }
        return await dispatch(event, origin)
    }

    /// An event that the app has made itself.
    public func dispatch(_ event: Event<Kind>, _ origin: EventOrigin) async -> EventOutcome {
        if isAnswered(event) { return .answered }
        guard let path = paths[event.kind] else { return .unrouted }
        last += 1
        let turn = Turn(number: last, event: event, origin: origin)
        if let loading = current, rule(loading.origin, origin) == .waits {
            await withCheckedContinuation { go in
                waiting.append(Waiting(turn: turn, go: go))
                if waiting.count > Self.waitingMax { waiting.removeFirst().go.resume() }
            }
            guard current?.number == turn.number else { return .replaced }
            // The screen is another one by now.
            if isAnswered(event) {
                goOn()
                return .answered
            }
        } else {
            current?.task?.cancel()
            current = turn
        }
        return await load(turn, path)
    }

    private func load(_ turn: Turn, _ path: @escaping Path) async -> EventOutcome {
        let task = Task { try await path(turn.event) }
        current?.task = task
        let result = await task.result
        guard current?.number == turn.number else { return .replaced }
        defer { goOn() }
        guard case .success(let screens) = result, !screens.isEmpty else { return .failed }
        if turn.origin == .asked {
            present(screens)
            return .presented
        }
        offer(screens, turn.event)
        return .offered
    }

    private func isAnswered(_ event: Event<Kind>) -> Bool {
        chain.removeAll { $0.object == nil }
        return chain.reversed().contains { $0.respond(event) }
    }

    /// The turn goes to the one that has waited longest, before anything new can take it.
    private func goOn() {
        current = nil
        guard !waiting.isEmpty else { return }
        let next = waiting.removeFirst()
        current = next.turn
        next.go.resume()
    }
}
