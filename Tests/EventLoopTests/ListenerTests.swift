import Glibc
import Testing

@testable import EventLoop

@Suite struct ListenerTests {
    @Test func twoListenersShareAPortAndItsConnections() throws {
        var counts = [0, 0]
        try withLoop { loop in
            let first = try Listener.listen(
                loop: loop, host: "127.0.0.1", port: 0, reusePort: true)
            let second = try Listener.listen(
                loop: loop, host: "127.0.0.1", port: first.port, reusePort: true)
            #expect(first.port == second.port && first.port != 0)
            for (index, listener) in [first, second].enumerated() {
                listener.onConnection = { stream in
                    counts[index] += 1
                    if counts[0] + counts[1] == 200 { loop.stop() }
                }
            }
            for _ in 0..<200 {
                Stream.connect(loop: loop, host: "127.0.0.1", port: first.port) { result in
                    #expect(throws: Never.self) { try result.get() }
                }
            }
        }
        #expect(counts[0] + counts[1] == 200)
        // 200 fair coins: fewer than 20 of one side has a chance below 1 in 10 to the 30.
        #expect(counts[0] >= 20 && counts[1] >= 20)
    }

    @Test func aTakenPortIsAnError() throws {
        try withLoop { loop in
            let first = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            let error = #expect(throws: StreamError.self) {
                try Listener.listen(loop: loop, host: "127.0.0.1", port: first.port)
            }
            #expect(error?.reason == .addressInUse)
            #expect(error?.name == "EADDRINUSE")
            first.close()
            // The port is free as soon as close() returns.
            _ = try Listener.listen(loop: loop, host: "127.0.0.1", port: first.port)
            loop.stop()
        }
    }

    @Test(arguments: ["name.example", "", "300.0.0.1", "192.0.2.1"])
    func aHostThatIsNotOursIsAnError(_ host: String) throws {
        try withLoop { loop in
            let error = #expect(throws: StreamError.self) {
                try Listener.listen(loop: loop, host: host, port: 0)
            }
            #expect(error?.operation == .bind)
            #expect(error?.reason == .addressNotAvailable)
            loop.stop()
        }
    }

    @Test(arguments: Transport.allCases) func pausingLeavesConnectionsInTheBacklog(
        _ transport: Transport
    ) throws {
        var accepted = 0
        var connected = 0
        var isPaused = true
        try withTemporaryDirectory { directory in
            try withLoop { loop in
                let place = try Place(transport, loop: loop, directory: directory)
                place.listener.pauseAccepting()
                #expect(place.listener.isPaused)
                place.listener.onConnection = { _ in
                    #expect(!isPaused)
                    accepted += 1
                    if accepted == 5 { loop.stop() }
                }
                for _ in 0..<5 {
                    place.connect { _ in
                        connected += 1
                        guard connected == 5 else { return }
                        // All five are connected for their peers, and none was accepted.
                        #expect(accepted == 0)
                        #expect(place.listener.wakes == 0, "a paused listener does not look")
                        isPaused = false
                        place.listener.resumeAccepting()
                    }
                }
            }
        }
        #expect(accepted == 5)
    }

    @Test func pausingInsideOnConnectionHoldsTheNextOneBack() throws {
        var accepted = 0
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            listener.pauseAccepting()
            listener.onConnection = { _ in
                accepted += 1
                #expect(!listener.isPaused)
                guard accepted == 1 else {
                    loop.stop()
                    return
                }
                listener.pauseAccepting()
                loop.timer {
                    #expect(accepted == 1)
                    listener.resumeAccepting()
                }.start(afterMilliseconds: 10)
            }
            var connected = 0
            for _ in 0..<2 {
                Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { _ in
                    connected += 1
                    if connected == 2 { listener.resumeAccepting() }
                }
            }
        }
        #expect(accepted == 2)
    }

    @Test func closeInsideOnConnectionIsLegal() throws {
        var accepted = 0
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            listener.pauseAccepting()
            listener.onConnection = { _ in
                accepted += 1
                listener.close()
                listener.close()
                listener.resumeAccepting()
                loop.timer { loop.stop() }.start(afterMilliseconds: 5)
            }
            var connected = 0
            for _ in 0..<3 {
                Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { _ in
                    connected += 1
                    if connected == 3 { listener.resumeAccepting() }
                }
            }
        }
        #expect(accepted == 1)
    }

    @Test func withoutAHandlerConnectionsAreClosed() throws {
        var ended = false
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { result in
                guard case .success(let stream) = result else { return }
                stream.onEnd = {
                    ended = true
                    loop.stop()
                }
                stream.startReading()
            }
        }
        #expect(ended)
    }

    /// In a process of its own: the limit on descriptors is the whole process's.
    @Test func withoutDescriptorsItReportsPausesAndGoesOn() async {
        await #expect(processExitsWith: .success) {
            alarm(60)
            let scene = try CrowdedListener()
            // Twice, because the spare descriptor must have come back.
            for round in 1...2 {
                scene.crowd(connections: 3)
                scene.loop.run()
                // Every number below the limit is taken: the lowest free one is the limit itself.
                let lowestFree = dup(0)
                Glibc.close(lowestFree)
                setSoftLimit(rlim_t(lowestFree))
                precondition(dup(0) == -1 && errno == EMFILE)
                scene.listener.resumeAccepting()
                scene.loop.run()
                // The three were closed at once, by the spare descriptor, and reported once.
                precondition(scene.failures == round && scene.ended == 3 && scene.accepted == 0)
                setSoftLimit(nil)
            }
            scene.listener.resumeAccepting()
            let port = scene.listener.port
            Stream.connect(loop: scene.loop, host: "127.0.0.1", port: port) { _ in }
            scene.onAccepted = { [unowned scene] in scene.loop.stop() }
            scene.loop.run()
            precondition(scene.accepted == 1)
            scene.loop.close()
        }
    }

    @Test func withoutEvenTheSpareDescriptorItDoesNotSpin() async {
        await #expect(processExitsWith: .success) {
            alarm(60)
            let scene = try CrowdedListener()
            scene.crowd(connections: 3)
            scene.loop.run()
            // Below the number of the spare one too, so giving that one up helps nothing.
            setSoftLimit(3)
            scene.listener.resumeAccepting()
            let start = scene.loop.now
            scene.loop.timer { scene.loop.stop() }.start(afterMilliseconds: 200)
            scene.loop.run()
            let pauses = (scene.loop.now - start) / Listener.backOffMilliseconds
            precondition(scene.listener.wakes >= 1 && scene.listener.wakes <= pauses + 1)
            precondition(scene.failures == Int(scene.listener.wakes))
            precondition(scene.ended == 0 && scene.accepted == 0)
            setSoftLimit(nil)
            scene.onAccepted = { [unowned scene] in
                if scene.accepted == 3 { scene.loop.stop() }
            }
            scene.loop.run()
            precondition(scene.accepted == 3)
            scene.loop.close()
        }
    }

    @Test func aPathIsRemovedWithItsListenerAndHasItsMode() throws {
        try withTemporaryDirectory { directory in
            try withLoop { loop in
                let path = directory + "/socket"
                let listener = try Listener.listen(loop: loop, path: path, permissions: 0o640)
                #expect(listener.port == 0)
                var status = stat()
                #expect(lstat(path, &status) == 0)
                #expect(status.st_mode & 0o777 == 0o640)
                listener.close()
                #expect(lstat(path, &status) == -1)
                loop.stop()
            }
        }
    }

    @Test func aSocketLeftByTheDeadIsReplacedAndALiveOneIsNot() throws {
        try withTemporaryDirectory { directory in
            try withLoop { loop in
                let path = directory + "/socket"
                let first = try Listener.listen(loop: loop, path: path)
                let error = #expect(throws: StreamError.self) {
                    try Listener.listen(loop: loop, path: path)
                }
                #expect(error?.reason == .addressInUse)
                // As after a kill: the file stays, nobody listens.
                #expect(rename(path, path + "-kept") == 0)
                first.close()
                #expect(rename(path + "-kept", path) == 0)
                let second = try Listener.listen(loop: loop, path: path)
                second.close()
                loop.stop()
            }
        }
    }

    @Test func aFileAtThePathIsNotTouched() throws {
        try withTemporaryDirectory { directory in
            try withLoop { loop in
                let path = directory + "/file"
                close(open(path, O_CREAT | O_WRONLY, 0o600))
                let error = #expect(throws: StreamError.self) {
                    try Listener.listen(loop: loop, path: path)
                }
                #expect(error?.reason == .addressInUse)
                #expect(unlink(path) == 0)
                loop.stop()
            }
        }
    }

    @Test func aPathThatDoesNotFitIsAnErrorAndNotCut() throws {
        try withTemporaryDirectory { directory in
            try withLoop { loop in
                let room = 107 - directory.utf8.count - 1
                let fits = directory + "/" + String(repeating: "x", count: room)
                let listener = try Listener.listen(loop: loop, path: fits)
                listener.onConnection = { _ in loop.stop() }
                Stream.connect(loop: loop, path: fits) { result in
                    #expect(throws: Never.self) { try result.get() }
                }
                let error = #expect(throws: StreamError.self) {
                    try Listener.listen(loop: loop, path: fits + "x")
                }
                #expect(error?.name == "ENAMETOOLONG")
            }
        }
    }
}

/// Connections that are connected for their peers while nobody accepts; run() returns then, and
/// again when all have ended.
private final class CrowdedListener {
    let loop: Loop
    let listener: Listener
    var failures = 0
    var ended = 0
    var accepted = 0
    var onAccepted: () -> Void = {}

    init() throws {
        loop = try Loop()
        listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
        listener.onAcceptFailure = { [unowned self] error in
            precondition(error.reason == .descriptorsExhausted && error.operation == .accept)
            failures += 1
        }
        listener.onConnection = { [unowned self] _ in
            accepted += 1
            onAccepted()
        }
    }

    func crowd(connections: Int) {
        listener.pauseAccepting()
        ended = 0
        var connected = 0
        for _ in 0..<connections {
            Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) {
                [unowned self] result in
                guard case .success(let stream) = result else { fatalError("\(result)") }
                stream.onEnd = { [unowned self] in
                    ended += 1
                    stream.close()
                    if ended == connections { loop.stop() }
                }
                stream.startReading()
                connected += 1
                if connected == connections { loop.stop() }
            }
        }
    }
}

/// The soft limit on descriptors; nil: as high as the hard one.
private func setSoftLimit(_ soft: rlim_t?) {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = soft ?? limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
