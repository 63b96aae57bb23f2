import CMicroHTTPD
import Glibc

/// An HTTP/1.1 server over libmicrohttpd, driven by the event loop of its owner.
///
/// Confined to the thread that made it. The owner watches `descriptor` for readability and calls
/// `run()` whenever it is readable; deadlines and late answers make it readable too, so no timer is
/// needed. Watching must end before `stop()`, which closes it.
///
/// Malformed requests are answered with 400. Only a first line without any space, which is not
/// HTTP, is closed without an answer, and to a `Content-Length` that is no number the library
/// writes the head of its own 400 twice before it closes: it asks nobody about either. The handler
/// is called in `run()` with whole requests only. A client that goes away in the middle of a
/// request may be noticed at the deadline only: libmicrohttpd 0.9.75 misses an end of stream that
/// arrives together with the last bytes.
public final class HTTPServer {
    /// The port the server listens on.
    public let port: UInt16
    /// Readable when `run()` has something to do. Owned by the server.
    public let descriptor: Int32
    /// Connections open now.
    public var openConnections: Int { connections.count }
    /// Called where `run()` is due for answers that came late, once until it runs: an owner that
    /// sets it spares each of them a turn through the kernel. `nil`: `descriptor` becomes readable
    /// instead.
    public var onAnswers: (() -> Void)?

    private let limits: HTTPLimits
    /// The library's.
    private let listening: Int32
    private let handler: (HTTPRequest, Responder) -> Void
    private let refusal: (HTTPRefusal) -> HTTPResponse
    private let thread = pthread_self()
    /// Signalled, unless the owner is called, when a run is needed for which the library's own
    /// epoll set has no event: a late answer (see below `resume`), or work left over by the last
    /// run.
    private let wakeDescriptor: Int32
    private var isSignalled = false
    /// The owner was called, and has not run yet.
    private var isOwnerCalled = false
    private let timerDescriptor: Int32
    /// Nil after `stop()`.
    private var daemon: OpaquePointer?
    /// `nil`: it listens at a port.
    private var bound: SocketPath?
    private var connections: [OpaquePointer: Connection] = [:]
    /// Not later than the earliest deadline, nor, while all places are taken, than the end of
    /// anybody's patience.
    private var sweepAt: UInt64?
    private var armedFor: UInt64?
    private var isRunning = false
    private var needsAnotherPass = false
    private var stopRequested = false

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - host: a numeric address or a name of this machine; of several addresses the first.
    ///   - port: 0 takes a free one.
    ///   - refusal: the answer to a request that the handler never sees; the connection is closed
    ///     after it. A first line longer than the buffers is answered by the library in its words.
    ///   - handler: called in `run()`, once per request; it answers through the responder.
    public convenience init(
        host: String, port: UInt16, limits: HTTPLimits = HTTPLimits(),
        refusal: @escaping (HTTPRefusal) -> HTTPResponse = \.plain,
        handler: @escaping (HTTPRequest, Responder) -> Void
    ) throws(HTTPServerError) {
        try limits.check()
        try Self.load()
        let listening = try ListeningSocket.open(host: host, port: port)
        try self.init(
            listening: listening.descriptor, port: listening.port, limits: limits,
            refusal: refusal, handler: handler)
    }

    /// Starts to listen on a Unix-domain socket at `path` that only this user may connect to.
    /// What a dead server left there is removed first; any other file, and a socket that answers,
    /// is left as it is, and the start fails. The path goes with the server.
    public convenience init(
        path: String, limits: HTTPLimits = HTTPLimits(),
        refusal: @escaping (HTTPRefusal) -> HTTPResponse = \.plain,
        handler: @escaping (HTTPRequest, Responder) -> Void
    ) throws(HTTPServerError) {
        try limits.check()
        try Self.load()
        let listening = try ListeningSocket.open(path: path)
        do throws(HTTPServerError) {
            try self.init(
                listening: listening.descriptor, port: 0, limits: limits, refusal: refusal,
                handler: handler)
        } catch {
            listening.bound.remove()
            throw error
        }
        bound = listening.bound
    }

