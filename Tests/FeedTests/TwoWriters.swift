import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// Two nodes over one store: whatever the first is asked for, the other's request is carried out
/// between two of its reads, whichever they are. In every other meeting the store is a round trip
/// away from both.
struct TwoWriters {
    let world: World

    init(_ world: World) { self.world = world }

    /// What has become of the two requests, and the store as they left it.
    final class Meeting {
        let world: World
        let store: MemoryStore
        /// Before which read of the first the second came.
        let read: Int
        let first: StoreAnswer
        /// Of the last of the other's requests.
        let second: StoreAnswer

        fileprivate init(
            _ world: World, _ store: MemoryStore, read: Int, _ first: StoreAnswer,
            _ second: StoreAnswer
        ) {
            self.world = world
            self.store = store
            self.read = read
            self.first = first
            self.second = second
        }

        func ask(_ request: StoreRequest) throws -> StoreAnswer {
            let results = try store.commit([request], limits: world.limits, zones: world.zones)
            return try #require(results.first).get().answer
        }

        func all<R: Record>(_ type: R.Type) throws -> [R] {
            var found: [R] = []
            try store.read { snapshot throws(StoreError) in
                found = try snapshot.records(type, Scan(limit: 100_000))
            }
            return found
        }

        func record<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws -> R? {
            var found: R?
            try store.read { snapshot throws(StoreError) in
                found = try snapshot.record(type, key)
            }
            return found
        }

        /// Turns in the background, until nothing is left to do at once.
        func rest() throws {
            for turn in [
                StoreRequest.continueFanOut(recipients: 50), .continueDeletions(rows: 50),
                .enforceRetention(rows: 50),
            ] {
                for _ in 0..<200 {
                    guard case .progressed(let count, let more) = try ask(turn), more, count > 0
                    else { break }
                }
            }
        }
    }

    /// For each read of the first request, and for behind them all.
    ///
    /// A request that meets a conflict is carried out again when the other has ended, as by
    /// whoever asks for it.
    func meet(
        _ first: StoreRequest, _ second: StoreRequest..., check: (Meeting) throws -> Void
    ) throws {
        var read = 1
        while true {
            let meeting = try meet(first, second, before: read)
            try check(meeting.met)
            guard meeting.isBetween else { break }
            read += 1
        }
        #expect(read > 3, "nothing came between")
    }

    private func meet(
        _ first: StoreRequest, _ second: [StoreRequest], before read: Int
    ) throws -> (met: Meeting, isBetween: Bool) {
        let store = world.store.copy()
        let other = store.view()
        let isFar = read.isMultiple(of: 2)
        var reads = 0
        var done = 0
        func attemptAll(
            _ requests: ArraySlice<StoreRequest>, of store: MemoryStore
        ) -> Result<StoreAnswer, StoreError>? {
            var result: Result<StoreAnswer, StoreError>?
            for request in requests {
                result = attempt(request, of: store, isFar: isFar)
                if result.isConflict { break }
                done += 1
            }
            return result
        }
        var inner: Result<StoreAnswer, StoreError>?
        store.betweenReads = {
            guard inner == nil else { return }
            reads += 1
            guard reads == read else { return }
            inner = .failure(.conflict("under way"))
            inner = attemptAll(second[...], of: other)
        }
        var outer = attempt(first, of: store, isFar: isFar)
        let isBetween = inner != nil
        store.betweenReads = nil
        if inner.isConflict { inner = attemptAll(second[done...], of: other) }
        if outer.isConflict { outer = attempt(first, of: store, isFar: isFar) }
        let meeting = Meeting(
            world, store, read: read, try outer.get(), try #require(inner).get())
        return (meeting, isBetween)
    }

    private func attempt(
        _ request: StoreRequest, of memory: MemoryStore, isFar: Bool
    ) -> Result<StoreAnswer, StoreError> {
        let store: any Store =
            isFar ? DistantEngine(memory, lockRanks: Schema.lockRanks) : memory
        do throws(StoreError) {
            let results = try store.commit([request], limits: world.limits, zones: world.zones)
            guard let result = results.first else { return .failure(.conflict("nothing")) }
            return result.map(\.answer)
        } catch {
            return .failure(error)
        }
    }
}

extension Result<StoreAnswer, StoreError>? {
    fileprivate var isConflict: Bool {
        switch self {
        case nil, .failure(.conflict)?, .success(.failed(.conflict))?: true
        default: false
        }
    }
}

extension Result<StoreAnswer, StoreError> {
    fileprivate var isConflict: Bool { Optional(self).isConflict }
}
