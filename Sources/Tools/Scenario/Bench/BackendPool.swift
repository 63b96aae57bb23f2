import EventLoop

/// Connections to a measured server that stay, as a backend holds them: each carries one request
/// at a time, and a request for which none is free waits its turn. Loop-confined.
final class BackendPool {
    typealias Completion = (Result<HTTPCall.Answer, ScenarioError>) -> Void

    private let loop: Loop
    private let ports: [UInt16]
    private var dialled = 0
    private let dialect: BackendDialect
    private let limit: Int
    private var free: [BackendChannel] = []
    private var all: [ObjectIdentifier: BackendChannel] = [:]
    private var dialling: [ObjectIdentifier: Dialing] = [:]
    /// Bounded by who sends: a closed loop by its window, an open one by its schedule.
    private var waiting: [(bytes: [UInt8], completion: Completion)] = []
    private var firstWaiting = 0
    private var isClosed = false
    private var opened: (count: Int, then: () -> Void)?

    /// - Parameters:
    ///   - ports: of each node one, which connections go to in turn; never none.
    ///   - limit: connections at most.
    init(loop: Loop, ports: [UInt16], dialect: BackendDialect = .http, limit: Int) {
        precondition(!ports.isEmpty, "a pool without a server")
        self.loop = loop
        self.ports = ports
        self.dialect = dialect
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
        let port = ports[dialled % ports.count]
        dialled += 1
        let dialing = EventLoop.Stream.connect(loop: loop, host: "127.0.0.1", port: port) {
            [weak self] result in
            guard let self, !self.isClosed else {
                if case .success(let stream) = result { stream.close() }
                return
            }
            if let key { self.dialling[key] = nil }
            switch result {
            case .success(let stream):
                let channel = BackendChannel(stream, self.dialect)
                channel.onFree = { [weak self] in self?.becameFree($0) }
                channel.onEnded = { [weak self] in self?.ended($0) }
                self.all[ObjectIdentifier(channel)] = channel
                guard let greeting = self.dialect.greeting else {
                    self.becameFree(channel)
                    break
                }
                channel.onFree = nil
                channel.send(greeting) { [weak self, weak channel] in
                    self?.greeted(channel, $0)
                }
                return
            case .failure(let error): self.failNext("\(error)")
            }
            self.countDown()
        }
        key = ObjectIdentifier(dialing)
        dialling[ObjectIdentifier(dialing)] = dialing
    }

    private func greeted(
        _ channel: BackendChannel?, _ result: Result<HTTPCall.Answer, ScenarioError>
    ) {
        switch result {
        case .success(let answer) where answer.status < 300:
            guard let channel else { break }
            channel.onFree = { [weak self] in self?.becameFree($0) }
            becameFree(channel)
        case .success(let answer): failNext("the greeting was refused: \(answer.body)")
        case .failure(let error): failNext("\(error)")
        }
        countDown()
    }

    private func countDown() {
        guard let (count, then) = opened else { return }
        opened = count > 1 ? (count - 1, then) : nil
        if count <= 1 { then() }
    }

    private func becameFree(_ channel: BackendChannel) {
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
    private func ended(_ channel: BackendChannel) {
        all[ObjectIdentifier(channel)] = nil
        free.removeAll { $0 === channel }
        if firstWaiting < waiting.count { dial() }
    }

    private func failNext(_ why: String) {
        guard let next = takeWaiting() else { return }
        next.completion(.failure(ScenarioError("the server at \(ports): \(why)")))
    }
}

/// One connection of the pool.
final class BackendChannel {
    var onFree: ((BackendChannel) -> Void)?
    var onEnded: ((BackendChannel) -> Void)?
    private let stream: EventLoop.Stream
    private let dialect: BackendDialect
    private var received: [UInt8] = []
    private var completion: BackendPool.Completion?

    init(_ stream: EventLoop.Stream, _ dialect: BackendDialect) {
        self.stream = stream
        self.dialect = dialect
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

    func send(_ bytes: [UInt8], _ completion: @escaping BackendPool.Completion) {
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
        waiting?(.failure(ScenarioError("a connection to the server: \(why)")))
    }

    private func parse() {
        guard received.count <= HTTPCall.answerBytesMax else {
            return end("the answer is too long")
        }
        do throws(ScenarioError) {
            guard let (answer, bytes) = try dialect.answer(received) else { return }
            received.removeFirst(bytes)
            let waiting = completion
            completion = nil
            onFree?(self)
            waiting?(.success(answer))
        } catch {
            end("\(error)")
        }
    }
}