    /// Listens on a TCP socket that somebody else holds, too, and that already listens: what is
    /// closed here is this process's share of it.
    public convenience init(
        inherited: Int32, limits: HTTPLimits = HTTPLimits(),
        refusal: @escaping (HTTPRefusal) -> HTTPResponse = \.plain,
        handler: @escaping (HTTPRequest, Responder) -> Void
    ) throws(HTTPServerError) {
        try limits.check()
        try Self.load()
        let listening = try ListeningSocket.share(inherited)
        try self.init(
            listening: listening.descriptor, port: listening.port, limits: limits,
            refusal: refusal, handler: handler)
    }

    private static func load() throws(HTTPServerError) {
        if let problem = rouse_mhd_load() { throw .missing(String(cString: problem)) }
    }

    private init(
        listening: Int32, port: UInt16, limits: HTTPLimits,
        refusal: @escaping (HTTPRefusal) -> HTTPResponse,
        handler: @escaping (HTTPRequest, Responder) -> Void
    ) throws(HTTPServerError) {
        self.limits = limits
        self.listening = listening
        self.refusal = refusal
        self.handler = handler
        self.port = port
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        timerDescriptor = timerfd_create(
            CLOCK_MONOTONIC, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
        guard descriptor >= 0, wakeDescriptor >= 0, timerDescriptor >= 0 else {
            let code = errno
            close(listening)
            closeDescriptors()
            throw .system(call: "epoll_create1, eventfd or timerfd_create", code: code)
        }
        daemon = rouse_mhd_start(
            listening, UInt32(limits.connections), limits.connectionMemory,
            Unmanaged.passUnretained(self).toOpaque(), onAccess, onRequestLine, onUnescape,
            onCompleted, onConnection)
        guard let daemon else {
            // Whether the library has closed the listening socket depends on where it failed.
            closeDescriptors()
            throw .library
        }
        for watched in [rouse_mhd_epoll_fd(daemon), wakeDescriptor, timerDescriptor] {
            var event = epoll_event()
            event.events = EPOLLIN.rawValue
            guard epoll_ctl(descriptor, EPOLL_CTL_ADD, watched, &event) == 0 else {
                let code = errno
                finishStop()
                throw .system(call: "epoll_ctl", code: code)
            }
        }
    }

    deinit {
        finishStop()
    }

    /// Receives, calls the handler, sends, and closes what is over its deadline. Never blocks.
    public func run() {
        checkThread()
        if isRunning {
            needsAnotherPass = true
            return
        }
        guard let daemon else { return }
        isRunning = true
        isOwnerCalled = false
        if isSignalled {
            isSignalled = false
            drain(wakeDescriptor)
        }
        if let armedFor, armedFor <= now { drain(timerDescriptor) }
        closeOverdue()
        // Passes beyond the first serve requests that were answered meanwhile and connections that
        // were waiting for a place; bounded, so that the loop's other work gets its turn.
        var passes = 0
        repeat {
            needsAnotherPass = false
            _ = MHD_run(daemon)
            var left: CUnsignedLongLong = 0
            if MHD_get_timeout(daemon, &left) == .YES, left == 0 { needsAnotherPass = true }
            passes += 1
        } while needsAnotherPass && !stopRequested && passes < 16
        if needsAnotherPass { wake() }
        armTimer()
        isRunning = false
        if stopRequested { finishStop() }
    }

    /// Closes every connection, answered or not, and the listening socket, whose path is removed
    /// unless another server has put its own there. Responders that are still held may be answered;
    /// nothing happens then.
    public func stop() {
        checkThread()
        if isRunning {
            stopRequested = true
        } else {
            finishStop()
        }
    }

    private func finishStop() {
        guard let daemon else { return }
        self.daemon = nil
        for (handle, connection) in connections {
            guard let exchange = connection.exchange, exchange.onLateAnswer != nil else { continue }
            exchange.onLateAnswer = nil
            // The library aborts the process when it is stopped with a suspended connection.
            MHD_resume_connection(handle)
        }
        MHD_stop_daemon(daemon)
        bound?.remove()
        let left = connections.values
        connections = [:]
        for connection in left { connection.endExchange() }
        closeDescriptors()
    }

    private func closeDescriptors() {
        for descriptor in [descriptor, wakeDescriptor, timerDescriptor] where descriptor >= 0 {
            close(descriptor)
        }
    }

    private func checkThread() {
        precondition(
            pthread_equal(thread, pthread_self()) != 0, "an HTTPServer was used on another thread")
    }
}

// MARK: Time

extension HTTPServer {
    private var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
    }

