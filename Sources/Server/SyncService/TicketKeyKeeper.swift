import Crypto
import EventLoop
import Feed
import Model
import StoreService

/// Keeps the keys of TLS session tickets of one loop as the store has them: the same for every loop
/// and node. Loop-confined.
final class TicketKeyKeeper {
    private let loop: Loop
    private let isShared: Bool
    private let changed: ([TLSTicketKey]) -> Void
    private var store: StoreClient?
    private var timer: LoopTimer?
    /// What the store said last, and when.
    private var known: (kept: [KeptTicketKey], at: UInt64)?

    /// Other nodes' keys are asked for so often: sooner than a new one begins to seal.
    private static let askInterval: Milliseconds = TicketKey.signsAfter / 2

    /// After the store could not tell.
    private static let retryInterval: Milliseconds = 10_000

    /// - Parameter changed: gets the keys in force, the one that seals first.
    init(loop: Loop, service: StoreService, changed: @escaping ([TLSTicketKey]) -> Void) {
        self.loop = loop
        isShared = service.isShared
        self.changed = changed
        store = service.client(on: loop) { [unowned self] reply in self.answered(reply) }
        timer = loop.timer { [unowned self] in self.ask() }
        ask()
    }

    func close() {
        store?.close()
        timer?.close()
    }

    private func ask() {
        forgetOver()
        // For a store that does not answer at all.
        timer?.start(afterMilliseconds: Self.askInterval)
        let drawn = TicketKey(
            name: Random.bytes(TicketKey.nameBytes), secret: Random.bytes(TicketKey.secretBytes))
        _ = store?.commit(.keepTicketKeys(drawn))
    }

    private func answered(_ reply: StoreReply) {
        guard case .committed(let outcome) = reply.result,
            case .ticketKeys(let kept) = outcome.answer
        else {
            forgetOver()
            timer?.start(afterMilliseconds: Self.retryInterval)
            return
        }
        use(kept)
        known = (kept, loop.now)
        timer?.start(afterMilliseconds: Self.nextAsk(kept, isShared: isShared))
    }

    /// A key's time ends also while the store cannot tell of another one.
    private func forgetOver() {
        guard let known else { return }
        use(Self.inForce(known.kept, after: loop.now - min(known.at, loop.now)))
    }

    private func use(_ kept: [KeptTicketKey]) {
        changed(
            Self.sealingFirst(kept).map { TLSTicketKey(name: $0.name, secret: $0.secret) })
    }

    /// Those of the keys that are still good so much later, with their ages then.
    static func inForce(_ kept: [KeptTicketKey], after elapsed: Milliseconds) -> [KeptTicketKey] {
        kept.compactMap { key in
            let (age, isOver) = key.age.addingReportingOverflow(elapsed)
            guard !isOver, age < TicketKey.lifetime else { return nil }
            return KeptTicketKey(key: key.key, age: age)
        }
    }

    /// The newest that every node knows seals; where none is so old yet, the oldest there is.
    static func sealingFirst(_ kept: [KeptTicketKey]) -> [TicketKey] {
        let young = kept.prefix { $0.age < TicketKey.signsAfter }
        let known = kept.dropFirst(young.count)
        guard known.isEmpty else { return (known + young).map(\.key) }
        return kept.reversed().map(\.key)
    }

    /// Where one process has the store nothing changes before a key is due; it can rest.
    static func nextAsk(_ kept: [KeptTicketKey], isShared: Bool) -> Milliseconds {
        guard let newest = kept.first else { return retryInterval }
        var wait = newest.age < TicketKey.renewAfter ? TicketKey.renewAfter - newest.age : 0
        if kept.count > 1, newest.age < TicketKey.signsAfter {
            wait = min(wait, TicketKey.signsAfter - newest.age)
        }
        if isShared { wait = min(wait, askInterval) }
        return wait + 1_000
    }
}
