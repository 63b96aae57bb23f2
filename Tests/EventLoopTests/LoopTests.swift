import EventLoop
import Glibc
import Testing

@Suite struct LoopTests {
    @Test func timersFireInTheOrderOfDeadlinesThenOfStarts() throws {
        var fired: [Int] = []
        try withLoop { loop in
            let delays: [UInt64] = [20, 5, 5, 0, 10, 0]
            for (index, delay) in delays.enumerated() {
                loop.timer { fired.append(index) }.start(afterMilliseconds: delay)
            }
            loop.timer { loop.stop() }.start(afterMilliseconds: 20)
        }
        #expect(fired == [3, 5, 1, 2, 4, 0])
    }

    @Test func aTimerFiresNotBeforeItsDeadline() throws {
        try withLoop { loop in
            let start = loop.now
            loop.timer {
                #expect(loop.now >= start + 30)
                loop.stop()
            }.start(afterMilliseconds: 30)
        }
    }

    @Test func aRepeatingTimerRepeatsUntilItIsStopped() throws {
        var fired = 0
        try withLoop { loop in
            var timer: LoopTimer?
            timer = loop.timer {
                fired += 1
                #expect(timer?.isStarted == true)
                if fired == 3 {
                    timer?.stop()
                    #expect(timer?.isStarted == false)
                    loop.timer { loop.stop() }.start(afterMilliseconds: 10)
                }
            }
            timer?.start(afterMilliseconds: 1, repeatingMilliseconds: 1)
        }
        #expect(fired == 3)
    }

    @Test func aTimerMayBeClosedInItsOwnCall() throws {
        var fired = 0
        try withLoop { loop in
            var timer: LoopTimer?
            timer = loop.timer {
                fired += 1
                timer?.close()
                timer?.start(afterMilliseconds: 0)
                loop.timer { loop.stop() }.start(afterMilliseconds: 5)
            }
            timer?.start(afterMilliseconds: 0, repeatingMilliseconds: 1)
        }
        #expect(fired == 1)
    }

    @Test func nextTurnRunsOnceInOrderAndAfterTheCurrentCallback() throws {
        var order: [String] = []
        try withLoop { loop in
            loop.timer {
                loop.nextTurn {
                    order.append("first")
                    loop.nextTurn {
                        order.append("third")
                        loop.stop()
                    }
                }
                loop.nextTurn { order.append("second") }
                order.append("callback")
            }.start(afterMilliseconds: 0)
        }
        #expect(order == ["callback", "first", "second", "third"])
    }

    @Test func aTurnThatRenewsItselfStarvesNoTimer() throws {
        var turns = 0
        try withLoop { loop in
            var isOver = false
            func again() {
                turns += 1
                if !isOver { loop.nextTurn(again) }
            }
            again()
            loop.timer {
                isOver = true
                loop.stop()
            }.start(afterMilliseconds: 5)
        }
        #expect(turns > 1)
    }

    @Test func runEndsWhenNothingIsLeft() throws {
        let loop = try Loop()
        var fired = 0
        let timer = loop.timer { fired += 1 }
        timer.start(afterMilliseconds: 1)
        loop.run()
        #expect(fired == 1)
        loop.close()
        #expect(timer.isClosed)
    }

    @Test func closeEndsAllThatIsStillOpen() throws {
        var calls: [String] = []
        let loop = try Loop()
        let timer = loop.timer { calls.append("timer") }
        timer.start(afterMilliseconds: 1_000_000)
        let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
        let mailbox = Mailbox<Int>(loop: loop, limit: 8) { _ in calls.append("mail") }
        Resolver.resolve("localhost", on: loop) { _ in calls.append("resolved") }
        Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { _ in
            calls.append("connected")
        }
        listener.onConnection = { stream in
            // Started here, and still under way when the loop closes.
            Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { _ in
                calls.append("late")
            }
            stream.onClosed = {
                calls.append("closed")
                // What is made during the close is closed from its beginning.
                #expect(loop.timer {}.isClosed)
                #expect(throws: StreamError.self) {
                    try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
                }
                let mailbox = Mailbox<Int>(loop: loop, limit: nil) { _ in }
                #expect(!mailbox.post(1))
                loop.nextTurn { calls.append("turn") }
                loop.stop()
            }
            loop.stop()
        }
        loop.run()
        #expect(mailbox.post(1))
        loop.close()
        #expect(calls.filter { $0 != "connected" && $0 != "resolved" } == ["closed"])
        #expect(timer.isClosed && listener.isClosed)
        #expect(!mailbox.post(2))
    }

    @Test func useFromAnotherThreadIsATrap() async {
        await #expect(processExitsWith: .failure) {
            alarm(60)
            let loop = try Loop()
            let box = Crossing(loop)
            let thread = try LoopThread.start(name: "other") { _ in box.loop.stop() }
            thread.stop()
            thread.join()
            loop.close()
        }
    }

    @Test func theClocksAgree() throws {
        let before = SystemClock.monotonicMilliseconds()
        try withLoop { loop in
            #expect(loop.now >= before)
            loop.updateNow()
            #expect(loop.now <= SystemClock.monotonicMilliseconds())
            loop.stop()
        }
        // Later than the day this was written, and in milliseconds.
        #expect(SystemClock.wallMilliseconds() > 1_700_000_000_000)
        #expect(SystemClock.wallMilliseconds() < 100_000_000_000_000)
    }
}

/// Smuggles a loop to another thread, which is what the test above is about.
private final class Crossing: @unchecked Sendable {
    let loop: Loop
    init(_ loop: Loop) { self.loop = loop }
}
