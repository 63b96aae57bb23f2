import CNGHTTP2

/// What a server advertises, and what it accepts.
public struct HTTP2ServerSettings: Sendable, Equatable {
    /// Requests at once. Streams beyond it are refused until the client has acknowledged the
    /// limit; from then on they are a violation that ends the connection.
    public var maximumConcurrentStreams: UInt32 = 100
    /// Bytes of the table for the requests' header fields (SETTINGS_HEADER_TABLE_SIZE).
    public var headerTableBytes: UInt32 = 4096
    /// Bytes of a request's header fields as RFC 9113 6.5.2 counts them.
    public var maximumHeaderListBytes = 16 * 1024
    /// Bytes of a request body.
    public var maximumBodyBytes = 64 * 1024

    public init() {}
}

/// What has happened on a server's connection, in order.
public enum HTTP2ServerEvent: Sendable, Equatable {
    /// A limit of the settings.
    public enum Limit: Sendable {
        case headerList
        case body
    }

    /// A whole request, pseudo-header fields first; trailers are not reported.
    case request(stream: HTTP2StreamID, headers: [HTTP2ReceivedHeader], body: [UInt8])
    /// A request that exceeds a limit; the rest of it is thrown away. It may be answered or reset
    /// like any other. `headers` are those within the limit.
    case requestTooLarge(stream: HTTP2StreamID, headers: [HTTP2ReceivedHeader], limit: Limit)
    /// A stream above the advertised limit, opened before the client acknowledged the limit, was
    /// answered with REFUSED_STREAM.
    case refused(stream: HTTP2StreamID)
    /// The stream is over, for whatever reason; nothing can be sent on it.
    case closed(stream: HTTP2StreamID, code: HTTP2ErrorCode)
    /// The client opens no more streams, or the connection broke.
    case goAway(lastStream: HTTP2StreamID, code: HTTP2ErrorCode, debugData: [UInt8])
    /// The client knows the oldest SETTINGS it had not acknowledged.
    case settingsAcknowledged
    /// A PRIORITY frame, or a HEADERS frame with a priority: deprecated (RFC 9113 5.3.2).
    case priorityFrameSeen(stream: HTTP2StreamID)
    /// The client has sent a PING, which is answered by itself.
    case ping(opaque: UInt64)
    /// A frame of the client broke the protocol. Its stream is reset, or the output ends with a
    /// GOAWAY and `isFinished` follows.
    case violation(text: String)
}

/// The server side of an HTTP/2 connection: bytes in, events and bytes out. It has no socket and
/// no clock, and belongs to one thread.
///
/// After every call the owner sends what `takeOutput` gives, then looks at `takeEvents`: streams
/// close when the last of their bytes has been taken. When `isFinished` is true the connection is
/// to be closed. The library ends the connection of a client that floods with PING, SETTINGS,
/// resets or CONTINUATION frames.
public final class HTTP2ServerEngine {
    private final class Stream {
        var headers: [HTTP2ReceivedHeader] = []
        var headerBytes = 0
        var headersAreComplete = false
        var body: [UInt8] = []
        /// The request event was given, or the one that it is too large.
        var isReported = false
        var requestHasEnded = false
        var answer: OutgoingBody?
    }

    /// Streams open now.
    public var openStreams: Int { streams.count }
    /// Whether `takeOutput` would give bytes.
    public var wantsOutput: Bool { session.wantsOutput }
    /// Whether the connection is over and to be closed.
    public var isFinished: Bool { session.isFinished }

    private let settings: HTTP2ServerSettings
    private let session: Session
    private var streams: [HTTP2StreamID: Stream] = [:]
    private var events: [HTTP2ServerEvent] = []
    private var tableBytes = 0

