import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct SessionMutationTests {
    private func mutate(_ number: UInt64, bytes: Int = 0) -> FrameBody {
        .mutate(
            Mutation(
                number: number,
                operation: .sendMessage(
                    SendMessage(parts: [
                        Part(mimeType: "", content: Array(repeating: 0, count: bytes))
                    ]))))
    }

    private func done(_ number: UInt64, _ code: UInt32 = 0) -> StoreAnswer {
        .mutated(MutationResult(number: number, code: code), floor: number)
    }

    @Test func oneAtATimeInOrder() {
        var desk = Desk.open()
        #expect(desk.receive(mutate(1), request: 5) == ["store mutate 1"])
        let first = desk.tag
        #expect(desk.receive(mutate(2), request: 6) == [])
        #expect(desk.answer(done(1), to: first) == ["send RESULT 1=0 @5", "store mutate 2"])
        #expect(desk.answer(done(2)) == ["send RESULT 2=0 @6"])
    }

    /// MSG-11: nothing overtakes a mutation that was refused for a time.
    @Test func aRefusalHoldsBackTheLaterOnes() {
        var desk = Desk.open()
        desk.receive(mutate(1), request: 5)
        let first = desk.tag
        desk.receive(mutate(2), request: 6)
        #expect(
            desk.run { $0.storeFailed(first, .full(""), now: $1) } == [
                "send RESULT 1=1004 @5", "send RESULT 2=1001 @6",
            ])
        #expect(desk.receive(mutate(3), request: 7) == ["send RESULT 3=1001 @7"])
        #expect(desk.receive(mutate(1), request: 8) == ["store mutate 1"])
        #expect(desk.answer(done(1)) == ["send RESULT 1=0 @8"])
        #expect(desk.receive(mutate(2), request: 9) == ["store mutate 2"])
    }

    /// SYN-33: what waits on a device of another history, and what it acknowledges.
    @Test func aDeviceOfAnotherHistoryChangesNothingYet() {
        var desk = Desk.open()
        let old = Cursor(epoch: Epoch(high: 1, low: 99), seq: 4)
        let sync = SyncFrame(
            cursor: old, applied: 4, mode: .advance, mutations: [Mutation(number: 8)])
        desk.receive(.sync(sync), request: 6)
        let results = [MutationResult(number: 8, code: 1001)]
        desk.answer(
            .synced(Desk.position(head: 10, applied: 0, results: results, reset: .epochChanged)))
        // Of its own history.
        #expect(desk.receive(.ack(Ack(applied: 4))) == [])
        #expect(desk.receive(mutate(8), request: 7) == ["send RESULT 8=1001 @7"])
        #expect(
            desk.give(Desk.page(0, [3, 10])) == ["send DELTA 0>10/10 8=1001 reset epochChanged @6"])
        #expect(desk.receive(mutate(8), request: 8) == ["send RESULT 8=1001 @8"])
        // It knows this one now; under another number than the refused one, too.
        if !desk.receive(.ack(Ack(applied: 10))).isEmpty { desk.answer(.acknowledged(head: 10)) }
        #expect(desk.receive(mutate(9), request: 9) == ["store mutate 9"])
    }

    @Test func aRefusalHoldsBackASyncsMutationsToo() {
        var desk = Desk.open()
        desk.receive(mutate(1), request: 5)
        let first = desk.tag
        desk.run { $0.storeFailed(first, .conflict(""), now: $1) }
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance,
            mutations: [Mutation(number: 2), Mutation(number: 3)])
        #expect(desk.receive(.sync(sync), request: 6) == ["store sync applied 10"])
        desk.answer(.synced(Desk.position(head: 10, applied: 10)))
        #expect(desk.give(Desk.page(10, [])) == ["send DELTA 10>10/10 2=1001 3=1001 @6"])
        var whole = sync
        whole.mutations.insert(Mutation(number: 1), at: 0)
        #expect(
            desk.receive(.sync(whole), request: 7) == ["store sync applied 10 m1 m2 m3"])
    }

    @Test func resultsComeInTheDelta() {
        var desk = Desk.open()
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance,
            mutations: [Mutation(number: 4)])
        #expect(desk.receive(.sync(sync), request: 6) == ["store sync applied 10 m4"])
        desk.answer(
            .synced(
                Desk.position(head: 11, applied: 10, results: [MutationResult(number: 4)])))
        #expect(desk.give(Desk.page(10, [11])) == ["send DELTA 10>11/11 4=0 @6"])
    }

    /// The result of a logout is told before the session it ends.
    @Test(arguments: [true, false])
    func logout(_ answerFirst: Bool) {
        var desk = Desk.open()
        let logout = Mutation(number: 1, operation: .forgetDevice(ForgetDevice()))
        #expect(desk.receive(.mutate(logout), request: 5) == ["store mutate 1"])
        var lines: [String] = []
        if answerFirst { lines += desk.answer(done(1)) }
        lines += desk.run { $0.ended(.revoked, now: $1) }
        if !answerFirst { lines += desk.answer(done(1)) }
        #expect(
            lines == [
                "send RESULT 1=0 @5", "send CLOSE 2004 applied 10", "leave anna", "close 2004",
            ])
        desk.run { $0.closed(now: $1) }
        #expect(desk.session.isFinished)
    }

    /// The same in a SYNC, whose page is not read for it any more.
    @Test(arguments: [true, false])
    func logoutInASync(_ answerFirst: Bool) {
        var desk = Desk.open()
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance,
            mutations: [Mutation(number: 1, operation: .forgetDevice(ForgetDevice()))])
        desk.receive(.sync(sync), request: 5)
        let answer = StoreAnswer.synced(
            Desk.position(head: 10, applied: 10, results: [MutationResult(number: 1)]))
        var lines: [String] = []
        if answerFirst { desk.answer(answer) }
        lines += desk.run { $0.ended(.revoked, now: $1) }
        if !answerFirst { lines += desk.answer(answer) }
        #expect(
            lines == [
                "send DELTA 10>10/10 1=0 @5", "send CLOSE 2004 applied 10", "leave anna",
                "close 2004",
            ])
    }

    @Test func thirtyTwoAreTaken() {
        var desk = Desk.open()
        for number in 1...32 { desk.receive(mutate(UInt64(number)), request: 1) }
        #expect(desk.session.isOpen)
        #expect(desk.receive(mutate(33), request: 1).first == "send CLOSE 4006 applied 10")
    }

    @Test func muchContentStopsReading() {
        var desk = Desk.open()
        #expect(desk.receive(mutate(1, bytes: 200 << 10)) == ["store mutate 1"])
        let first = desk.tag
        #expect(desk.receive(mutate(2, bytes: 60 << 10)) == ["stop reading"])
        #expect(
            desk.answer(done(1), to: first) == [
                "send RESULT 1=0", "store mutate 2", "resume reading",
            ])
    }
}
