import CNGHTTP2

/// What a session tells its engine, during `receive` and `takeOutput`.
protocol SessionDelegate: AnyObject {
    /// A header block begins: a request's, a response's or trailers.
    func headersBegan(_ stream: HTTP2StreamID, category: nghttp2_headers_category)
    func headerArrived(_ header: ArrivedField, on stream: HTTP2StreamID)
    /// A frame is complete; DATA and header blocks after all of their parts.
    func frameArrived(_ frame: UnsafePointer<nghttp2_frame>)
    /// A frame broke a rule; the library answers it by itself.
    func frameWasInvalid(_ frame: UnsafePointer<nghttp2_frame>, code: Int32)
    func dataArrived(_ part: UnsafeRawBufferPointer, on stream: HTTP2StreamID)
    func frameSent(_ frame: UnsafePointer<nghttp2_frame>)
    func streamClosed(_ stream: HTTP2StreamID, code: HTTP2ErrorCode)
    /// Fills `buffer` with the next part of the body being sent; nil: there is no such stream.
    func bodyPart(
        of stream: HTTP2StreamID, into buffer: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isLast: Bool)?
}

/// A header field in the library's memory, valid during the call.
struct ArrivedField {
    let name: UnsafeRawBufferPointer
    let value: UnsafeRawBufferPointer
    let isNeverIndexed: Bool
    /// Bytes of the dynamic table after the field (RFC 7541 4.1).
    let tableBytes: Int

    /// RFC 7541 4.1 and RFC 9113 6.5.2 count a field so.
    var size: Int { name.count + value.count + 32 }

    /// - Parameters:
    ///   - tableBytesBefore: bytes of the dynamic table before the field.
    ///   - isFirst: the table may have been resized just before the first field of a block.
    func header(tableBytesBefore: Int, isFirst: Bool) -> HTTP2ReceivedHeader {
        let grewByField = tableBytes - tableBytesBefore == size
        let displacedOthers = !isFirst && tableBytes != tableBytesBefore && tableBytes >= size
        let indexing: HTTP2ReceivedHeader.Indexing =
            isNeverIndexed ? .never : grewByField || displacedOthers ? .incremental : .other
        return HTTP2ReceivedHeader(
            String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self),
            indexing: indexing)
    }
}

/// The owner of one library session: bytes in, bytes out, calls to a delegate between.
final class Session {
    enum Role {
        case client(assumedConcurrentStreams: UInt32)
        case server
    }

    /// Set by the engine that owns the session, in its initializer.
    unowned var delegate: (any SessionDelegate)?
    private(set) var failure: HTTP2Error?
    let handle: OpaquePointer
    /// What the library gave beyond the last `maximumBytes`.
    private var carried: [UInt8] = []
    private var scratch: [UInt8] = []

