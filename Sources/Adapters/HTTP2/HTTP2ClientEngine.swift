import CNGHTTP2

/// What a client advertises, and what it accepts.
public struct HTTP2ClientSettings: Sendable, Equatable {
    /// Bytes of the table for the responses' header fields (SETTINGS_HEADER_TABLE_SIZE).
    public var headerTableBytes: UInt32 = 4096
    /// Bytes of a response's header fields as RFC 9113 6.5.2 counts them; more resets the stream.
    public var maximumHeaderListBytes = 16 * 1024
    /// Bytes of a response body; more resets the stream.
    public var maximumBodyBytes = 64 * 1024
    /// Streams allowed before the server has told its limit. RFC 9113 6.5.2 lets it be unlimited;
    /// what the server does not want it refuses.
    public var assumedConcurrentStreams: UInt32 = 100

    public init() {}
}

/// What has happened on a client's connection, in order.
public enum HTTP2ClientEvent: Sendable, Equatable {
    /// The final response's head; interim responses (1xx) are not reported.
    case response(tag: UInt64, status: Int, headers: [HTTP2ReceivedHeader])
    /// A part of the response's body.
    case data(tag: UInt64, bytes: [UInt8])
    /// The response is complete; trailers are not reported. The tag's last event.
    case finished(tag: UInt64)
    /// The stream ended without a whole response. `refused`: the server did nothing with it, it is
    /// safe to send again. The tag's last event.
    case reset(tag: UInt64, code: HTTP2ErrorCode, refused: Bool)
    /// The response exceeded a limit of the settings; the stream is reset. The tag's last event.
    case responseTooLarge(tag: UInt64)
    /// The server's SETTINGS, at the start and at each change.
    case settings(maximumConcurrentStreams: UInt32)
    /// The server takes no new streams; those up to `lastStream` go on.
    case goAway(lastStream: HTTP2StreamID, code: HTTP2ErrorCode, debugData: [UInt8])
    /// Requests above the GOAWAY's last stream, in the order in which they were submitted: not
    /// processed, safe to send again on another connection (RFC 9113 6.8). Their last event.
    case unprocessed(tags: [UInt64])
    /// The server has answered a PING.
    case pingAnswered(opaque: UInt64)
}

/// The client side of an HTTP/2 connection: bytes in, events and bytes out. It has no socket and
/// no clock, and belongs to one thread.
///
/// After every call the owner sends what `takeOutput` gives. When `isFinished` is true the
/// connection is to be closed. Violations by the server are answered with a GOAWAY in the output,
/// after which `isFinished` is true and the open streams have had no last event: the owner treats
/// them as it treats a lost connection.
public final class HTTP2ClientEngine {
    private final class Stream {
        /// Nil once the tag has had its last event.
        var tag: UInt64?
        var body: OutgoingBody
        var isSent = false
        var headers: [HTTP2ReceivedHeader] = []
        var headerBytes = 0
        var hasResponse = false
        var bodyBytes = 0

        init(tag: UInt64, body: [UInt8]) {
            self.tag = tag
            self.body = OutgoingBody(body)
        }
    }

    /// The server's limit; nil until its SETTINGS have arrived.
    public private(set) var remoteMaximumConcurrentStreams: UInt32?
    /// Streams submitted and not closed.
    public var openStreams: Int { streams.count }
    /// Whether `takeOutput` would give bytes.
    public var wantsOutput: Bool { session.wantsOutput }
    /// Whether the connection is over and to be closed.
    public var isFinished: Bool { session.isFinished }

    private let settings: HTTP2ClientSettings
    private let session: Session
    private var streams: [HTTP2StreamID: Stream] = [:]
    private var events: [HTTP2ClientEvent] = []
    private var tableBytes = 0
    private var lastProcessedStream: HTTP2StreamID?
    private var isEnding = false

    /// Queues the connection preface.
    ///
    /// - Throws: `connection` when memory is out.
    public init(settings: HTTP2ClientSettings = HTTP2ClientSettings()) throws(HTTP2Error) {
        self.settings = settings
        session = try Session(.client(assumedConcurrentStreams: settings.assumedConcurrentStreams))
        session.delegate = self
        try session.submitSettings([
            (NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.headerTableBytes),
            (
                NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                UInt32(clamping: settings.maximumHeaderListBytes)
            ),
        ])
    }

