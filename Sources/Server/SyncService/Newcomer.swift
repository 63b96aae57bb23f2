import EventLoop

/// A connection that a balancer passes on, until it has said whose it is. Lives on its loop.
final class Newcomer {
    private let stream: Stream
    private var bytes: [UInt8] = []
    private var timer: LoopTimer?
    /// Called once: with the header and what came behind it, or with what is wrong.
    private var heard: ((Result<(ProxyHeader, rest: [UInt8]), ProxyFault>) -> Void)?

    struct ProxyFault: Error {
        let reason: String
    }

    /// - Parameter deadline: Milliseconds until the header has to be there.
    init(
        _ stream: Stream, on loop: Loop, deadline: UInt64,
        heard: @escaping (Result<(ProxyHeader, rest: [UInt8]), ProxyFault>) -> Void
    ) {
        self.stream = stream
        self.heard = heard
        timer = loop.timer { [unowned self] in self.end(.failure(ProxyFault(reason: "too late"))) }
        timer?.start(afterMilliseconds: deadline)
        stream.onBytes = { [unowned self] in self.received($0) }
        stream.onEnd = { [unowned self] in self.end(.failure(ProxyFault(reason: "it ended"))) }
        stream.onFailure = { [unowned self] in
            self.end(.failure(ProxyFault(reason: "\($0)")))
        }
        stream.startReading()
    }

    private func received(_ more: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: more)
        switch ProxyHeader.read(bytes) {
        case .incomplete: break
        case .wrong(let reason): end(.failure(ProxyFault(reason: reason)))
        case .whole(let header):
            end(.success((header, rest: Array(bytes[header.length...]))))
        }
    }

    private func end(_ result: Result<(ProxyHeader, rest: [UInt8]), ProxyFault>) {
        guard let heard else { return }
        self.heard = nil
        timer?.close()
        stream.stopReading()
        heard(result)
    }
}
