import EventLoop
public import Feed
public import Model

/// What came of a request or a query. Indirect, for it is handed on: a copy is one count.
public indirect enum StoreResult: Sendable {
    case committed(StoreOutcome)
    case read(StoreReading)
    /// The world's fault. After `.unavailable` it is unknown whether it was committed.
    case failed(StoreError)
}

/// An answer of the store, by the ticket its question got.
public struct StoreReply: Sendable {
    public let ticket: UInt64
    public let result: StoreResult
}

/// One loop's door to the store. Loop-confined.
///
/// Every ticket gets exactly one reply, on a later turn of the loop, unless the store is stopped.
public final class StoreClient {
    private let loop: Loop
    private let writes: WriterDoor
    private let reads: Mailbox<ReadJob>
    private let receive: (StoreReply) -> Void
    private var replies: Mailbox<StoreReply>?
    private var lastTicket: UInt64 = 0

    init(
        loop: Loop, writes: WriterDoor, reads: Mailbox<ReadJob>,
        receive: @escaping (StoreReply) -> Void
    ) {
        self.loop = loop
        self.writes = writes
        self.reads = reads
        self.receive = receive
        // No limit of its own: it never holds more than there are open tickets, and these are
        // limited by the mailboxes the questions go through.
        replies = Mailbox(loop: loop, limit: nil) { [unowned self] batch in
            for reply in batch { self.receive(reply) }
        }
    }

    /// Asks for `request` to be committed.
    @discardableResult
    public func commit(_ request: StoreRequest) -> UInt64 {
        loop.preconditionInside()
        lastTicket += 1
        guard let replies else { return lastTicket }
        let ticket = lastTicket
        let accepted = writes.post(WriteJob(ticket: ticket, request: request, replies: replies))
        if !accepted { refuse(ticket) }
        return ticket
    }

    /// Asks for `query` to be read from a snapshot that holds all commits answered so far.
    @discardableResult
    public func read(_ query: StoreQuery) -> UInt64 {
        loop.preconditionInside()
        lastTicket += 1
        guard let replies else { return lastTicket }
        let ticket = lastTicket
        let accepted = reads.post(ReadJob(ticket: ticket, query: query, replies: replies))
        if !accepted { refuse(ticket) }
        return ticket
    }

    /// No more answers.
    public func close() {
        replies?.close()
        replies = nil
    }

    private func refuse(_ ticket: UInt64) {
        replies?.post(
            StoreReply(ticket: ticket, result: .failed(.conflict("the store's queue is full"))))
    }
}

/// A request on its way to the writer.
struct WriteJob: Sendable {
    let ticket: UInt64
    let request: StoreRequest
    let replies: Mailbox<StoreReply>
    /// It met another node's request, and waits to be carried out again.
    var meeting: Meeting?

    struct Meeting {
        /// When it met one first.
        let since: UInt64
        var times = 1
    }
}

/// A query on its way to the reader.
struct ReadJob: Sendable {
    let ticket: UInt64
    let query: StoreQuery
    let replies: Mailbox<StoreReply>
}
