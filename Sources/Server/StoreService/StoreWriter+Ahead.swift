import EventLoop
import Failpoints
import Feed
import Model

// On an engine that is a round trip away a lane would do nothing while the engine writes down what
// a transaction came to, and the engine nothing while the lane finds out what the next one reads.
// So while more requests wait, a lane does not wait for its commits: what came of one it learns
// when it waits for what the next one reads, and tells of it meanwhile. Nobody hears of a
// transaction before it is committed (P1).
//
// A turn (`SharedByWriters.order`) is kept from before COMMIT is sent until it is told. Whoever
// waits for one may hold locks then, those of its next transaction; nobody who has a turn needs
// them, for all that its own transaction locks it has locked before.

/// A transaction whose commit is on its way.
final class AheadCommit {
    let jobs: [WriteJob]
    /// When it was begun, by the monotonic clock.
    let started = SystemClock.monotonicMilliseconds()
    /// Its turn to be told.
    var place: UInt64?
    /// What it came to, as soon as that is known.
    var end: (outcomes: [Result<StoreOutcome, StoreError>], error: StoreError?)?

    init(_ jobs: [WriteJob]) { self.jobs = jobs }
}

extension StoreWriter {
    /// Carries out as many of them as there is room for, and answers them when they are committed.
    ///
    /// - Returns: their number; `nil`: they are still to be carried out, with a commit that is
    ///   waited for, because they change apps, this writer is no lane, or the try has failed.
    func carryOutAhead(_ jobs: [WriteJob]) -> Int? {
        // Apps are in force here before whoever changed them hears of it.
        guard role.number > 0, let store = store as? any DistantStore, !areAppsStale
        else { return nil }
        let requests = jobs.map(\.request)
        if requests.contains(where: \.changesApps) { return nil }
        let next = AheadCommit(jobs)
        do throws(StoreError) {
            Failpoint.hit(.begun, requests)
            let done = try store.commitAhead(
                requests, budget: limits.rowsPerCommit, limits: ruleLimits, zones: shared.zones
            ) {
                next.place = self.shared.order?.enter()
                Failpoint.hit(.applied, Array(requests[..<$0.count]), $0)
            } ended: { [weak self] in
                next.end = ($0, $1)
                self?.tell(of: next)
            }
            if next.end == nil { ahead = next }
            carryOutUndone()
            return done
        } catch {
            leave(next)
            // What is on its way comes first: these came after it.
            settle()
            carryOutUndone()
            return nil
        }
    }

    /// Answers those whose transaction has ended.
    private func tell(of ended: AheadCommit) {
        if ahead === ended { ahead = nil }
        defer { leave(ended) }
        guard let (outcomes, error) = ended.end else { return }
        guard let error else {
            if let place = ended.place { shared.order?.await(place) }
            let requests = ended.jobs[..<outcomes.count].map(\.request)
            return answer(ended.jobs[...], committed(requests, outcomes, ended.started))
        }
        let jobs = ended.jobs[..<outcomes.count]
        if case .unavailable = error {
            // It may be committed.
            answer(jobs, refused(jobs.map(\.request), error))
        } else {
            undone = Array(jobs)
        }
    }

    private func leave(_ ended: AheadCommit) {
        if let place = ended.place { shared.order?.leave(place) }
        ended.place = nil
    }

    /// What follows from a commit that failed, once its store can be called again.
    private func carryOutUndone() {
        guard !undone.isEmpty else { return }
        let jobs = undone
        undone = []
        putBack(jobs[carryOut(jobs)...])
        askService()
    }

    /// Waits for the commit that is on its way, unless what has come meanwhile is carried out
    /// before.
    func settleSoon() {
        guard let ahead else { return }
        guard mailbox.count > 0 else { return settle() }
        // A turn comes before the mailbox is looked at, the next one comes after it.
        loop.nextTurn { [weak self] in
            self?.loop.nextTurn {
                if let self, self.ahead === ahead { self.settle() }
            }
        }
    }

    /// Waits for the commit that is on its way.
    func settle() {
        guard ahead != nil, let store = store as? any DistantStore else { return }
        store.settle()
        carryOutUndone()
    }

    /// The same at the end of the writer, when the store can call it no more.
    func settleLast() {
        guard let ahead, let store = store as? any DistantStore else { return }
        store.settle()
        if ahead.end?.error == nil { tell(of: ahead) } else { leave(ahead) }
    }
}
