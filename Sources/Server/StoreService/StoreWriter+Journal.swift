import EventLoop
import Model

// The journal. Under load parts of it are moved on a thread of their own; what is left when nobody
// writes, the writer moves itself.
extension StoreWriter {
    /// After the answers, where a transaction left the journal large.
    func moveJournal() {
        guard !isJournalMoving else { return }
        do throws(StoreError) {
            switch try store.journalTurn() {
            case .nothing: break
            case .checkpoint: checkpoint()
            case .move(let move):
                isJournalMoving = true
                if mover == nil { mover = try? JournalMover() }
                guard let mover else {
                    // The process has no thread left: then the writer waits.
                    move.run()
                    return journalMoved()
                }
                mover.run(move) { [ended = movedMailbox] in ended.post(()) }
            }
        } catch {
            health.record(lane: role.number) { $0.failure = error }
        }
    }

    func journalMoved() {
        isJournalMoving = false
        do throws(StoreError) {
            try store.journalMoved()
        } catch {
            health.record(lane: role.number) { $0.failure = error }
        }
        let resting = restingReaders
        restingReaders = []
        if resting.isEmpty { askForRest() } else { readerRests(resting) }
    }

    /// The reader holds no snapshot now. While a part of the journal is being moved there can be no
    /// checkpoint: it waits for the one that follows.
    func readerRests(_ rests: [ReaderRest]) {
        guard !isJournalMoving else {
            restingReaders += rests
            return
        }
        restedAt = loop.now
        checkpoint()
        health.record(lane: role.number) { $0.readerRests += 1 }
        for rest in rests { rest.goesOn.post(rest) }
        if !health.isWritable, rest.until != nil {
            wakeUp()
            askTurn()
        }
    }

    func checkpoint() {
        guard !isJournalMoving else {
            checkpointDue = loop.now + Self.checkpointDelay
            return
        }
        checkpointDue = nil
        do throws(StoreError) {
            try health.waiting(lane: role.number) { () throws(StoreError) in
                try store.checkpoint()
            }
        } catch {
            health.record(lane: role.number) { $0.failure = error }
        }
        askForRest()
    }

    /// A reader that takes one snapshot after the other could keep a full journal from ever
    /// beginning anew: it is asked for a moment without one, and nobody waits for it. Where that
    /// does not help, for a backup holds a snapshot, it is not asked again at once.
    private func askForRest() {
        let hasRested = restedAt.map { loop.now < $0 + Self.restInterval } ?? false
        shared.pause.ask(store.isJournalFull && !hasRested)
    }
}