    /// - Parameter seconds: `nil`: those of a whole request.
    private func newDeadline(seconds: Int? = nil) -> UInt64 {
        let deadline = now + UInt64(seconds ?? limits.requestDeadlineSeconds) * 1000
        sweepAt = min(sweepAt ?? deadline, deadline)
        return deadline
    }

    private var isFull: Bool { connections.count >= limits.connections }

    /// When a connection is to give its place up, if all are taken.
    private func patienceEnd(_ connection: Connection, now: UInt64) -> UInt64 {
        let since =
            connection.isAwaited ? connection.awaitedSince : connection.standsStill(now: now)
        return since + UInt64(limits.patienceMilliseconds)
    }

    /// While all places are taken, one that has just begun to be held idly is looked at in time.
    private func sweepIfFull() {
        guard isFull else { return }
        let sweep = now + UInt64(limits.patienceMilliseconds)
        sweepAt = min(sweepAt ?? sweep, sweep)
    }

    private func closeOverdue() {
        let now = now
        guard let due = sweepAt, due <= now else { return }
        sweepAt = nil
        // A slow reader may be an honest one: it goes only for somebody's sake.
        let isWaitedFor = isFull && ListeningSocket.isWaitedFor(listening)
        for connection in connections.values {
            guard var deadline = connection.deadline else { continue }
            if isFull {
                let end = patienceEnd(connection, now: now)
                let isSpared = connection.isAnswering && !isWaitedFor
                deadline = min(deadline, isSpared ? max(end, now + 1) : end)
            }
            if deadline <= now {
                // The library sees the end of the stream and closes the connection itself.
                ListeningSocket.end(
                    connection.descriptor, dropsUnsent: connection.isAnswering)
                connection.deadline = nil
            } else {
                // At most ten sweeps per second, however the deadlines are spread.
                let next = max(deadline, now + 100)
                sweepAt = min(sweepAt ?? next, next)
            }
        }
    }

    private func armTimer() {
        guard sweepAt != armedFor else { return }
        armedFor = sweepAt
        var time = itimerspec()
        // All zero disarms.
        time.it_value.tv_sec = Int((sweepAt ?? 0) / 1000)
        time.it_value.tv_nsec = Int((sweepAt ?? 0) % 1000) * 1_000_000
        timerfd_settime(timerDescriptor, Int32(TFD_TIMER_ABSTIME), &time, nil)
    }

    private func wake() {
        if isSignalled || isOwnerCalled { return }
        if let onAnswers {
            isOwnerCalled = true
            return onAnswers()
        }
        isSignalled = true
        var one: UInt64 = 1
        write(wakeDescriptor, &one, 8)
    }

    private func drain(_ counter: Int32) {
        var count: UInt64 = 0
        read(counter, &count, 8)
    }
}

// MARK: What the library reports

extension HTTPServer {
    fileprivate func connectionStarted(_ handle: OpaquePointer) {
        let descriptor = rouse_mhd_connection_fd(handle)
        let seconds = min(limits.headDeadlineSeconds, limits.requestDeadlineSeconds)
        connections[handle] = Connection(
            descriptor: descriptor, peerAddress: ListeningSocket.peerAddress(of: descriptor),
            now: now, deadline: newDeadline(seconds: seconds))
        sweepIfFull()
    }

