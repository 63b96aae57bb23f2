import EventLoop
import Model
import StoreService

/// What came back from the store and is to become answers: app by app in turns, and in one turn of
/// the loop no more than `turnBytes` and one answer, so that a health check, and whoever takes
/// little, gets between. Loop-confined.
///
/// What waits here is bounded by the connections: each has one request at a time.
final class AnswerTurns<Item> {
    /// The bytes of answers that are made in one turn of the loop.
    static var turnBytes: Int { 256 * 1024 }

    private unowned let loop: Loop
    private let carryOut: (Item) -> Void
    private var waiting = FairQueue<AppID?, Item>()
    /// The bytes of answers that were made since the loop's turn began.
    private var bytes = 0
    private var isTurnAwaited = false

    init(loop: Loop, carryOut: @escaping (Item) -> Void) {
        self.loop = loop
        self.carryOut = carryOut
    }

    /// Carries it out now, or in a later turn.
    ///
    /// - Parameter app: whose answer it is; `nil`: no app's.
    func add(_ item: Item, of app: AppID?) {
        awaitTurn()
        guard waiting.isEmpty, bytes < Self.turnBytes else { return waiting.append(item, of: app) }
        carryOut(item)
    }

    /// An answer was made.
    func note(bytes more: Int) { bytes += more }

    /// Nothing that waits is carried out any more.
    func close() { waiting = FairQueue() }

    private func awaitTurn() {
        if isTurnAwaited { return }
        isTurnAwaited = true
        loop.nextTurn { [weak self] in self?.turn() }
    }

    private func turn() {
        isTurnAwaited = false
        bytes = 0
        guard !waiting.isEmpty else { return }
        awaitTurn()
        while bytes < Self.turnBytes, let item = waiting.take(1).first { carryOut(item) }
    }
}