    init(_ role: Role) throws(HTTP2Error) {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        var session: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        nghttp2_option_new(&options)
        defer {
            nghttp2_session_callbacks_del(callbacks)
            nghttp2_option_del(options)
        }
        guard let callbacks, let options else { throw Self.error(NGHTTP2_ERR_NOMEM.rawValue) }
        setCallbacks(callbacks)
        // Closed streams are kept for the priority tree only, which nobody uses (RFC 9113 5.3.2).
        nghttp2_option_set_no_closed_streams(options, 1)
        let code: Int32
        switch role {
        case .client(let assumedConcurrentStreams):
            nghttp2_option_set_peer_max_concurrent_streams(options, assumedConcurrentStreams)
            code = nghttp2_session_client_new2(&session, callbacks, nil, options)
        case .server:
            code = nghttp2_session_server_new2(&session, callbacks, nil, options)
        }
        guard code == 0, let session else { throw Self.error(code) }
        handle = session
        nghttp2_session_set_user_data(handle, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        nghttp2_session_del(handle)
    }

    static func error(_ code: Int32) -> HTTP2Error {
        .connection(code: code, text: nghttp2_strerror(code).map { String(cString: $0) } ?? "")
    }

    /// Whether the connection is over: nothing is to be read and nothing to be sent.
    var isFinished: Bool {
        !wantsOutput && (failure != nil || nghttp2_session_want_read(handle) == 0)
    }

    var wantsOutput: Bool {
        !carried.isEmpty || (failure == nil && nghttp2_session_want_write(handle) != 0)
    }

    func receive(_ bytes: UnsafeRawBufferPointer) throws(HTTP2Error) {
        if let failure { throw failure }
        guard let start = bytes.bindMemory(to: UInt8.self).baseAddress else { return }
        let taken = nghttp2_session_mem_recv(handle, start, bytes.count)
        if taken < 0 { throw fail(Int32(clamping: taken)) }
    }

    func takeOutput(_ maximumBytes: Int) -> [UInt8] {
        precondition(maximumBytes > 0, "no output was asked for")
        var output = carried
        carried = []
        while output.count < maximumBytes, failure == nil {
            var piece: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(handle, &piece)
            if count < 0 { _ = fail(Int32(clamping: count)) }
            guard count > 0 else { break }
            output.append(contentsOf: UnsafeBufferPointer(start: piece, count: count))
        }
        if output.count > maximumBytes {
            carried = Array(output[maximumBytes...])
            output.removeSubrange(maximumBytes...)
        }
        return output
    }

    private func fail(_ code: Int32) -> HTTP2Error {
        let error = Self.error(code)
        failure = error
        return error
    }

    /// The errors of the functions that queue a frame.
    func check(_ code: Int32) throws(HTTP2Error) {
        if code >= 0 { return }
        switch code {
        case NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue: throw .connectionEnding
        case NGHTTP2_ERR_INVALID_ARGUMENT.rawValue: throw .invalidArgument
        default: throw nghttp2_is_fatal(code) != 0 ? fail(code) : .invalidArgument
        }
    }

    func submitSettings(_ settings: [(nghttp2_settings_id, UInt32)]) throws(HTTP2Error) {
        let entries = settings.map { id, value in
            nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value)
        }
        let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
        try check(nghttp2_submit_settings(handle, none, entries, entries.count))
    }

    func reset(_ stream: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
        _ = nghttp2_submit_rst_stream(handle, none, stream, code.rawValue)
    }

    func goAway(
        lastStream: HTTP2StreamID, code: HTTP2ErrorCode, debugData: [UInt8]
    ) throws(HTTP2Error) {
        // The library takes no more than this in one frame.
        guard debugData.count <= 16_384 - 8 else { throw .invalidArgument }
        try check(
            nghttp2_submit_goaway(
                handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code.rawValue, debugData,
                debugData.count))
    }

    /// Calls `body` with the fields as the library wants them; it copies what it keeps.
    func withFields(
        _ headers: [HTTP2Header], _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Int32
    ) throws(HTTP2Error) -> Int32 {
        scratch.removeAll(keepingCapacity: true)
        var size = 0
        for header in headers {
            scratch.append(contentsOf: header.name.utf8)
            scratch.append(contentsOf: header.value.utf8)
            size += header.name.utf8.count + header.value.utf8.count + 32
            if size > 32 * 1024 { throw .headersTooLarge }
        }
        var refused: String?
        let result = scratch.withUnsafeMutableBufferPointer { bytes -> Int32 in
            var fields: [nghttp2_nv] = []
            fields.reserveCapacity(headers.count)
            var next = bytes.baseAddress
            for header in headers {
                let field = nghttp2_nv(
                    name: next, value: next.map { $0 + header.name.utf8.count },
                    namelen: header.name.utf8.count, valuelen: header.value.utf8.count,
                    flags: UInt8(
                        header.indexing == .never
                            ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : NGHTTP2_NV_FLAG_NONE.rawValue))
                if nghttp2_check_header_name(field.name, field.namelen) == 0
                    || nghttp2_check_header_value(field.value, field.valuelen) == 0
                {
                    refused = header.name
                    return 0
                }
                fields.append(field)
                next = next.map { $0 + header.name.utf8.count + header.value.utf8.count }
            }
            return fields.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
        }
        if let refused { throw .invalidHeader(name: refused) }
        try check(result)
        return result
    }

