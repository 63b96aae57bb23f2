import Testing

@testable import EventLoop

/// Names, and how long they may take.
@Suite struct LookUpTests {
    @Test("all who want a name share one question, and whoever comes back joins it")
    func sharedLookUps() throws {
        var told: [String] = []
        try withLoop { loop in
            let given = Resolver.addresses(of: "localhost", port: 7, on: loop) { _ in
                told.append("given up")
            }
            for port in 1...9 as ClosedRange<UInt16> {
                Resolver.addresses(of: "localhost", port: port, on: loop) { result in
                    let ports = (try? result.get())?.map(\.port) ?? []
                    told.append("\(port): \(Set(ports))")
                    if told.count == 9 { loop.stop() }
                }
            }
            given?.cancel()
            Resolver.resolve("127.0.0.1", on: loop) { _ in }
            #expect(loop.lookUpsBegun == 1)
        }
        #expect(told.sorted() == (1...9).map { "\($0): [\($0)]" })
    }

    @Test("a name server that is silent is named, and not the host")
    func silentNameServer() throws {
        var failure: StreamError?
        try withLoop { loop in
            Stream.connect(loop: loop, host: "localhost", port: 9, timeoutMilliseconds: 0) {
                if case .failure(let error) = $0 { failure = error }
                loop.stop()
            }
        }
        #expect(failure?.operation == .resolve && failure?.name == "ETIMEDOUT")
    }
}
