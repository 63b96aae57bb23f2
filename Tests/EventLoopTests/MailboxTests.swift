import EventLoop
import Testing

/// What a receiver on another thread has seen; the lock makes it readable from the test's.
private final class Seen<Value: Sendable>: @unchecked Sendable {
    // @unchecked: `values` is only touched while holding `lock`.
    private let lock = Lock()
    private var values: [Value] = []

    func add(_ new: [Value]) -> Int {
        lock.withLock {
            values += new
            return values.count
        }
    }

    var all: [Value] { lock.withLock { values } }
}

private struct Letter: Sendable {
    let sender: Int
    let number: Int
}

@Suite struct MailboxTests {
    @Test func manySendersLoseNothingAndKeepTheirOrder() throws {
        let senders = 8
        let each = 5_000
        let seen = Seen<Letter>()
        let isComplete = Latch()
        let (thread, mailbox) = try LoopThread.startReturning(name: "receiver") { loop in
            Mailbox<Letter>(loop: loop, limit: nil) { letters in
                #expect(!letters.isEmpty)
                if seen.add(letters) == senders * each { isComplete.arrive() }
            }
        }
        let threads = try (0..<senders).map { sender in
            try LoopThread.start(name: "sender \(sender)") { _ in
                for number in 0..<each {
                    #expect(mailbox.post(Letter(sender: sender, number: number)))
                }
            }
        }
        #expect(isComplete.wait(seconds: 60))
        for thread in threads + [thread] { thread.stop() }
        for thread in threads + [thread] { #expect(thread.join(seconds: 60)) }
        for sender in 0..<senders {
            let numbers = seen.all.filter { $0.sender == sender }.map(\.number)
            #expect(numbers == Array(0..<each))
        }
    }

    @Test func concurrentSendersAndCloseNeitherLoseWhatWasTakenNorTrap() throws {
        // Senders post until they are refused: what was received is a prefix of each one's letters.
        let seen = Seen<Letter>()
        let (thread, mailbox) = try LoopThread.startReturning(name: "receiver") { loop in
            var mailbox: Mailbox<Letter>?
            let made = Mailbox<Letter>(loop: loop, limit: nil) { letters in
                if seen.add(letters) > 10_000 { mailbox?.close() }
            }
            mailbox = made
            return made
        }
        let refused = Latch(count: 4)
        let threads = try (0..<4).map { sender in
            try LoopThread.start(name: "sender") { loop in
                loop.nextTurn {
                    var number = 0
                    while mailbox.post(Letter(sender: sender, number: number)) { number += 1 }
                    refused.arrive()
                }
            }
        }
        #expect(refused.wait(seconds: 60))
        for thread in threads + [thread] { thread.stop() }
        for thread in threads + [thread] { #expect(thread.join(seconds: 60)) }
        #expect(mailbox.count == 0)
        for sender in 0..<4 {
            let numbers = seen.all.filter { $0.sender == sender }.map(\.number)
            #expect(numbers == Array(0..<numbers.count))
        }
    }

    @Test func theLimitRefusesAndRoomComesBack() throws {
        var received: [[Int]] = []
        try withLoop { loop in
            let mailbox = Mailbox<Int>(loop: loop, limit: 3) { batch in
                received.append(batch)
                if batch.contains(9) { loop.stop() }
            }
            #expect((1...5).map { mailbox.post($0) } == [true, true, true, false, false])
            #expect(mailbox.count == 3)
            loop.timer {
                #expect(mailbox.count == 0)
                #expect(mailbox.post(9))
            }.start(afterMilliseconds: 10)
        }
        #expect(received == [[1, 2, 3], [9]])
    }

    @Test func aReceiverMayPostAndMayClose() throws {
        var received: [Int] = []
        try withLoop { loop in
            var mailbox: Mailbox<Int>?
            mailbox = Mailbox<Int>(loop: loop, limit: 8) { batch in
                received += batch
                if batch == [1] {
                    #expect(mailbox?.post(2) == true)
                } else {
                    #expect(mailbox?.post(3) == true)
                    mailbox?.close()
                    #expect(mailbox?.post(4) == false)
                    loop.timer { loop.stop() }.start(afterMilliseconds: 5)
                }
            }
            mailbox?.post(1)
        }
        #expect(received == [1, 2])
    }

    @Test func closeFreesTheReceiver() throws {
        final class Witness {}
        weak var witness: Witness?
        try withLoop { loop in
            let held = Witness()
            witness = held
            let mailbox = Mailbox<Int>(loop: loop, limit: 1) { _ in _ = held }
            #expect(mailbox.post(1))
            mailbox.close()
            loop.nextTurn { loop.stop() }
        }
        #expect(witness == nil)
    }
}

@Suite struct LoopThreadTests {
    @Test("what was asked for before a loop's end is carried out, also as it stops")
    func askedBeforeTheEnd() throws {
        let thread = try LoopThread.start(name: "ending") { _ in }
        let done = Latch()
        // The turn that carries this out is the loop's last.
        thread.perform { _ in
            thread.perform { _ in done.arrive() }
            thread.stop()
        }
        thread.join()
        #expect(done.wait(seconds: 0))
        #expect(!thread.perform { _ in })
    }

    private struct Refused: Error, Equatable {}

    @Test func whatSetUpThrowsIsThrownByStart() {
        #expect(throws: Refused()) {
            try LoopThread.start(name: "refuses") { loop in
                // Left open on purpose: the thread must close it as well.
                _ = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
                throw Refused()
            }
        }
    }

    @Test func performRunsInOrderOnTheLoopUntilItEnds() throws {
        let seen = Seen<Int>()
        let thread = try LoopThread.start(name: "a name that is longer than 15 bytes") { _ in }
        for number in 0..<100 {
            #expect(
                thread.perform { loop in
                    loop.preconditionInside()
                    _ = seen.add([number])
                })
        }
        let isDone = Latch()
        thread.perform { _ in isDone.arrive() }
        #expect(isDone.wait(seconds: 60))
        thread.stop()
        thread.stop()
        #expect(thread.join(seconds: 60))
        thread.join()
        #expect(!thread.perform { _ in })
        #expect(seen.all == Array(0..<100))
    }

    @Test func stopClosesWhatIsOpen() throws {
        let closed = Latch()
        let thread = try LoopThread.start(name: "open things") { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            loop.timer {}.start(afterMilliseconds: 0, repeatingMilliseconds: 1)
            let port = listener.port
            listener.onConnection = { $0.onClosed = { closed.arrive() } }
            Stream.connect(loop: loop, host: "127.0.0.1", port: port) { _ in
                loop.nextTurn { loop.nextTurn { loop.stop() } }
            }
        }
        #expect(thread.join(seconds: 60))
        // The listener accepts in the turn of the connect or the next.
        #expect(closed.wait(seconds: 60))
    }

    @Test func aLatchWithADeadlineSaysWhetherItOpened() {
        let latch = Latch(count: 2)
        #expect(!latch.wait(seconds: 0))
        latch.arrive()
        #expect(!latch.wait(seconds: 0))
        latch.arrive()
        latch.arrive()
        #expect(latch.wait(seconds: 0))
        latch.wait()
    }
}
