import CCurl
import Glibc

/// An HTTP client over libcurl's multi-socket interface, driven by the event loop of its owner.
///
/// Confined to the thread that made it. The owner watches `descriptor` for readability and calls
/// `run()` whenever it is readable; timers make it readable too. Watching must end before
/// `stop()`, which closes it. Redirects are not followed, proxies of the environment are not
/// used, no cookie and no `.netrc` is looked at.
public final class HTTPClient {
    /// Readable when `run()` has something to do. Owned by the client.
    public let descriptor: Int32
    /// Requests without an answer yet.
    public var open: Int { transfers.count }

    private let options: HTTPClientOptions
    private let timerDescriptor: Int32
    private let thread = pthread_self()
    /// Nil after `stop()`.
    private var multi: UnsafeMutableRawPointer?
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
    /// Descriptors of the library in our epoll set.
    private var watched: Set<Int32> = []
    private var isRunning = false

    private static let started: CURLcode = rouse_curl_start()

    /// - Throws: the process has no descriptor or no memory left, or the system no libcurl.
    public init(_ options: HTTPClientOptions) throws(HTTPClientError) {
        if let problem = rouse_curl_load() { throw .library(String(cString: problem)) }
        self.options = options
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        timerDescriptor = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = timerDescriptor
        guard descriptor >= 0, timerDescriptor >= 0,
            epoll_ctl(descriptor, EPOLL_CTL_ADD, timerDescriptor, &event) == 0
        else {
            let code = errno
            closeDescriptors()
            throw .system(call: "epoll_create1 or timerfd_create", code: code)
        }
        guard Self.started == CURLE_OK, let multi = curl_multi_init() else {
            closeDescriptors()
            throw .system(call: "curl_multi_init", code: 0)
        }
        self.multi = multi
        let owner = Unmanaged.passUnretained(self).toOpaque()
        rouse_curl_multi_set_socket(multi, socketChanged)
        rouse_curl_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, owner)
        rouse_curl_multi_set_timer(multi, timerChanged)
        rouse_curl_multi_set_pointer(multi, CURLMOPT_TIMERDATA, owner)
        rouse_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, options.idleConnections)
    }

    deinit { finishStop() }

    /// Sends a request. `done` is called once, in `run()`; not at all if the client is stopped
    /// first.
    public func post(_ post: HTTPPost, done: @escaping (HTTPPostResult) -> Void) {
        checkThread()
        let transfer = Transfer(post, options, done)
        guard let multi, let transfer,
            curl_multi_add_handle(multi, transfer.easy) == CURLM_OK
        else {
            // Told later, like every answer.
            unsent.append(done)
            setTimer(milliseconds: 0)
            return
        }
        transfers[transfer.easy] = transfer
    }

    private var unsent: [(HTTPPostResult) -> Void] = []

    /// Connects, sends, receives, and calls `done` of what is over. Never blocks.
    public func run() {
        checkThread()
        guard let multi, !isRunning else { return }
        isRunning = true
        var running: Int32 = 0
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        let count = Int(epoll_wait(descriptor, &events, Int32(events.count), 0))
        for event in events.prefix(max(0, count)) {
            if event.data.fd == timerDescriptor {
                var expirations: UInt64 = 0
                _ = read(timerDescriptor, &expirations, 8)
                curl_multi_socket_action(multi, rouse_curl_socket_bad(), 0, &running)
                continue
            }
            var bits: Int32 = 0
            if event.events & EPOLLIN.rawValue != 0 { bits |= CURL_CSELECT_IN }
            if event.events & EPOLLOUT.rawValue != 0 { bits |= CURL_CSELECT_OUT }
            if event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 {
                bits |= CURL_CSELECT_ERR
            }
            curl_multi_socket_action(multi, event.data.fd, bits, &running)
        }
        finishTransfers(multi)
        isRunning = false
    }

    private func finishTransfers(_ multi: UnsafeMutableRawPointer) {
        let refused = unsent
        unsent = []
        for done in refused { done(.failed(.url)) }
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle
            else { continue }
            let code = rouse_curl_result(message)
            curl_multi_remove_handle(multi, easy)
            guard let transfer = transfers.removeValue(forKey: easy) else { continue }
            transfer.done(transfer.result(code))
        }
    }

    /// Ends every request without a call of its `done`, and closes every connection.
    public func stop() {
        checkThread()
        precondition(!isRunning, "a client is not stopped in one of its own callbacks")
        finishStop()
    }

    private func finishStop() {
        guard let multi else { return }
        for transfer in transfers.values { curl_multi_remove_handle(multi, transfer.easy) }
        transfers = [:]
        curl_multi_cleanup(multi)
        self.multi = nil
        closeDescriptors()
    }

    private func closeDescriptors() {
        for descriptor in [descriptor, timerDescriptor] where descriptor >= 0 {
            close(descriptor)
        }
    }

    private func checkThread() {
        precondition(
            pthread_equal(thread, pthread_self()) != 0, "an HTTPClient was used on another thread")
    }
}

// MARK: What the library asks for

extension HTTPClient {
    /// - Parameter milliseconds: -1: no timer.
    fileprivate func setTimer(milliseconds: Int) {
        var time = itimerspec()
        if milliseconds >= 0 {
            time.it_value.tv_sec = milliseconds / 1000
            // Zero would take the timer back.
            time.it_value.tv_nsec = max(1, milliseconds % 1000 * 1_000_000)
        }
        timerfd_settime(timerDescriptor, 0, &time, nil)
    }

    fileprivate func watch(_ socket: Int32, _ what: Int32) {
        guard what != CURL_POLL_REMOVE else {
            // It may be closed already, and is out of the set then.
            if watched.remove(socket) != nil {
                epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, nil)
            }
            return
        }
        var event = epoll_event()
        event.data.fd = socket
        if what == CURL_POLL_IN || what == CURL_POLL_INOUT { event.events |= EPOLLIN.rawValue }
        if what == CURL_POLL_OUT || what == CURL_POLL_INOUT { event.events |= EPOLLOUT.rawValue }
        let isKnown = !watched.insert(socket).inserted
        if isKnown, epoll_ctl(descriptor, EPOLL_CTL_MOD, socket, &event) == 0 { return }
        epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event)
    }
}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ socket: curl_socket_t, _ what: Int32,
    _ owner: UnsafeMutableRawPointer?, _ own: UnsafeMutableRawPointer?
) -> Int32 {
    guard let owner else { return 0 }
    Unmanaged<HTTPClient>.fromOpaque(owner).takeUnretainedValue().watch(socket, what)
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ owner: UnsafeMutableRawPointer?
) -> Int32 {
    guard let owner else { return 0 }
    Unmanaged<HTTPClient>.fromOpaque(owner).takeUnretainedValue()
        .setTimer(milliseconds: milliseconds)
    return 0
}