    fileprivate func connectionClosed(_ handle: OpaquePointer) {
        connections.removeValue(forKey: handle)?.endExchange()
        // The library watches its listening socket again only in the next pass.
        needsAnotherPass = true
    }

    fileprivate func requestLineArrived(_ handle: OpaquePointer, target: [UInt8]) {
        connections[handle]?.exchange = Exchange(target: target)
    }

    fileprivate func requestCompleted(_ handle: OpaquePointer) {
        guard let connection = connections[handle] else { return }
        connection.endExchange()
        connection.awaitedSince = now
        connection.deadline = newDeadline()
        sweepIfFull()
    }

    /// The library calls this once when the header lines are here, then for each part of the body,
    /// then once more, and again whenever the connection is resumed.
    fileprivate func requestAdvanced(
        _ handle: OpaquePointer, method: UnsafePointer<CChar>?, version: UnsafePointer<CChar>?,
        part: UnsafeRawBufferPointer
    ) -> MHD_Result {
        guard let connection = connections[handle], let exchange = connection.exchange else {
            return .NO
        }
        switch exchange.phase {
        case .head:
            connection.deadline = newDeadline()
            let verdict = RequestHead.judge(
                handle, method: method, version: version.map { String(cString: $0) } ?? "",
                target: exchange.target, peerAddress: connection.peerAddress, limits: limits)
            switch verdict {
            case .accepted(let request): exchange.phase = .body(request)
            case .refused(let reason):
                return queue(closing(reason), handle, connection, exchange)
            case .refusedAfterBody(let reason):
                exchange.phase = .discarding(closing(reason), bytes: 0)
            }
        case .body(var request):
            if part.isEmpty { return deliver(request, handle, connection, exchange) }
            if part.count > limits.bodyBytes - request.body.count {
                let bytes = request.body.count + part.count
                let refusal = HTTPRefusal.bodyTooLarge.of(request.headers)
                exchange.phase = .discarding(closing(refusal), bytes: bytes)
            } else {
                // Without another reference to the array, or each part would copy all before it.
                exchange.phase = .head
                request.body.append(contentsOf: part)
                exchange.phase = .body(request)
            }
        case .discarding(let answer, let bytes):
            if part.isEmpty { return queue(answer, handle, connection, exchange) }
            let discarded = bytes + part.count
            if discarded > limits.discardedBodyBytes { return .NO }
            exchange.phase = .discarding(answer, bytes: discarded)
        case .handling:
            guard let answer = exchange.takeAnswer() else { return .NO }
            return queue(answer, handle, connection, exchange)
        case .answering:
            break
        }
        return .YES
    }

    private func closing(_ reason: HTTPRefusal) -> HTTPResponse { refusal(reason).closing }

    private func deliver(
        _ request: HTTPRequest, _ handle: OpaquePointer, _ connection: Connection,
        _ exchange: Exchange
    ) -> MHD_Result {
        exchange.phase = .handling
        connection.deadline = nil
        handler(request, Responder(exchange))
        if let answer = exchange.takeAnswer() {
            return queue(answer, handle, connection, exchange)
        }
        MHD_suspend_connection(handle)
        exchange.onLateAnswer = { [unowned self] in resume(handle) }
        return .YES
    }

    /// The connection is suspended: this is the only caller, through `onLateAnswer`, which is
    /// taken back when the connection or the server goes.
    private func resume(_ handle: OpaquePointer) {
        checkThread()
        MHD_resume_connection(handle)
        // Without a thread of its own the library does not notice until its next run.
        needsAnotherPass = true
        if !isRunning { wake() }
    }

    private func queue(
        _ answer: HTTPResponse, _ handle: OpaquePointer, _ connection: Connection,
        _ exchange: Exchange
    ) -> MHD_Result {
        exchange.phase = .answering
        connection.deadline = newDeadline()
        sweepIfFull()
        // Nor does whoever asks again and again keep a place that somebody waits for.
        let answer =
            isFull && ListeningSocket.isWaitedFor(listening) ? answer.closing : answer
        guard
            let response = libraryResponse(answer, exchange)
                ?? libraryResponse(HTTPResponse(status: 500), exchange)
        else { return .NO }
        defer { MHD_destroy_response(response.handle) }
        return MHD_queue_response(handle, UInt32(response.status), response.handle)
    }

