import EventLoop
import Glibc
import Testing

@Suite struct SystemTests {
    @Test func aSignalReachesItsWatchOnEachLoop() throws {
        var arrived = 0
        let elsewhere = Latch()
        let thread = try LoopThread.start(name: "signals") { loop in
            _ = try Signals.watch(.user1, on: loop) { elsewhere.arrive() }
        }
        try withLoop { loop in
            let watch = try Signals.watch(.user1, on: loop) {
                arrived += 1
                loop.stop()
            }
            let closed = try Signals.watch(.user1, on: loop) {
                Issue.record("a closed watch was called")
            }
            closed.close()
            kill(getpid(), SIGUSR1)
            #expect(!watch.isClosed)
        }
        #expect(arrived == 1)
        #expect(elsewhere.wait(seconds: 60))
        thread.stop()
        #expect(thread.join(seconds: 60))
    }

    @Test func theDefaultEffectIsBackWhenAWatchIsClosed() async {
        await #expect(processExitsWith: .signal(SIGTERM)) {
            alarm(60)
            unblockSignals()
            let loop = try Loop()
            let watch = try Signals.watch(.terminate, on: loop) { loop.stop() }
            raise(SIGTERM)
            loop.run()
            watch.close()
            raise(SIGTERM)
        }
    }

    @Test func brokenPipesAreIgnoredByEveryLoop() async {
        await #expect(processExitsWith: .success) {
            unblockSignals()
            let loop = try Loop()
            loop.close()
            raise(SIGPIPE)
        }
    }

    @Test func aWatchedDescriptorIsToldWhileItIsReady() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        var calls: [DescriptorWatch.Readiness] = []
        try withLoop { loop in
            var reading: DescriptorWatch?
            let watch = try DescriptorWatch(
                loop: loop, descriptor: ends[0],
                onReady: { readiness in
                    calls.append(readiness)
                    // Nothing is read at first: it is called again.
                    guard calls.count == 2 else { return }
                    var byte: UInt8 = 0
                    #expect(read(ends[0], &byte, 1) == 1)
                    reading?.stop()
                    loop.timer { loop.stop() }.start(afterMilliseconds: 5)
                })
            reading = watch
            watch.start(.readable)
            var byte: UInt8 = 1
            #expect(write(ends[1], &byte, 1) == 1)
        }
        #expect(calls == [.readable, .readable])
    }

    @Test func aWatchForWritingIsCalledAtOnceAndMayBeClosedThere() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        var calls = 0
        try withLoop { loop in
            var watch: DescriptorWatch?
            watch = try DescriptorWatch(
                loop: loop, descriptor: ends[1],
                onReady: { readiness in
                    calls += 1
                    #expect(readiness == .writable)
                    watch?.close()
                    watch?.start(.writable)
                    loop.timer { loop.stop() }.start(afterMilliseconds: 5)
                })
            watch?.start(.writable)
        }
        #expect(calls == 1)
    }

    @Test func aDescriptorThatIsNoneIsAnError() throws {
        try withLoop { loop in
            let error = #expect(throws: StreamError.self) {
                try DescriptorWatch(loop: loop, descriptor: 1_000_000, onReady: { _ in })
            }
            #expect(error?.name == "EBADF")
            #expect(error?.reason == .other)
            loop.stop()
        }
    }

    @Test func namesAreResolvedAndNumbersAreTheirOwnAnswer() throws {
        var answers: [String: Result<[String], StreamError>] = [:]
        let hosts = [
            "localhost", "192.0.2.1", "2001:db8::1", String(repeating: "x", count: 300), "",
        ]
        try withLoop { loop in
            for host in hosts {
                Resolver.resolve(host, on: loop) { result in
                    answers[host] = result
                    if answers.count == hosts.count { loop.stop() }
                }
            }
            #expect(answers.isEmpty, "the answer comes in a later turn")
        }
        #expect((try? answers["localhost"]?.get())?.contains("127.0.0.1") == true)
        #expect(answers["192.0.2.1"] == .success(["192.0.2.1"]))
        #expect(answers["2001:db8::1"] == .success(["2001:db8::1"]))
        for host in hosts[3...] {
            guard case .failure(let error) = answers[host] else {
                Issue.record("\(host): \(String(describing: answers[host]))")
                continue
            }
            #expect(error.operation == .resolve)
        }
    }

    @Test func openDescriptorsAreCounted() async {
        // In a process of its own: other tests open and close theirs.
        await #expect(processExitsWith: .success) {
            // Again when a thread of the test library opened something in between.
            let isExact = (0..<100).contains { _ in
                guard let before = Descriptors.openCount else { return false }
                let more = (0..<10).map { _ in dup(0) }
                let during = Descriptors.openCount
                for descriptor in more { close(descriptor) }
                return during == before + 10 && Descriptors.openCount == before
            }
            precondition(isExact)
            // Other tests of the parent have many open.
            let isOpen = (0..<getdtablesize()).filter { fcntl($0, F_GETFD) != -1 }
            precondition(abs((Descriptors.openCount ?? 0) - isOpen.count) <= 1)
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let hard = Int(limit.rlim_max)
            limit.rlim_cur = 100
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            precondition(Descriptors.raiseLimit() == hard)
            precondition(Descriptors.raiseLimit() == hard)
        }
    }
}

/// Dispatch's threads, which tests run on, block signals; unblocked, raise() returns after the
/// signal's effect.
private func unblockSignals() {
    var all = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_UNBLOCK, &all, nil)
}
