import AppLife
import Model
import Testing
import Wire

/// What an app does with a wake, as transcripts: each is a row of "The app's half" in
/// Protocol/push.md.
@Suite struct AppWakeTests {
    /// Suspended, in sync, two minutes ago in front.
    private func suspended() -> System {
        var system = System()
        system.give(.launched, .becameActive, .synced)
        system.give(.enteredBackground(until: system.now + 5_000), .willSuspend)
        system.pass(120_000)
        _ = system.take()
        return system
    }

    @Test("entries are on the screen and the icon is right before the system is told")
    func entriesFirstAndCompletionLast() {
        var system = suspended()
        // Of a message that was deleted long ago: known to be over when all is synced.
        system.screen = [9]
        system.push(1)
        system.give(.unread(3))
        system.apply(1, 2, 3)
        system.give(.synced)
        #expect(
            system.take() == [
                "start background", "badge 3", "show 1", "show 2", "show 3", "remove 9", "sleep",
                "complete 1 newData",
            ])
        #expect(system.screen == [1, 2, 3])
        #expect(system.owed.isEmpty)
    }

    @Test("each task is completed exactly once, whatever comes twice or late")
    func eachTaskIsCompletedExactlyOnce() {
        var system = suspended()
        system.push(1)
        system.push(1)
        system.push(2)
        system.give(.synced, .synced, .gaveUp)
        system.pass(60_000)
        system.give(.deadlineReached, .storeFailed, .willSuspend, .synced)
        #expect(system.completed == [1: [.noData], 2: [.noData]])
        #expect(system.life.nextDeadline == nil)
    }

    @Test("a task is completed before its deadline, with what is true by then")
    func aTaskIsCompletedBeforeItsDeadline() throws {
        var system = suspended()
        let began = system.now
        system.push(1)
        let end = try #require(system.life.nextDeadline)
        #expect(end < began + 30_000)
        system.pass(end.since(system.now))
        system.give(.deadlineReached)
        #expect(system.completed == [1: [.failed]])
        // Part of it came: that is what is said.
        system.push(2)
        system.apply(1)
        system.pass(29_000)
        system.give(.deadlineReached)
        #expect(system.completed[2] == [.newData])
        #expect(system.take().suffix(3) == ["show 1", "sleep", "complete 2 newData"])
    }

    @Test("a task whose time the system takes back is completed at once, and no other is")
    func theSystemTakesTheTimeBack() {
        var system = suspended()
        system.push(1)
        system.push(2)
        system.apply(1)
        _ = system.take()
        system.give(.expired(1))
        #expect(system.completed == [1: [.newData]])
        #expect(!system.take().contains("sleep"))
        system.give(.expired(1), .expired(2))
        #expect(system.completed == [1: [.newData], 2: [.newData]])
        #expect(system.take().contains("sleep"))
    }

    @Test("two tasks have their own deadlines, and the run time ends with the last")
    func eachTaskHasItsOwnDeadline() {
        var system = suspended()
        system.push(1)
        system.pass(10_000)
        system.push(2)
        system.pass(18_500)
        system.give(.deadlineReached)
        #expect(
            system.take() == ["start background", "sync background", "complete 1 failed"])
        system.give(.synced)
        #expect(system.take() == ["sleep", "complete 2 noData"])
    }

    @Test("new data, no data, failed")
    func theResultIsWhatHappened() {
        var system = suspended()
        system.push(1)
        system.apply(1)
        system.give(.synced)
        system.push(2)
        system.give(.synced)
        system.push(3)
        system.give(.gaveUp)
        #expect(system.completed == [1: [.newData], 2: [.noData], 3: [.failed]])
    }

    @Test("the app's own work is waited for, not beyond the deadline")
    func theAppsOwnWorkIsWaitedFor() {
        var system = suspended()
        system.push(1)
        system.give(.workBegan, .synced)
        #expect(system.completed.isEmpty)
        system.give(.workEnded(isNew: true))
        #expect(system.completed == [1: [.newData]])
        system.push(2)
        system.give(.workBegan, .synced)
        system.pass(29_000)
        system.give(.deadlineReached)
        #expect(system.completed[2] == [.noData])
    }

    @Test("what the user has sent is waited for")
    func mutationsAreWaitedFor() {
        var system = suspended()
        system.push(1)
        system.give(.outbox(isWaiting: true), .synced)
        #expect(system.completed.isEmpty)
        system.give(.outbox(isWaiting: false))
        #expect(system.completed == [1: [.noData]])
    }

    @Test("a wake that is told of more goes on until that is here too")
    func aWakeThatIsToldOfMoreGoesOn() {
        var system = suspended()
        system.push(1)
        system.give(.outbox(isWaiting: true), .synced, .syncRequested)
        system.give(.outbox(isWaiting: false))
        #expect(system.completed.isEmpty)
        system.apply(1)
        system.give(.synced)
        #expect(system.completed == [1: [.newData]])
    }

    @Test("in active background a message is shown, and a push does not end what goes on")
    func activeBackground() {
        var system = System()
        system.give(.launched, .becameActive, .synced)
        system.give(.enteredBackground(until: system.now + 120_000))
        _ = system.take()
        system.give(.unread(1))
        system.apply(1)
        system.give(.synced)
        #expect(system.take() == ["badge 1", "show 1"])
        system.push(1)
        system.give(.synced)
        #expect(system.take() == ["sync background", "complete 1 noData"])
        system.give(.willSuspend)
        #expect(system.take() == ["sleep"])
    }

    @Test("what the system takes the time from is completed before it stops")
    func suspendedInTheMiddle() {
        var system = suspended()
        system.push(1)
        system.give(.willSuspend)
        #expect(system.take() == ["start background", "sleep", "complete 1 failed"])
        system.push(2)
        #expect(system.take() == ["start background"])
    }

    @Test("before first unlock the wake fails, and nothing is lost")
    func beforeFirstUnlockTheWakeFails() {
        var system = suspended()
        system.owed = [4]
        system.standings[4] = .shows
        system.kill()
        system.isUnlocked = false
        system.give(.launched)
        system.push(1)
        #expect(system.take() == ["killed", "locked", "locked", "complete 1 failed"])
        #expect(system.owed == [4])
        // The process lives on until the phone is unlocked; then the next wake is like any.
        system.isUnlocked = true
        system.give(.unlocked)
        system.push(2)
        system.give(.synced)
        #expect(
            system.take() == ["store", "show 4", "start background", "sleep", "complete 2 noData"])
    }

    @Test("a wake tries a store again that did not open, and goes on when it does")
    func aStoreThatOpensLater() {
        var system = System()
        system.isUnlocked = false
        system.give(.launched)
        system.isUnlocked = true
        system.push(1)
        system.give(.synced)
        #expect(
            system.take() == ["locked", "store", "start background", "sleep", "complete 1 noData"])
    }

    @Test("a store that fails in the middle fails the wake")
    func aFailingStoreFailsTheWake() {
        var system = suspended()
        system.push(1)
        system.owed = [1]
        system.standings[1] = .shows
        system.storeFails = true
        system.give(.applied)
        #expect(system.completed == [1: [.failed]])
        system.storeFails = false
        system.push(2)
        system.give(.synced)
        #expect(system.screen == [1])
    }

    @Test("background refresh is a wake as any other")
    func backgroundRefresh() {
        var system = suspended()
        system.give(.refreshTask(SystemTask(id: 9, deadline: system.now + 30_000)))
        system.apply(1)
        system.give(.synced)
        #expect(
            system.take() == ["start background", "show 1", "sleep", "complete 9 newData"])
    }

    @Test("a flood of pushes is answered and not kept")
    func tasksAreBounded() {
        var system = suspended()
        for task in 1...40 { system.push(UInt64(task)) }
        #expect(system.completed.count == 40 - AppLife.Limits().tasks)
        system.give(.synced)
        #expect(system.completed.count == 40)
        #expect(system.completed.values.allSatisfy { $0.count == 1 })
    }

    /// The states of an app that a push can find, but those in which nothing of it runs: swiped
    /// away it is not started (PushEffect).
    enum Found: String, CaseIterable {
        case foreground, inactive, activeBackground, suspended, killed, rebooted
    }

    @Test("each state of the app ends a wake right", arguments: Found.allCases)
    func eachStateEndsAWakeRight(_ found: Found) {
        var system = System()
        system.give(.launched, .becameActive, .onScreen(.everything), .synced)
        switch found {
        case .foreground: break
        case .inactive: system.give(.resignedActive)
        case .activeBackground: system.give(.enteredBackground(until: system.now + 60_000))
        case .suspended:
            system.give(.resignedActive, .enteredBackground(until: system.now))
            system.give(.willSuspend)
        case .killed, .rebooted:
            system.kill()
            system.isUnlocked = found == .killed
            system.give(.launched)
        }
        _ = system.take()
        system.push(1)
        if found != .rebooted {
            system.give(.unread(1))
            system.apply(1)
            system.give(.synced)
        }
        #expect(system.completed == [1: [found == .rebooted ? .failed : .newData]])
        let isShown = found != .foreground && found != .rebooted
        #expect(system.screen == (isShown ? [1] : []))
        let sleeps = found == .suspended || found == .killed
        #expect(system.take().contains("sleep") == sleeps)
    }
}
