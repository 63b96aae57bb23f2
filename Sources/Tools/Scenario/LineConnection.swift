import EventLoop
import FoundationEssentials

/// Lines of JSON over a Unix-domain socket, on a loop. Loop-confined.
final class LineConnection {
    static let lineBytesMax = 1 << 20

    var onLine: (Data) -> Void = { _ in }
    var onEnd: (String) -> Void = { _ in }
    private var stream: EventLoop.Stream?
    private var received: [UInt8] = []
    private var unsent: [[UInt8]] = []

    init(loop: Loop, path: String) {
        EventLoop.Stream.connect(loop: loop, path: path) { [weak self] result in
            switch result {
            case .success(let stream):
                guard let self else { return stream.close() }
                self.connected(stream)
            case .failure(let error): self?.onEnd("\(path): \(error)")
            }
        }
    }

    private func connected(_ stream: EventLoop.Stream) {
        self.stream = stream
        stream.onBytes = { [unowned self] bytes in self.received(bytes) }
        stream.onEnd = { [unowned self] in self.onEnd("the simulator has gone") }
        stream.onFailure = { [unowned self] error in self.onEnd("\(error)") }
        stream.startReading()
        for line in unsent { stream.write(line) }
        unsent = []
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        received.append(contentsOf: bytes)
        // Lines are taken out together: one by one, each would move all that follow.
        var start = 0
        while let end = received[start...].firstIndex(of: UInt8(ascii: "\n")) {
            onLine(Data(received[start..<end]))
            start = end + 1
        }
        received.removeFirst(start)
        if received.count > Self.lineBytesMax { onEnd("a line of the simulator is too long") }
    }

    func send(_ line: Data) {
        let bytes = Array(line) + [UInt8(ascii: "\n")]
        if let stream { stream.write(bytes) } else { unsent.append(bytes) }
    }

    func close() {
        onEnd = { _ in }
        stream?.close()
        stream = nil
    }
}
