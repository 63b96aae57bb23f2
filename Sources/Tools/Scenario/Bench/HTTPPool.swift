import EventLoop

/// Keep-alive connections to a backend API, as a backend holds them: each carries one request at
/// a time, and a request for which none is free waits its turn. Loop-confined.
final class HTTPPool {
    typealias Completion = (Result<HTTPCall.Answer, ScenarioError>) -> Void

    private let loop: Loop
    private let port: UInt16
    private let limit: Int
    private var free: [HTTPChannel] = []
    private var all: [ObjectIdentifier: HTTPChannel] = [:]
    private var dialling: [ObjectIdentifier: Dialing] = [:]
    /// Bounded by who sends: a closed loop by its window, an open one by its schedule.
    private var waiting: [(bytes: [UInt8], completion: Completion)] = []
    private var firstWaiting = 0
    private var isClosed = false
    private var opened: (count: Int, then: () -> Void)?

    /// - Parameter limit: connections at most.
    init(loop: Loop, port: UInt16, limit: Int) {
        self.loop = loop
        self.port = port
        self.limit = limit
    }

    /// Makes all connections ahead, so that dialling is in no request's time. A failure shows in
    /// the first request.
    func open(then: @escaping () -> Void) {
        opened = (limit, then)
        for _ in 0..<limit { dial() }
    }

    func send(_ bytes: [UInt8], _ completion: @escaping Completion) {
        if let channel = free.popLast() { return channel.send(bytes, completion) }
        waiting.append((bytes, completion))
        if dialling.count < waiting.count - firstWaiting { dial() }
    }

    func close() {
        isClosed = true
        for dialing in dialling.values { dialing.cancel() }
        for channel in all.values { channel.close() }
        dialling = [:]
        all = [:]
        free = []
        waiting = []
        firstWaiting = 0
    }

    private func dial() {
        guard !isClosed, all.count + dialling.count < limit else { return }
        var key: ObjectIdentifier?
        let dialing = EventLoop.Stream.connect(loop: loop, host: "127.0.0.1", port: port) {
            [weak self] result in
            guard let self, !self.isClosed else {
                if case .success(let stream) = result { stream.close() }
                return
            }
            if let key { self.dialling[key] = nil }
            switch result {
            case .success(let stream):
                let channel = HTTPChannel(stream)
                channel.onFree = { [weak self] in self?.becameFree($0) }
                channel.onEnded = { [weak self] in self?.ended($0) }
                self.all[ObjectIdentifier(channel)] = channel
                self.becameFree(channel)
            case .failure(let error): self.failNext("\(error)")
            }
            self.countDown()
        }
        key = ObjectIdentifier(dialing)
        dialling[ObjectIdentifier(dialing)] = dialing
    }

    private func countDown() {
        guard let (count, then) = opened else { return }
        opened = count > 1 ? (count - 1, then) : nil
        if count <= 1 { then() }
    }

    private func becameFree(_ channel: HTTPChannel) {
        guard let next = takeWaiting() else { return free.append(channel) }
        channel.send(next.bytes, next.completion)
    }

    private func takeWaiting() -> (bytes: [UInt8], completion: Completion)? {
        guard firstWaiting < waiting.count else { return nil }
        let next = waiting[firstWaiting]
        firstWaiting += 1
        if firstWaiting == waiting.count || firstWaiting > 4_096 {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
        return next
    }

    /// A server may end a connection that idles; the next request that finds none dials again.
    private func ended(_ channel: HTTPChannel) {
        all[ObjectIdentifier(channel)] = nil
        free.removeAll { $0 === channel }
        if firstWaiting < waiting.count { dial() }
    }

    private func failNext(_ why: String) {
        guard let next = takeWaiting() else { return }
        next.completion(.failure(ScenarioError("the backend API at port \(port): \(why)")))
    }
}

/// One keep-alive connection of the pool.
final class HTTPChannel {
    var onFree: ((HTTPChannel) -> Void)?
    var onEnded: ((HTTPChannel) -> Void)?
    private let stream: EventLoop.Stream
    private var received: [UInt8] = []
    private var completion: HTTPPool.Completion?

    init(_ stream: EventLoop.Stream) {
        self.stream = stream
        stream.onBytes = { [unowned self] bytes in
            self.received += bytes
            self.parse()
        }
        stream.onEnd = { [unowned self] in self.end("ended by the server") }
        stream.onFailure = { [unowned self] error in self.end("\(error)") }
        // The stream keeps this channel alive until it is closed.
        stream.onClosed = { self.completion = nil }
        stream.setNoDelay(true)
        stream.startReading()
    }

    func send(_ bytes: [UInt8], _ completion: @escaping HTTPPool.Completion) {
        self.completion = completion
        stream.write(bytes)
    }

    func close() {
        onFree = nil
        onEnded = nil
        stream.close()
    }

    private func end(_ why: String) {
        let waiting = completion
        completion = nil
        onEnded?(self)
        close()
        waiting?(.failure(ScenarioError("a connection to the backend API: \(why)")))
    }

    /// Answers have a `content-length` (or no body): what comes is our own servers' HTTP.
    private func parse() {
        guard received.count <= HTTPCall.answerBytesMax else {
            return end("the answer is too long")
        }
        guard let head = Self.headEnd(received) else { return }
        let lines = String(decoding: received[..<head], as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count > 1, let status = Int(words[1]) else {
            return end("the answer is no HTTP")
        }
        let name = "content-length:"
        let length = lines.first { $0.lowercased().hasPrefix(name) }
            .flatMap { Int($0.dropFirst(name.count).filter { $0 != " " }) }
        let whole = head + 4 + (length ?? 0)
        guard received.count >= whole else { return }
        let answer = HTTPCall.Answer(status: status, body: Array(received[(head + 4)..<whole]))
        received.removeFirst(whole)
        let waiting = completion
        completion = nil
        onFree?(self)
        waiting?(.success(answer))
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (0...(bytes.count - 4)).first { at in
            bytes[at] == 13 && bytes[at + 1] == 10 && bytes[at + 2] == 13 && bytes[at + 3] == 10
        }
    }
}
