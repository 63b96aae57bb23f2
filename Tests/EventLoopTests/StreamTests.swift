import EventLoop
import Glibc
import Testing

@Suite struct StreamTests {
    @Test(arguments: Transport.allCases) func echo(_ transport: Transport) throws {
        let sent = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var received: [UInt8] = []
        try withPair(transport) { loop, client, server in
            server.onBytes = { server.write($0) }
            server.startReading()
            client.onBytes = { bytes in
                received += bytes
                if received.count >= sent.count { loop.stop() }
            }
            client.startReading()
            #expect(client.write(sent))
        }
        #expect(received == sent)
    }

    @Test(arguments: Transport.allCases) func aReaderThatStopsLetsTheQueueGrowAndDrain(
        _ transport: Transport
    ) throws {
        let chunk = [UInt8](repeating: 7, count: 1 << 20)
        var drained = 0
        var received = 0
        try withPair(transport) { loop, client, server in
            #expect(client.setKernelBuffers(send: 64 * 1024))
            for _ in 0..<16 { client.write(chunk) }
            let total = 16 * chunk.count
            #expect(client.unsentBytes > 0)
            #expect(client.unsentBytes < total, "the kernel takes what it has room for at once")
            #expect(client.writtenBytes == UInt64(total - client.unsentBytes))
            #expect(client.kernelUnsentBytes >= 0)
            client.onDrained = {
                drained += 1
                #expect(client.unsentBytes == 0)
                #expect(client.writtenBytes == UInt64(total))
            }
            server.onBytes = { bytes in
                #expect(bytes.allSatisfy { $0 == 7 })
                received += bytes.count
                if received == total {
                    #expect(server.readBytes == UInt64(total))
                    // The end of the queue is told in a later turn than the last byte, perhaps.
                    if drained == 1 {
                        loop.stop()
                    } else {
                        client.onDrained = {
                            drained += 1
                            loop.stop()
                        }
                    }
                }
            }
            // Only after the loop has turned does a stopped reader count as stopped.
            loop.nextTurn {
                #expect(client.unsentBytes > 0)
                server.startReading()
            }
        }
        #expect(received == 16 * chunk.count)
        #expect(drained == 1)
    }

    @Test func stopReadingHoldsBytesBackAndStartReadingGivesThem() throws {
        var received = 0
        var isStopped = false
        try withPair(.tcp) { loop, client, server in
            client.onBytes = { bytes in
                #expect(!isStopped)
                received += bytes.count
                if received == 1 {
                    isStopped = true
                    client.stopReading()
                    server.write([2, 3])
                    // The answer lies in the kernel when the second connection has been through.
                    afterRoundTrip(on: loop) {
                        isStopped = false
                        client.startReading()
                    }
                } else if received == 3 {
                    loop.stop()
                }
            }
            client.startReading()
            server.write([1])
        }
        #expect(received == 3)
    }

    @Test(arguments: Transport.allCases) func halfCloseStillAnswers(_ transport: Transport) throws {
        var request: [UInt8] = []
        var answer: [UInt8] = []
        var ends = 0
        try withPair(transport) { loop, client, server in
            server.onBytes = { request += $0 }
            server.onEnd = {
                ends += 1
                server.write(request.reversed())
                server.shutdown()
            }
            client.onBytes = { answer += $0 }
            client.onEnd = {
                ends += 1
                loop.stop()
            }
            server.startReading()
            client.startReading()
            client.write([1, 2, 3])
            client.shutdown()
            #expect(!client.write([4]), "nothing can follow the end")
        }
        #expect(request == [1, 2, 3])
        #expect(answer == [3, 2, 1])
        #expect(ends == 2)
    }

    @Test func shutdownWaitsForTheQueue() throws {
        var received = 0
        let total = 8 << 20
        try withPair(.tcp) { loop, client, server in
            client.setKernelBuffers(send: 64 * 1024)
            client.write([UInt8](repeating: 1, count: total))
            #expect(client.unsentBytes > 0)
            client.shutdown()
            server.onBytes = { received += $0.count }
            server.onEnd = { loop.stop() }
            server.startReading()
        }
        #expect(received == total)
    }

    @Test(arguments: Transport.allCases) func closeInsideOnBytesEndsAllCalls(
        _ transport: Transport
    ) throws {
        var calls: [String] = []
        try withPair(transport) { loop, client, server in
            server.onBytes = { _ in
                calls.append("bytes")
                server.close()
                #expect(server.isClosed)
                #expect(!server.write([1]))
                #expect(server.unsentBytes == 0)
                server.close()
            }
            server.onEnd = { calls.append("end") }
            server.onFailure = { _ in calls.append("failure") }
            server.onDrained = { calls.append("drained") }
            server.onClosed = { calls.append("closed") }
            server.startReading()
            // More than one read buffer: libuv would read on within the same callback.
            client.write([UInt8](repeating: 0, count: 4 * Loop.readBufferSize))
            client.onEnd = { loop.stop() }
            client.onFailure = { _ in loop.stop() }
            client.startReading()
        }
        #expect(calls == ["bytes", "closed"])
    }

    @Test func closeWithAQueueDropsItAndCallsOnlyOnClosed() throws {
        var calls: [String] = []
        try withPair(.tcp) { loop, client, server in
            client.setKernelBuffers(send: 64 * 1024)
            client.onDrained = { calls.append("drained") }
            client.onFailure = { _ in calls.append("failure") }
            client.onClosed = {
                calls.append("closed")
                loop.stop()
            }
            client.write([UInt8](repeating: 0, count: 32 << 20))
            let written = client.writtenBytes
            #expect(written < 32 << 20)
            client.close()
            #expect(client.writtenBytes == written)
        }
        #expect(calls == ["closed"])
    }

