import Feed
import MemoryStore
import Model
import Testing
import WorkingSet

// Two nodes over one store: an operation is carried out between two reads of another.
extension PairSchedule {
    /// What is for a store that nobody else has open.
    private static let alone: Set<Operation> = [.restore]

    /// - Parameter steps: pairs of operations at once, with others one by one between them.
    func runTogether(steps: Int) throws {
        state.world.store.isSoleWriter = false
        state.world.known.forgetAll()
        for _ in 0..<steps where finding == nil {
            if state.chance.next() % 6 == 0 { try settle() }
            if state.chance.next() % 3 == 0 { try something() }
            try together()
        }
        try comeToRest()
    }

    private func together() throws {
        let operations = Operation.allCases.filter { !Self.alone.contains($0) }
        guard finding == nil, let operation = state.pick(operations),
            let other = state.pick(operations), let first = state.plan(operation),
            let second = state.plan(other)
        else { return }
        let store = state.world.store
        let view = store.view()
        let read = state.chance.next() % 48 + 1
        var reads: UInt64 = 0
        var inner: Result<StoreAnswer, StoreError>?
        store.betweenReads = {
            reads += 1
            guard inner == nil, reads == read else { return }
            inner = .failure(.conflict("under way"))
            inner = self.attempt(second, in: view)
        }
        var outer = attempt(first, in: store)
        store.betweenReads = nil
        if isConflict(inner) { inner = attempt(second, in: view) }
        if isConflict(outer) { outer = attempt(first, in: store) }
        for (plan, result) in [(second, inner), (first, outer)] {
            guard let answer = try result?.get() else { continue }
            trace(plan)
            if try state.take(answer, of: plan) { learn(plan) }
        }
        finding = try state.finding()
    }

    private func attempt(_ plan: Plan, in store: MemoryStore) -> Result<StoreAnswer, StoreError> {
        do throws(StoreError) {
            let world = state.world
            let results = try store.commit(
                [plan.request], limits: world.limits, zones: world.zones)
            guard let result = results.first else { return .failure(.conflict("nothing")) }
            return result.map(\.answer)
        } catch {
            return .failure(error)
        }
    }

    private func isConflict(_ result: Result<StoreAnswer, StoreError>?) -> Bool {
        switch result {
        case nil, .failure(.conflict)?, .success(.failed(.conflict))?: true
        default: false
        }
    }
}
