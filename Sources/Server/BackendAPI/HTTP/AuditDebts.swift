import EventLoop
import Feed
import StoreService

/// The outcomes of changes that the store did not take when the changes were answered: each is
/// written once the store works again. Loop-confined.
final class AuditDebts {
    /// The most changes whose outcome is owed: for a newer one the oldest is given up, and its row
    /// says in time that nobody knows the outcome.
    private static let countMax = 64
    /// From a failure to the next try.
    private static let pause: UInt64 = 2_000

    private var owed: [(number: UInt64, status: UInt64)] = []
    /// The change whose status is on its way to the store.
    private var asked: UInt64?
    private var client: StoreClient?
    private var timer: LoopTimer?

    init(loop: Loop, store: StoreService) {
        timer = loop.timer { [unowned self] in self.pay() }
        client = store.client(on: loop) { [unowned self] in self.received($0) }
    }

    func add(_ number: UInt64, status: UInt64) {
        if owed.count == Self.countMax { owed.removeFirst() }
        owed.append((number, status))
        if asked == nil { timer?.start(afterMilliseconds: Self.pause) }
    }

    func close() {
        client?.close()
        timer?.close()
        (client, timer) = (nil, nil)
    }

    private func pay() {
        guard asked == nil, let first = owed.first, let client else { return }
        asked = first.number
        client.commit(.administer(.settleAudit(first.number, status: first.status)))
    }

    private func received(_ reply: StoreReply) {
        let number = asked
        asked = nil
        if case .failed = reply.result {
            timer?.start(afterMilliseconds: Self.pause)
        } else {
            owed.removeAll { $0.number == number }
            pay()
        }
    }
}