    @Test func closeFreesTheHandlersAndTheStream() throws {
        final class Witness {}
        weak var handlers: Witness?
        weak var stream: EventLoop.Stream?
        try withPair(.tcp) { loop, client, _ in
            let held = Witness()
            handlers = held
            stream = client
            // Each handler holds the stream that holds it, as handlers do.
            client.onBytes = { _ in _ = (held, client) }
            client.onEnd = { _ = (held, client) }
            client.onFailure = { _ in _ = (held, client) }
            client.onDrained = { _ = (held, client) }
            client.onClosed = {
                _ = (held, client)
                loop.stop()
            }
            client.close()
        }
        #expect(handlers == nil)
        #expect(stream == nil)
    }

    @Test func aResetFailsOnceAndThenCloses() throws {
        var calls: [String] = []
        try withPair(.tcp) { loop, client, server in
            client.onEnd = { calls.append("end") }
            client.onFailure = { error in
                calls.append("failure")
                #expect(error.reason == .reset)
                #expect(!client.write([1]))
            }
            client.onClosed = {
                calls.append("closed")
                loop.stop()
            }
            // Unread bytes turn the close of a socket into a reset (RFC 1122, 4.2.2.13).
            client.write([1, 2, 3])
            afterRoundTrip(on: loop) {
                server.close()
                client.startReading()
            }
        }
        #expect(calls == ["failure", "closed"])
    }

    @Test(arguments: [Transport.tcp, .unix]) func aFailedWriteIsToldLaterAndOnce(
        _ transport: Transport
    ) throws {
        var calls: [String] = []
        try withPair(transport) { loop, client, server in
            var isInWrite = false
            client.onFailure = { error in
                #expect(!isInWrite)
                #expect(error.operation == .write)
                #expect(error.reason == .reset)
                calls.append("failure")
            }
            client.onClosed = {
                calls.append("closed")
                loop.stop()
            }
            server.onClosed = {
                // The first write may still be taken and is answered by a reset; a later one fails.
                func more() {
                    isInWrite = true
                    let isTaken = client.write([1])
                    isInWrite = false
                    if isTaken {
                        loop.nextTurn(more)
                    } else {
                        #expect(!client.write([2]), "a failed stream takes no more")
                    }
                }
                more()
            }
            server.close()
        }
        #expect(calls == ["failure", "closed"])
    }

    @Test func closeInsideOnFailureIsLegal() throws {
        var closed = 0
        try withPair(.tcp) { loop, client, server in
            client.onFailure = { _ in client.close() }
            client.onClosed = {
                closed += 1
                loop.stop()
            }
            client.write([1])
            afterRoundTrip(on: loop) {
                server.close()
                client.startReading()
            }
        }
        #expect(closed == 1)
    }

    @Test func thePeerHasAnAddress() throws {
        try withPair(.tcp) { loop, client, server in
            #expect(client.peerAddress == "127.0.0.1")
            #expect(server.peerAddress == "127.0.0.1")
            #expect(server.peerPort != 0 && server.peerPort != client.peerPort)
            loop.stop()
        }
        try withPair(.unix) { loop, client, server in
            #expect(client.peerAddress == "")
            #expect(server.peerPort == 0)
            loop.stop()
        }
    }

    @Test func anIPv4PeerOfAnIPv6ListenerIsWrittenAsIPv4() throws {
        try withLoop { loop in
            let listener = try Listener.listen(loop: loop, host: "::", port: 0)
            listener.onConnection = { stream in
                #expect(stream.peerAddress == "127.0.0.1")
                loop.stop()
            }
            Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { result in
                #expect(throws: Never.self) { try result.get() }
            }
        }
    }

    @Test func optionsAreTakenByTCPOnly() throws {
        let keepalive = Keepalive(idleSeconds: 60, intervalSeconds: 10, probes: 3)
        try withPair(.tcp) { loop, client, _ in
            #expect(client.setNoDelay(true))
            #expect(client.setKeepalive(keepalive))
            #expect(client.setKeepalive(nil))
            #expect(
                !client.setKeepalive(Keepalive(idleSeconds: 0, intervalSeconds: 1, probes: 1)),
                "the kernel refuses an idle time of 0")
            #expect(client.setUserTimeout(milliseconds: 30_000))
            client.close()
            #expect(!client.setNoDelay(true))
            loop.stop()
        }
        try withPair(.unix) { loop, client, _ in
            #expect(!client.setNoDelay(true))
            #expect(!client.setKeepalive(keepalive))
            loop.stop()
        }
    }
}

/// Calls back when a byte has gone to another connection of this loop and back, twice: what the
/// loopback had to deliver before has been delivered then.
func afterRoundTrip(on loop: Loop, _ body: @escaping () -> Void) {
    do {
        let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
        listener.onConnection = { stream in
            stream.onBytes = { stream.write($0) }
            stream.onEnd = { stream.close() }
            stream.startReading()
        }
        Stream.connect(loop: loop, host: "127.0.0.1", port: listener.port) { result in
            guard case .success(let stream) = result else {
                Issue.record("connect: \(result)")
                return
            }
            var trips = 0
            stream.onBytes = { _ in
                trips += 1
                guard trips == 2 else {
                    stream.write([1])
                    return
                }
                stream.close()
                listener.close()
                body()
            }
            stream.startReading()
            stream.write([1])
        }
    } catch {
        Issue.record("listen: \(error)")
    }
}
