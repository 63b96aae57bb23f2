import Glibc
import Model
import Testing

@testable import Feed

/// What a step tells others of: one change a user.
struct EffectsTests {
    private func change(
        _ user: String, _ head: UInt64, kinds: UInt32 = 1, app: String = "chat",
        isUrgent: Bool = false
    ) -> FeedChange {
        FeedChange(
            app: AppID(app), user: UserID(user), head: head, kinds: kinds, isUrgent: isUrgent)
    }

    @Test func changesOfOneUserAreOne() {
        var effects = Effects()
        effects.note(change("anna", 4, kinds: 1))
        effects.note(change("bob", 9))
        effects.note(change("anna", 7, kinds: 4, isUrgent: true))
        effects.note(change("anna", 5, kinds: 2))
        effects.note(change("anna", 1, app: "mail"))
        #expect(
            effects.changes.all == [
                change("anna", 7, kinds: 7, isUrgent: true), change("bob", 9),
                change("anna", 1, app: "mail"),
            ])
    }

    /// The time of this thread's processor for noting so many users twice, the best of five.
    private func cost(of users: Int) -> UInt64 {
        let changes = (0..<users).map { change("a user with number \($0)", 1) }
        return (0..<5).map { _ in
            let start = processorTime()
            var effects = Effects()
            for change in changes + changes { effects.note(change) }
            #expect(effects.changes.all.count == users)
            return processorTime() - start
        }.min() ?? 0
    }

    private func processorTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// A step of the fan-out has hundreds of recipients: looked for one among all others, the
    /// work would be their number squared, 400 times as much for 20 times as many.
    @Test func manyUsersCostTheirNumber() {
        let (few, many) = (cost(of: 200), cost(of: 4_000))
        #expect(many < 100 * few, "\(few) ns for 200, \(many) ns for 4,000")
    }
}