    private func libraryResponse(
        _ answer: HTTPResponse, _ exchange: Exchange
    ) -> (handle: OpaquePointer, status: Int)? {
        guard answer.isWritable, let created = libraryBody(answer.body, exchange) else {
            return nil
        }
        for (name, value) in answer.headers
        where MHD_add_response_header(created, name, value) == .NO {
            MHD_destroy_response(created)
            return nil
        }
        return (created, answer.status)
    }
}

extension HTTPServer {
    private func libraryBody(_ bytes: [UInt8], _ exchange: Exchange) -> OpaquePointer? {
        // Most answers are short, and copied at once.
        guard bytes.count > HTTPLimits.progressBytes else {
            return bytes.withUnsafeBytes { body in
                MHD_create_response_from_buffer(
                    body.count, UnsafeMutableRawPointer(mutating: body.baseAddress),
                    .RESPMEM_MUST_COPY)
            }
        }
        let body = SentBody(bytes)
        exchange.sending = body
        let held = Unmanaged.passRetained(body)
        let created = MHD_create_response_from_callback(
            UInt64(bytes.count), HTTPLimits.progressBytes, onBodyWanted, held.toOpaque(),
            onBodyDone)
        if created == nil { held.release() }
        return created
    }
}

// MARK: Callbacks

private func onBodyWanted(
    _ context: UnsafeMutableRawPointer?, _ position: UInt64, _ room: UnsafeMutablePointer<CChar>?,
    _ roomBytes: Int
) -> Int {
    // -1 is the library's end of a stream.
    guard let context, let room else { return -1 }
    let body = Unmanaged<SentBody>.fromOpaque(context).takeUnretainedValue()
    let count = body.hand(
        from: Int(position), to: UnsafeMutableRawBufferPointer(start: room, count: roomBytes))
    return count > 0 ? count : -1
}

private func onBodyDone(_ context: UnsafeMutableRawPointer?) {
    guard let context else { return }
    Unmanaged<SentBody>.fromOpaque(context).release()
}

private func server(_ context: UnsafeMutableRawPointer?) -> HTTPServer? {
    context.map { Unmanaged<HTTPServer>.fromOpaque($0).takeUnretainedValue() }
}

private func onConnection(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ perConnection: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ event: MHD_ConnectionNotificationCode
) {
    guard let server = server(context), let handle else { return }
    if event == .CONNECTION_NOTIFY_STARTED {
        server.connectionStarted(handle)
    } else {
        server.connectionClosed(handle)
    }
}

private func onRequestLine(
    _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let server = server(context), let handle else { return nil }
    let bytes = UnsafeRawBufferPointer(start: target, count: target.map { strlen($0) } ?? 0)
    server.requestLineArrived(handle, target: Array(bytes))
    return nil
}

/// Decoding is done here, by `RequestTarget`, on the bytes as sent.
private func onUnescape(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ text: UnsafeMutablePointer<CChar>?
) -> Int {
    text.map { strlen($0) } ?? 0
}

private func onAccess(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?, _ path: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?,
    _ part: UnsafePointer<CChar>?, _ partBytes: UnsafeMutablePointer<Int>?,
    _ perRequest: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let server = server(context), let handle, let partBytes else { return .NO }
    let bytes = UnsafeRawBufferPointer(start: part, count: part == nil ? 0 : partBytes.pointee)
    // All of the part is taken, or the connection is closed.
    partBytes.pointee = 0
    return server.requestAdvanced(handle, method: method, version: version, part: bytes)
}

private func onCompleted(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ perRequest: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ reason: MHD_RequestTerminationCode
) {
    guard let server = server(context), let handle else { return }
    server.requestCompleted(handle)
}