    /// Takes bytes from the server and returns what they mean.
    ///
    /// - Throws: `connection`; also on every later call. Events up to then are in `takeEvents()`.
    public func received(
        _ bytes: UnsafeRawBufferPointer
    ) throws(HTTP2Error) -> [HTTP2ClientEvent] {
        try session.receive(bytes)
        return takeEvents()
    }

    /// Events that arose outside `received`, for example because a request could not be sent.
    public func takeEvents() -> [HTTP2ClientEvent] {
        defer { events = [] }
        return events
    }

    /// The next bytes for the server, of as many frames as fit; empty when there are none.
    public func takeOutput(maximumBytes: Int) -> [UInt8] {
        session.takeOutput(maximumBytes)
    }

    /// Sends a request.
    ///
    /// - Parameters:
    ///   - headers: with the pseudo-header fields `:method`, `:scheme`, `:authority` and `:path`.
    ///   - tag: the caller's name for the request in the events.
    /// - Throws: `streamsExhausted` at the server's limit, `connectionEnding`, `invalidHeader`,
    ///   `headersTooLarge`, `connection`. Nothing is sent then.
    @discardableResult
    public func submit(
        headers: [HTTP2Header], body: [UInt8], tag: UInt64
    ) throws(HTTP2Error) -> HTTP2StreamID {
        if let failure = session.failure { throw failure }
        if isEnding || nghttp2_session_check_request_allowed(session.handle) == 0 {
            throw .connectionEnding
        }
        let limit = remoteMaximumConcurrentStreams ?? settings.assumedConcurrentStreams
        if streams.count >= Int(limit) { throw .streamsExhausted }
        let handle = session.handle
        let stream = try session.withFields(headers) { fields, count in
            var source = Session.bodySource
            return body.isEmpty
                ? nghttp2_submit_request(handle, nil, fields, count, nil, nil)
                : nghttp2_submit_request(handle, nil, fields, count, &source, nil)
        }
        streams[stream] = Stream(tag: tag, body: body)
        return stream
    }

    /// Gives a request up; its tag has no further event. An unknown stream is ignored.
    public func reset(_ stream: HTTP2StreamID) {
        // A second reset of a request that still waits in the library would be sent, for a stream
        // the server has not seen: a violation.
        guard let open = streams[stream], open.tag != nil else { return }
        open.tag = nil
        session.reset(stream, .cancel)
    }

    /// Sends a PING; the answer is the event `pingAnswered`.
    public func ping(opaque: UInt64) throws(HTTP2Error) {
        let code = withUnsafeBytes(of: opaque.bigEndian) { bytes in
            nghttp2_submit_ping(
                session.handle, UInt8(NGHTTP2_FLAG_NONE.rawValue),
                bytes.bindMemory(to: UInt8.self).baseAddress)
        }
        try session.check(code)
    }

    /// Tells the server that no more requests come. Open streams go on; `isFinished` is true when
    /// the last has ended.
    public func goAway() throws(HTTP2Error) {
        isEnding = true
        try session.goAway(lastStream: 0, code: .noError, debugData: [])
    }
}

extension HTTP2ClientEngine: SessionDelegate {
    func headersBegan(_ stream: HTTP2StreamID, category: nghttp2_headers_category) {
        tableBytes = nghttp2_session_get_hd_inflate_dynamic_table_size(session.handle)
        streams[stream]?.headers = []
        streams[stream]?.headerBytes = 0
    }

    func headerArrived(_ field: ArrivedField, on stream: HTTP2StreamID) {
        defer { tableBytes = field.tableBytes }
        guard let stream = streams[stream], stream.tag != nil else { return }
        stream.headerBytes += field.size
        if stream.headerBytes > settings.maximumHeaderListBytes {
            stream.headers = []
        } else {
            stream.headers.append(
                field.header(
                    tableBytesBefore: tableBytes, isFirst: stream.headers.isEmpty))
        }
    }