    /// Queues the first SETTINGS.
    ///
    /// - Throws: `connection` when memory is out.
    public init(settings: HTTP2ServerSettings = HTTP2ServerSettings()) throws(HTTP2Error) {
        self.settings = settings
        session = try Session(.server)
        session.delegate = self
        try session.submitSettings([
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, settings.maximumConcurrentStreams),
            (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.headerTableBytes),
            (
                NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                UInt32(clamping: settings.maximumHeaderListBytes)
            ),
        ])
    }

    /// Takes bytes from the client and returns what they mean.
    ///
    /// - Throws: `connection`; also on every later call. Events up to then are in `takeEvents()`.
    public func received(
        _ bytes: UnsafeRawBufferPointer
    ) throws(HTTP2Error) -> [HTTP2ServerEvent] {
        try session.receive(bytes)
        return takeEvents()
    }

    /// Events that arose outside `received`: streams closed by what `takeOutput` gave.
    public func takeEvents() -> [HTTP2ServerEvent] {
        defer { events = [] }
        return events
    }

    /// The next bytes for the client, of as many frames as fit; empty when there are none.
    public func takeOutput(maximumBytes: Int) -> [UInt8] {
        session.takeOutput(maximumBytes)
    }

    /// Answers a request. An answer to a request that has not ended ends it (RFC 9113 8.1).
    ///
    /// - Parameter headers: without `:status`.
    /// - Returns: false when the stream is closed, or has had its answer.
    /// - Throws: `invalidHeader`, `headersTooLarge`, `connection`. Nothing is sent then.
    @discardableResult
    public func respond(
        _ stream: HTTP2StreamID, status: Int, headers: [HTTP2Header], body: [UInt8]
    ) throws(HTTP2Error) -> Bool {
        precondition((200...599).contains(status), "not a final status: \(status)")
        guard let open = streams[stream], open.answer == nil else { return false }
        let handle = session.handle
        let all = [HTTP2Header(":status", String(status))] + headers
        _ = try session.withFields(all) { fields, count in
            var source = Session.bodySource
            return body.isEmpty
                ? nghttp2_submit_response(handle, stream, fields, count, nil)
                : nghttp2_submit_response(handle, stream, fields, count, &source)
        }
        open.answer = OutgoingBody(body)
        return true
    }

    /// Ends a stream without an answer. A stream that is closed already is ignored.
    public func resetStream(_ stream: HTTP2StreamID, code: HTTP2ErrorCode) {
        if streams[stream] != nil { session.reset(stream, code) }
    }

    /// Advertises another limit. Until the client has acknowledged it, streams above it are
    /// refused; those already open go on.
    public func setMaximumConcurrentStreams(_ limit: UInt32) throws(HTTP2Error) {
        try session.submitSettings([(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limit)])
    }

    /// Tells the client to open no more streams. Those above `lastStream` are closed without an
    /// answer; the others go on, and `isFinished` is true when the last has ended.
    ///
    /// - Parameter lastStream: nil for the highest the client has opened.
    /// - Throws: `invalidArgument` for a stream the client cannot have opened or more than 16 KiB
    ///   of debug data, `connection`.
    public func goAway(
        lastStream: HTTP2StreamID? = nil, code: HTTP2ErrorCode, debugData: [UInt8] = []
    ) throws(HTTP2Error) {
        let last = lastStream ?? nghttp2_session_get_last_proc_stream_id(session.handle)
        try session.goAway(lastStream: last, code: code, debugData: debugData)
    }
}

extension HTTP2ServerEngine: SessionDelegate {
    func headersBegan(_ id: HTTP2StreamID, category: nghttp2_headers_category) {
        tableBytes = nghttp2_session_get_hd_inflate_dynamic_table_size(session.handle)
        if category == NGHTTP2_HCAT_REQUEST { streams[id] = Stream() }
    }

    func headerArrived(_ field: ArrivedField, on id: HTTP2StreamID) {
        defer { tableBytes = field.tableBytes }
        guard let stream = streams[id], !stream.headersAreComplete else { return }
        stream.headerBytes += field.size
        // Beyond the limit the block is still decoded, for the table, but nothing is kept.
        if stream.headerBytes <= settings.maximumHeaderListBytes {
            stream.headers.append(
                field.header(
                    tableBytesBefore: tableBytes, isFirst: stream.headers.isEmpty))
        }
    }

