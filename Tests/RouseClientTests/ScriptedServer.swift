import Model
import RouseClient
import SyncClient
import Synchronization
import Wire

/// A server of one feed, as far as a client sees it, on the other end of each connection.
final class ScriptedServer: RouseTransport {
    static let epoch = Epoch(high: 1, low: 1)

    struct Feed {
        var entries: [Entry] = []
        var unread: UInt32 = 0
        /// It takes connections and says nothing.
        var isSilent = false
        /// It closes, and says this to whoever comes.
        var closing: Code?
        /// It asks who is there.
        var challenges = false
        /// Whom it lets in.
        var user = "anna"
        /// It takes mutations and does not answer them.
        var isMute = false
        /// What it says to messages that are sent.
        var refusal: Code?
        /// It tells the feed anew to whoever asks.
        var isReset = false
        /// So many entries go into a peek's page.
        var peeked = 9
        /// The token that it pushes to.
        var push: PushRegistration?
        /// Kinds of the frames that came.
        var heard: [FrameType] = []
        /// What it has taken.
        var sent: [SendMessage] = []
        var edits: [EditMessage] = []
        var reads: [ReadReceipt] = []
        /// What it answers to a FETCH.
        var page = PageFrame()
        var fetches: [Fetch] = []
        /// It gives no page.
        var fetchRefusal: Code?
        var signals: [Signal] = []
        /// The HELLOs that came, and what was acknowledged.
        var hellos: [Hello] = []
        var acks: [Ack] = []
        /// What APP_STATE said.
        var states: [AppState] = []
        /// By number: the same mutation has one effect and one answer.
        fileprivate var results: [UInt64: MutationResult] = [:]
        fileprivate var connection: ScriptedConnection?

        var head: UInt64 { entries.last?.seq ?? 10 }

        /// SES-18: without one the token held stays.
        fileprivate mutating func holds(_ presented: PushRegistration?) -> Bool {
            if let presented { push = presented }
            return push != nil
        }
    }

    let feed = Mutex(Feed())
    private let phone: FakePhone

    init(_ phone: FakePhone) { self.phone = phone }

    func publish(_ entry: Entry, unread: UInt32) {
        feed.withLock { feed in
            feed.entries.append(entry)
            feed.unread = unread
        }
    }

    /// Tells whoever is connected that there is more.
    func ring() {
        let (connection, head) = feed.withLock { ($0.connection, $0.head) }
        connection?.tell([Frame(.syncRequest(SyncRequest(head: head)))])
    }

    /// Another user does something just now.
    func signal(_ signal: Signal) {
        feed.withLock { $0.connection }?.tell([Frame(.signal(signal))])
    }

    /// APNs calls the token dead.
    func refuseToken() {
        let error = ErrorFrame(code: Code.pushTokenRefused.rawValue)
        feed.withLock { $0.connection }?.tell([Frame(.error(error))])
    }

    /// The connection breaks.
    func hangUp() { feed.withLock { $0.connection }?.breakOff() }

    func connect() -> any RouseConnection {
        let connection = ScriptedConnection(self)
        feed.withLock { $0.connection = connection }
        return connection
    }

    fileprivate func answers(to frame: Frame) -> [Frame] {
        if case .close = frame.body { phone.note("close") }
        return feed.withLock { feed in
            feed.heard.append(frame.body.type)
            if case .hello(let hello) = frame.body { feed.hellos.append(hello) }
            guard !feed.isSilent else { return [] }
            switch frame.body {
            case .hello(let hello):
                if let code = feed.closing {
                    return [Frame(.close(Close(code: code.rawValue, retry: code.retryClass)))]
                }
                if feed.challenges {
                    let challenge = Challenge(nonce: [1])
                    return [Frame(.challenge(challenge), request: frame.request)]
                }
                let welcome = Welcome(
                    version: 1, sessionToken: hello.role == .extension ? [7] : [8],
                    epoch: Self.epoch, keepaliveMs: 180_000,
                    features: hello.features.filter { $0 == "signal" },
                    pushTokenHeld: feed.holds(hello.push), user: feed.user)
                let answer = Frame(.welcome(welcome), request: frame.request)
                guard let sync = hello.sync else { return [answer] }
                return [answer, Self.delta(sync, &feed, frame.request)]
            case .authenticate:
                let welcome = Welcome(
                    version: 1, sessionToken: [8], epoch: Self.epoch, keepaliveMs: 180_000,
                    pushTokenHeld: feed.holds(nil), user: feed.user)
                return [Frame(.welcome(welcome))]
            case .sync(let sync): return [Self.delta(sync, &feed, frame.request)]
            case .fetch(let fetch):
                feed.fetches.append(fetch)
                if let refusal = feed.fetchRefusal {
                    let error = ErrorFrame(code: refusal.rawValue)
                    return [Frame(.error(error), request: frame.request)]
                }
                return [Frame(.page(feed.page), request: frame.request)]
            case .appState(let state):
                feed.states.append(state)
                return []
            case .signal(let signal):
                feed.signals.append(signal)
                return []
            case .ack(let ack):
                feed.reads += ack.reads
                feed.acks.append(ack)
                return []
            case .mutate(let mutation) where mutation.isLogout && !feed.isMute:
                let close = Close(code: Code.revoked.rawValue, retry: .reauthenticate)
                return [Frame(.close(close))]
            case .mutate(let mutation):
                let from = Cursor(epoch: Self.epoch, seq: feed.head)
                guard let result = Self.take(mutation, &feed) else { return [] }
                let to = Cursor(epoch: Self.epoch, seq: feed.head)
                let delta = Delta(
                    entries: feed.entries.filter { $0.seq > from.seq }, from: from, to: to,
                    head: to.seq, results: [result], unread: feed.unread)
                return [Frame(.delta(delta), request: 0)]
            default: return []
            }
        }
    }

