import EventLoop
import Glibc
import Testing

@Suite struct ConnectTests {
    @Test func nobodyListeningIsRefused() throws {
        var outcome: Result<Void, StreamError>?
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            let port = listener.port
            listener.close()
            Stream.connect(loop: loop, host: "127.0.0.1", port: port) { result in
                outcome = result.map { _ in }
                loop.stop()
            }
            #expect(outcome == nil, "the answer comes in a later turn")
        }
        guard case .failure(let error) = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(error.reason == .refused)
        #expect(error.operation == .connect)
        #expect(error.description == "connect failed: connection refused (ECONNREFUSED)")
    }

    @Test func aPathWithoutASocketIsNotFoundAndOneWithoutAListenerRefused() throws {
        try withTemporaryDirectory { directory in
            try withLoop { loop in
                let path = directory + "/socket"
                Stream.connect(loop: loop, path: path) { result in
                    #expect(reason(result) == .notFound)
                    do {
                        let listener = try Listener.listen(loop: loop, path: path)
                        #expect(rename(path, path + "-kept") == 0)
                        listener.close()
                    } catch {
                        Issue.record("\(error)")
                    }
                    Stream.connect(loop: loop, path: path + "-kept") { result in
                        #expect(reason(result) == .refused)
                        unlink(path + "-kept")
                        loop.stop()
                    }
                }
            }
        }
    }

    @Test func aPathThatDoesNotFitIsAnError() throws {
        try withLoop { loop in
            let path = "/tmp/" + String(repeating: "x", count: 103)
            Stream.connect(loop: loop, path: path) { result in
                #expect(reason(result) == .addressNotAvailable)
                loop.stop()
            }
        }
    }

    @Test func theSourceAddressIsHonoured() throws {
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            listener.onConnection = { stream in
                #expect(stream.peerAddress == "127.0.0.3")
                loop.stop()
            }
            Stream.connect(
                loop: loop, host: "127.0.0.1", port: listener.port, sourceAddress: "127.0.0.3"
            ) { result in
                #expect(throws: Never.self) { try result.get() }
            }
        }
    }

    @Test(arguments: ["192.0.2.7", "::1", "no address"])
    func aSourceAddressThatCannotBeUsedIsAnError(_ source: String) throws {
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            Stream.connect(
                loop: loop, host: "127.0.0.1", port: listener.port, sourceAddress: source
            ) { result in
                #expect(reason(result) == .addressNotAvailable)
                loop.stop()
            }
        }
    }

    @Test func aNameIsTriedAddressByAddress() throws {
        // localhost is ::1 first where IPv6 is set up, and nobody listens there.
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            Stream.connect(loop: loop, host: "localhost", port: listener.port) { result in
                #expect((try? result.get())?.peerAddress == "127.0.0.1")
                loop.stop()
            }
        }
    }

    @Test func aPeerThatDoesNotAnswerTimesOut() throws {
        try withLoop { loop in
            try withFullBacklog(on: loop) { port in
                Stream.connect(
                    loop: loop, host: "127.0.0.1", port: port, timeoutMilliseconds: 20
                ) { result in
                    #expect(reason(result) == .timedOut)
                    loop.stop()
                }
            }
        }
    }

    @Test func aConnectThatALoopsCloseOvertakesDoesNotAnswer() throws {
        final class Witness {}
        weak var witness: Witness?
        var answers = 0
        try withLoop { loop in
            try withFullBacklog(on: loop) { port in
                let held = Witness()
                witness = held
                for host in ["127.0.0.1", "localhost"] {
                    Stream.connect(loop: loop, host: host, port: port) { _ in
                        answers += 1
                        _ = held
                    }
                }
                afterRoundTrip(on: loop) {
                    // Begun in this very turn, and so not even looked up.
                    Stream.connect(loop: loop, host: "127.0.0.1", port: port) { _ in
                        answers += 1
                        _ = held
                    }
                    loop.stop()
                }
            }
        }
        #expect(answers == 0)
        #expect(witness == nil, "a loop that closes drops what it will not call")
    }

    @Test func aCancelledConnectDoesNotAnswer() throws {
        var answers = 0
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            let early = Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { _ in
                answers += 1
            }
            early.cancel()
            early.cancel()
            let name = Stream.connect(loop: loop, host: "localhost", port: listener.port) { _ in
                answers += 1
            }
            name.cancel()
            var late: Dialing?
            late = Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { _ in
                answers += 1
            }
            // The look-up's turn is over and the socket is connecting.
            loop.nextTurn { late?.cancel() }
            afterRoundTrip(on: loop) { loop.stop() }
        }
        #expect(answers == 0)
    }

    @Test func aStreamIsReadyInItsCompletion() throws {
        var received: [UInt8] = []
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            listener.onConnection = { stream in
                stream.onBytes = { received += $0 }
                stream.onEnd = { loop.stop() }
                stream.startReading()
            }
            Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { result in
                guard case .success(let stream) = result else { return }
                #expect(stream.write([1, 2]))
                stream.close()
            }
        }
        #expect(received == [1, 2])
    }
}

private func reason(_ result: Result<EventLoop.Stream, StreamError>) -> StreamError.Reason? {
    guard case .failure(let error) = result else { return nil }
    return error.reason
}

/// A listening socket whose backlog is full: further connects stay unanswered (tcp(7)).
private func withFullBacklog(on loop: Loop, _ body: @escaping (UInt16) -> Void) throws {
    let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0, backlog: 0)
    listener.pauseAccepting()
    Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { result in
        guard case .success = result else {
            Issue.record("\(result)")
            return
        }
        body(listener.port)
    }
}