    /// Where the library fetches a body: from the delegate, by the stream's number, so that no
    /// pointer can outlive a stream.
    static var bodySource: nghttp2_data_provider {
        nghttp2_data_provider(source: nghttp2_data_source(), read_callback: onBodyWanted)
    }
}

/// A body being sent.
struct OutgoingBody {
    private let bytes: [UInt8]
    private var sent = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func next(_ buffer: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool) {
        let count = min(buffer.count, bytes.count - sent)
        buffer.copyBytes(from: bytes[sent..<(sent + count)])
        sent += count
        return (count, sent == bytes.count)
    }
}

// MARK: Callbacks

private func setCallbacks(_ callbacks: OpaquePointer) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, onBeginHeaders)
    nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, onInvalidFrame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, onFrameSent)
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClosed)
}

private func delegate(_ context: UnsafeMutableRawPointer?) -> (any SessionDelegate)? {
    context.flatMap { Unmanaged<Session>.fromOpaque($0).takeUnretainedValue().delegate }
}

private func onBeginHeaders(
    _ handle: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let frame else { return 0 }
    delegate(context)?.headersBegan(
        frame.pointee.hd.stream_id, category: frame.pointee.headers.cat)
    return 0
}

private func onHeader(
    _ handle: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?,
    _ name: UnsafePointer<UInt8>?, _ nameBytes: Int, _ value: UnsafePointer<UInt8>?,
    _ valueBytes: Int, _ flags: UInt8, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let frame, let handle else { return 0 }
    let field = ArrivedField(
        name: UnsafeRawBufferPointer(start: name, count: nameBytes),
        value: UnsafeRawBufferPointer(start: value, count: valueBytes),
        isNeverIndexed: flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0,
        tableBytes: nghttp2_session_get_hd_inflate_dynamic_table_size(handle))
    delegate(context)?.headerArrived(field, on: frame.pointee.hd.stream_id)
    return 0
}

private func onFrame(
    _ handle: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    if let frame { delegate(context)?.frameArrived(frame) }
    return 0
}

private func onInvalidFrame(
    _ handle: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ code: Int32,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    if let frame { delegate(context)?.frameWasInvalid(frame, code: code) }
    return 0
}

private func onData(
    _ handle: OpaquePointer?, _ flags: UInt8, _ stream: Int32, _ part: UnsafePointer<UInt8>?,
    _ partBytes: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    let part = UnsafeRawBufferPointer(start: part, count: partBytes)
    delegate(context)?.dataArrived(part, on: stream)
    return 0
}

private func onFrameSent(
    _ handle: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    if let frame { delegate(context)?.frameSent(frame) }
    return 0
}

private func onStreamClosed(
    _ handle: OpaquePointer?, _ stream: Int32, _ code: UInt32, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    delegate(context)?.streamClosed(stream, code: HTTP2ErrorCode(rawValue: code))
    return 0
}

private func onBodyWanted(
    _ handle: OpaquePointer?, _ stream: Int32, _ buffer: UnsafeMutablePointer<UInt8>?,
    _ bufferBytes: Int, _ flags: UnsafeMutablePointer<UInt32>?,
    _ source: UnsafeMutablePointer<nghttp2_data_source>?, _ context: UnsafeMutableRawPointer?
) -> Int {
    let buffer = UnsafeMutableRawBufferPointer(start: buffer, count: bufferBytes)
    guard let part = delegate(context)?.bodyPart(of: stream, into: buffer) else {
        // The library resets the stream.
        return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }
    if part.isLast { flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return part.count
}