    private static func take(_ mutation: Mutation, _ feed: inout Feed) -> MutationResult? {
        guard !feed.isMute else { return nil }
        if let known = feed.results[mutation.number] { return known }
        if case .editMessage(let edit) = mutation.operation {
            feed.edits.append(edit)
            if let refusal = feed.refusal {
                return MutationResult(
                    number: mutation.number, code: refusal.rawValue, retry: refusal.retryClass)
            }
        }
        guard case .sendMessage(let send) = mutation.operation else {
            return MutationResult(number: mutation.number)
        }
        if let refusal = feed.refusal {
            return MutationResult(
                number: mutation.number, code: refusal.rawValue, retry: refusal.retryClass)
        }
        feed.sent.append(send)
        let position = feed.entries.reduce(into: UInt64(0)) { highest, entry in
            if case .message(let state) = entry.body { highest = max(highest, state.position) }
        }
        let entry = Entry(
            seq: feed.head + 1, conversation: send.conversation, object: send.message?.bytes ?? [],
            version: feed.head + 1,
            body: .message(
                MessageState(
                    position: position + 1, sender: "anna", sentMs: 1_700_000_000_000,
                    parts: send.parts, push: send.push)))
        feed.entries.append(entry)
        let result = MutationResult(
            number: mutation.number, object: entry.object, position: position + 1)
        feed.results[mutation.number] = result
        return result
    }

    private static func delta(
        _ sync: SyncFrame, _ feed: inout Feed, _ request: UInt16
    ) -> Frame {
        if sync.mode == .peek {
            let at = sync.cursor ?? Cursor(epoch: epoch, seq: 0)
            let newest = feed.entries.filter { $0.seq > at.seq }.suffix(feed.peeked)
            return Frame(
                .delta(
                    Delta(
                        entries: Array(newest), from: at, to: at, head: feed.head,
                        more: newest.count == feed.peeked, unread: feed.unread)),
                request: request)
        }
        feed.reads += sync.reads
        var results: [MutationResult] = []
        for mutation in sync.mutations {
            if let result = take(mutation, &feed) { results.append(result) }
        }
        let from = feed.isReset ? nil : sync.cursor
        let entries = feed.entries.filter { $0.seq > from?.seq ?? 0 }
        let to = Cursor(epoch: epoch, seq: max(from?.seq ?? 0, feed.head))
        let reset = feed.isReset ? Reset(reason: .cursorTooOld) : nil
        feed.isReset = false
        return Frame(
            .delta(
                Delta(
                    entries: entries, from: from ?? Cursor(epoch: epoch, seq: 0), to: to,
                    head: to.seq, results: results, reset: reset, unread: feed.unread)),
            request: request)
    }
}

final class ScriptedConnection: RouseConnection {
    let events: AsyncStream<TransportEvent>
    private let telling: AsyncStream<TransportEvent>.Continuation
    private let decoder = Mutex(FrameDecoder(limits: .afterWelcome))
    private let server: ScriptedServer

    init(_ server: ScriptedServer) {
        self.server = server
        (events, telling) = AsyncStream.makeStream()
        telling.yield(.connected)
    }

    func send(_ bytes: [UInt8]) {
        let frames = decoder.withLock { decoder in
            decoder.append(bytes)
            var frames: [Frame] = []
            while let frame = try? decoder.next() { frames.append(frame) }
            return frames
        }
        // Together, as one read of a socket brings them.
        tell(frames.flatMap { server.answers(to: $0) })
    }

    func tell(_ frames: [Frame]) {
        if !frames.isEmpty { telling.yield(.received(frames.flatMap(\.encoded))) }
        if case .close = frames.last?.body { telling.yield(.closed(why: "by the server")) }
    }

    func breakOff() { telling.yield(.closed(why: "broken")) }

    func close() { telling.finish() }
}
