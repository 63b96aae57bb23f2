import CMicroHTTPD

/// The request line and the header lines, checked: what the library lets through is more than
/// HTTP/1.1 allows, and everything two programs could read differently is refused (RFC 9112 11.2).
enum RequestHead {
    enum Verdict {
        case accepted(HTTPRequest)
        /// Answer at once and close.
        case refused(HTTPRefusal)
        /// Receive and throw away the body, then answer and close.
        case refusedAfterBody(HTTPRefusal)
    }

    static func judge(
        _ handle: OpaquePointer, method methodBytes: UnsafePointer<CChar>?, version: String,
        target: [UInt8], peerAddress: String, limits: HTTPLimits
    ) -> Verdict {
        let method = methodBytes.map { String(cString: $0) } ?? ""
        if rouse_mhd_header_size(handle) > limits.headerBytes {
            return .refused(HTTPRefusal(status: 431, reason: "header lines too long"))
        }
        let lines = lines(of: handle)
        let lineBytes = method.utf8.count + target.count + version.utf8.count + 4
        guard isToken(method), isWhole(requestLine: methodBytes, lineBytes, before: lines.first),
            let target = RequestTarget(target)
        else {
            return .refused(HTTPRefusal(status: 400, reason: "invalid request line"))
        }
        let headers = HTTPHeaders(lines.map { (name: $0.name, value: $0.value) })
        let isReadable = headers.fields.allSatisfy { name, value in
            isToken(name) && isFieldValue(value)
        }
        guard isReadable, isWhole(lines, of: handle, method: methodBytes) else {
            return .refused(HTTPRefusal(status: 400, reason: "invalid header line"))
        }
        // RFC 9112 3.2.
        let hosts = headers.values("host").count
        if hosts > 1 || (hosts == 0 && version != "HTTP/1.0") {
            let refusal = HTTPRefusal(status: 400, reason: "exactly one host header is needed")
            return .refused(refusal.of(headers))
        }
        if let refusal = judgeFraming(headers, version: version, limits: limits) { return refusal }
        return .accepted(
            HTTPRequest(
                method: method, path: target.path, pathSegments: target.pathSegments,
                query: target.query, headers: headers, peerAddress: peerAddress))
    }

    /// RFC 9112 6.1 and 6.3: how long the body is must have one reading only.
    private static func judgeFraming(
        _ headers: HTTPHeaders, version: String, limits: HTTPLimits
    ) -> Verdict? {
        let codings = headers.values("transfer-encoding")
        let lengths = headers.values("content-length")
        if let coding = codings.first {
            if codings.count > 1 || !lengths.isEmpty || version == "HTTP/1.0" {
                let refusal = HTTPRefusal(status: 400, reason: "ambiguous body length")
                return .refused(refusal.of(headers))
            }
            if !equalWithoutCase(coding, "chunked") {
                let refusal = HTTPRefusal(status: 501, reason: "unknown transfer coding")
                return .refused(refusal.of(headers))
            }
            return nil
        }
        guard let first = lengths.first else { return nil }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard lengths.count == 1, first.utf8.allSatisfy(digits.contains), !first.isEmpty else {
            let refusal = HTTPRefusal(status: 400, reason: "invalid content-length")
            return .refused(refusal.of(headers))
        }
        let refusal = HTTPRefusal.bodyTooLarge.of(headers)
        // More digits than an Int holds.
        guard let length = Int(first) else { return .refused(refusal) }
        if length <= limits.bodyBytes { return nil }
        // A client that waits for 100 has sent nothing yet (RFC 9110 10.1.1).
        let waits = headers.values("expect").contains { equalWithoutCase($0, "100-continue") }
        return waits || length > limits.discardedBodyBytes
            ? .refused(refusal) : .refusedAfterBody(refusal)
    }

    /// One header line, and where the library has it.
    fileprivate struct Line {
        let name: String
        let value: String
        let nameBytes: UnsafeRawBufferPointer
        let valueBytes: UnsafeRawBufferPointer
    }

    private static func lines(of handle: OpaquePointer) -> [Line] {
        var lines: [Line] = []
        withUnsafeMutablePointer(to: &lines) { pointer in
            _ = MHD_get_connection_values_n(handle, .HEADER_KIND, collectLine, pointer)
        }
        return lines
    }

    /// Whether the request line holds nothing but method, target and version, with one space
    /// between, and a line end: the library reads each of them up to a NUL.
    private static func isWhole(
        requestLine: UnsafePointer<CChar>?, _ bytes: Int, before line: Line?
    ) -> Bool {
        guard let start = UnsafeRawPointer(requestLine) else { return false }
        // A request without header lines is refused, or is one of HTTP/1.0.
        guard let next = line?.nameBytes.baseAddress else { return true }
        return start + bytes == next
    }

    /// Whether the head holds nothing that its lines do not say. The library cuts lines where they
    /// were received: a value ends for it at a NUL, and of a folded line it keeps only the first
    /// part. Another program in front of this one reads on (RFC 9110 5.5, RFC 9112 5.2).
    private static func isWhole(
        _ lines: [Line], of handle: OpaquePointer, method: UnsafePointer<CChar>?
    ) -> Bool {
        guard let method = UnsafeRawPointer(method) else { return false }
        let end = method + rouse_mhd_header_size(handle)
        for (index, line) in lines.enumerated() {
            let next = index + 1 < lines.count ? lines[index + 1].nameBytes.baseAddress : end
            guard let name = line.nameBytes.baseAddress, name >= method,
                let value = line.valueBytes.baseAddress, value > name + line.nameBytes.count,
                let next, next <= end, value + line.valueBytes.count < next
            else { return false }
            let valueEnd = value + line.valueBytes.count
            // The ends of lines are zeros by now, two bytes each; behind the last line comes an
            // empty one. A line that holds a NUL alone ends the head for the library.
            let rest = UnsafeRawBufferPointer(start: valueEnd, count: next - valueEnd)
            let ends = index + 1 < lines.count ? 2 : 4
            guard rest.count == ends, rest.allSatisfy({ $0 == 0 }) else { return false }
        }
        return true
    }
}

private func collectLine(
    _ context: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?,
    _ nameBytes: Int, _ value: UnsafePointer<CChar>?, _ valueBytes: Int
) -> MHD_Result {
    let name = UnsafeRawBufferPointer(start: name, count: name == nil ? 0 : nameBytes)
    let value = UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueBytes)
    // White space after a value is not part of it (RFC 9112 5.1); the library removes only what is
    // before it.
    let end = value.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { $0 + 1 } ?? 0
    // Bytes that are no UTF-8 become U+FFFD, which equals no name or secret a handler looks for.
    context?.assumingMemoryBound(to: [RequestHead.Line].self).pointee.append(
        RequestHead.Line(
            name: String(decoding: name, as: UTF8.self),
            value: String(decoding: value[..<end], as: UTF8.self), nameBytes: name,
            valueBytes: value))
    return .YES
}
