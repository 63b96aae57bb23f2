import Feed
import Foundation
import Model

/// One of several nodes on a database: a store object with a connection, and a thread for each
/// group of requests.
///
/// A group is used by its thread until that has ended, and by nobody else meanwhile.
final class PostgresNode: @unchecked Sendable {
    /// Nanoseconds for which a request that meets others is asked for again, by whoever asks for it.
    private static let meetingTime: UInt64 = 10_000_000_000

    private let store: MirrorStore
    private(set) var answers: [Result<StoreOutcome, StoreError>?] = []
    /// How often a group, or a request of it, met a conflict.
    private(set) var conflicts = 0
    /// When the group was at work, in nanoseconds.
    private(set) var span: ClosedRange<UInt64> = 0...0
    private let end = DispatchSemaphore(value: 0)

    init(_ store: MirrorStore) { self.store = store }

    func close() { store.close() }

    /// Carries them out in one transaction, and again what met others, on a thread of its own.
    ///
    /// - Parameter pause: microseconds before it begins.
    func begin(
        _ requests: [StoreRequest], at now: Timestamp, limits: RuleLimits, pause: UInt32
    ) {
        store.clock = now
        answers = requests.map { _ in nil }
        let thread = Thread { [self] in
            usleep(pause)
            let start = DispatchTime.now().uptimeNanoseconds
            carryOut(requests, limits)
            span = start...DispatchTime.now().uptimeNanoseconds
            end.signal()
        }
        // A rule and what it calls are deeper than a thread's default stack, in a debug build.
        thread.stackSize = 8 << 20
        thread.start()
    }

    func wait() { end.wait() }

    private func carryOut(_ requests: [StoreRequest], _ limits: RuleLimits) {
        var left = Array(requests.indices)
        let start = DispatchTime.now().uptimeNanoseconds
        var pause: UInt32 = 500
        while !left.isEmpty, DispatchTime.now().uptimeNanoseconds < start + Self.meetingTime {
            do throws(StoreError) {
                let results = try store.commit(left.map { requests[$0] }, limits: limits)
                for (number, result) in zip(left, results) { answers[number] = result }
            } catch {
                for number in left { answers[number] = .failure(error) }
            }
            left = left.filter { isConflict(answers[$0]) }
            guard !left.isEmpty else { return }
            conflicts += left.count
            // The other may be one that meets this one, and tries again as soon.
            usleep(UInt32.random(in: 0...pause))
            pause = min(2 * pause, 50_000)
        }
    }

    private func isConflict(_ result: Result<StoreOutcome, StoreError>?) -> Bool {
        switch result {
        case .failure(.conflict)?: true
        case .success(let outcome)?:
            if case .failed(.conflict) = outcome.answer { true } else { false }
        default: false
        }
    }
}