    func dataArrived(_ part: UnsafeRawBufferPointer, on id: HTTP2StreamID) {
        guard let stream = streams[id], let tag = stream.tag else { return }
        if part.count > settings.maximumBodyBytes - stream.bodyBytes {
            refuseLarge(stream, id)
        } else {
            stream.bodyBytes += part.count
            events.append(.data(tag: tag, bytes: Array(part)))
        }
    }

    private func refuseLarge(_ stream: Stream, _ id: HTTP2StreamID) {
        guard let tag = stream.tag else { return }
        stream.tag = nil
        stream.headers = []
        events.append(.responseTooLarge(tag: tag))
        session.reset(id, .cancel)
    }

    func frameArrived(_ frame: UnsafePointer<nghttp2_frame>) {
        let isAnswer = frame.pointee.hd.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        switch UInt32(frame.pointee.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            headersArrived(frame.pointee.hd.stream_id)
            finishIfEnded(frame.pointee.hd)
        case NGHTTP2_DATA.rawValue:
            finishIfEnded(frame.pointee.hd)
        case NGHTTP2_SETTINGS.rawValue where !isAnswer:
            let limit = nghttp2_session_get_remote_settings(
                session.handle, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
            remoteMaximumConcurrentStreams = limit
            events.append(.settings(maximumConcurrentStreams: limit))
        case NGHTTP2_PING.rawValue where isAnswer:
            let opaque = withUnsafeBytes(of: frame.pointee.ping.opaque_data) {
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self))
            }
            events.append(.pingAnswered(opaque: opaque))
        case NGHTTP2_GOAWAY.rawValue:
            goAwayArrived(frame.pointee.goaway)
        default:
            break
        }
    }

    private func headersArrived(_ id: HTTP2StreamID) {
        guard let stream = streams[id], let tag = stream.tag else { return }
        if stream.headerBytes > settings.maximumHeaderListBytes { return refuseLarge(stream, id) }
        defer { stream.headers = [] }
        // The library has checked that there is a status of three digits; trailers have none.
        guard !stream.hasResponse, let status = stream.headers[":status"].flatMap({ Int($0) }),
            status >= 200
        else { return }
        stream.hasResponse = true
        events.append(.response(tag: tag, status: status, headers: stream.headers))
    }

    private func finishIfEnded(_ head: nghttp2_frame_hd) {
        let ended = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        guard ended, let stream = streams[head.stream_id], let tag = stream.tag else { return }
        stream.tag = nil
        events.append(.finished(tag: tag))
        let sentAll = nghttp2_session_get_stream_local_close(session.handle, head.stream_id) == 1
        // The server does not want the rest of the request (RFC 9113 8.1).
        if !sentAll { session.reset(head.stream_id, .cancel) }
    }

    private func goAwayArrived(_ frame: nghttp2_goaway) {
        isEnding = true
        lastProcessedStream = frame.last_stream_id
        let debug = UnsafeBufferPointer(start: frame.opaque_data, count: frame.opaque_data_len)
        events.append(
            .goAway(
                lastStream: frame.last_stream_id,
                code: HTTP2ErrorCode(rawValue: frame.error_code), debugData: Array(debug)))
        // The library closes those it has sent right after this, but those still queued only when
        // their turn comes, which may be never. None of them was processed.
        var tags: [UInt64] = []
        for (id, stream) in streams.sorted(by: { $0.key < $1.key }) where id > frame.last_stream_id
        {
            guard let tag = stream.tag else { continue }
            stream.tag = nil
            tags.append(tag)
        }
        if !tags.isEmpty { events.append(.unprocessed(tags: tags)) }
    }

    func streamClosed(_ id: HTTP2StreamID, code: HTTP2ErrorCode) {
        guard let stream = streams.removeValue(forKey: id), let tag = stream.tag else { return }
        let refused = code == .refusedStream || !stream.isSent
        events.append(.reset(tag: tag, code: code, refused: refused))
    }

    func frameSent(_ frame: UnsafePointer<nghttp2_frame>) {
        if UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue {
            streams[frame.pointee.hd.stream_id]?.isSent = true
        }
    }

    func frameWasInvalid(_ frame: UnsafePointer<nghttp2_frame>, code: Int32) {}

    func bodyPart(
        of stream: HTTP2StreamID, into buffer: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isLast: Bool)? {
        streams[stream]?.body.next(buffer)
    }
}