    func dataArrived(_ part: UnsafeRawBufferPointer, on id: HTTP2StreamID) {
        guard let stream = streams[id], !stream.isReported else { return }
        if part.count > settings.maximumBodyBytes - stream.body.count {
            report(tooLarge: stream, id, .body)
        } else {
            stream.body.append(contentsOf: part)
        }
    }

    private func report(
        tooLarge stream: Stream, _ id: HTTP2StreamID, _ limit: HTTP2ServerEvent.Limit
    ) {
        stream.isReported = true
        events.append(.requestTooLarge(stream: id, headers: stream.headers, limit: limit))
        stream.headers = []
        stream.body = []
    }

    func frameArrived(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = frame.pointee.hd
        let isAnswer = head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue:
            if head.flags & UInt8(NGHTTP2_FLAG_PRIORITY.rawValue) != 0 {
                events.append(.priorityFrameSeen(stream: head.stream_id))
            }
            headersEnded(head)
        case NGHTTP2_DATA.rawValue:
            requestMayHaveEnded(head)
        case NGHTTP2_PRIORITY.rawValue:
            events.append(.priorityFrameSeen(stream: head.stream_id))
        case NGHTTP2_SETTINGS.rawValue where isAnswer:
            events.append(.settingsAcknowledged)
        case NGHTTP2_PING.rawValue where !isAnswer:
            let opaque = withUnsafeBytes(of: frame.pointee.ping.opaque_data) {
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self))
            }
            events.append(.ping(opaque: opaque))
        case NGHTTP2_GOAWAY.rawValue:
            let goAway = frame.pointee.goaway
            let debug = UnsafeBufferPointer(
                start: goAway.opaque_data, count: goAway.opaque_data_len)
            events.append(
                .goAway(
                    lastStream: goAway.last_stream_id,
                    code: HTTP2ErrorCode(rawValue: goAway.error_code), debugData: Array(debug)))
        default:
            break
        }
    }

    private func headersEnded(_ head: nghttp2_frame_hd) {
        if let stream = streams[head.stream_id], !stream.headersAreComplete {
            stream.headersAreComplete = true
            if stream.headerBytes > settings.maximumHeaderListBytes {
                report(tooLarge: stream, head.stream_id, .headerList)
            }
        }
        requestMayHaveEnded(head)
    }

    private func requestMayHaveEnded(_ head: nghttp2_frame_hd) {
        let ended = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        guard ended, let stream = streams[head.stream_id] else { return }
        stream.requestHasEnded = true
        if stream.isReported { return }
        stream.isReported = true
        events.append(
            .request(stream: head.stream_id, headers: stream.headers, body: stream.body))
        stream.headers = []
        stream.body = []
    }

    func frameSent(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = frame.pointee.hd
        let carriesAnswer =
            UInt32(head.type) == NGHTTP2_HEADERS.rawValue
            || UInt32(head.type) == NGHTTP2_DATA.rawValue
        let ended = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        guard carriesAnswer, ended, let stream = streams[head.stream_id] else { return }
        // Nobody needs the rest of the request (RFC 9113 8.1).
        if !stream.requestHasEnded { session.reset(head.stream_id, .noError) }
    }

    func frameWasInvalid(_ frame: UnsafePointer<nghttp2_frame>, code: Int32) {
        if code == NGHTTP2_ERR_REFUSED_STREAM.rawValue {
            events.append(.refused(stream: frame.pointee.hd.stream_id))
        } else {
            let text = nghttp2_strerror(code).map { String(cString: $0) } ?? ""
            events.append(.violation(text: text))
        }
    }

    func streamClosed(_ id: HTTP2StreamID, code: HTTP2ErrorCode) {
        guard streams.removeValue(forKey: id) != nil else { return }
        events.append(.closed(stream: id, code: code))
    }

    func bodyPart(
        of stream: HTTP2StreamID, into buffer: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isLast: Bool)? {
        streams[stream]?.answer?.next(buffer)
    }
}
