import HTTP1
import Model

/// What a request is called in its answer (`x-request-id`) and in the log, so that a line of one
/// side is found on the other.
enum RequestName {
    static let header = "x-request-id"
    static let bytesMax = 128

    /// The caller's own, or that of the balancer in between; else a new one.
    static func of(_ request: HTTPRequest, at now: Timestamp) -> String {
        of(request.headers, at: now)
    }

    static func of(_ headers: HTTPHeaders, at now: Timestamp) -> String {
        let names = headers.values(header)
        guard names.count == 1, let name = names.first, isName(name) else { return fresh(at: now) }
        return name
    }

    static func fresh(at now: Timestamp) -> String {
        Identifier<RequestName>.fresh(at: now).description
    }

    /// What a log line and a header show as it is. Another name is not refused: nobody's request
    /// fails for what a balancer adds.
    private static func isName(_ name: String) -> Bool {
        (1...bytesMax).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"):
                    true
                default: "-._~:/+=@".utf8.contains(byte)
                }
            }
    }
}

extension HTTPRequest {
    /// The trace that the caller counts it to (W3C Trace Context); `nil`: none, or none that can be
    /// read, which is no fault of the request.
    var trace: TraceContext? {
        let headers = headers.values("traceparent")
        return headers.count == 1 ? TraceContext(header: headers[0]) : nil
    }
}

extension HTTPResponse {
    func named(_ request: String) -> HTTPResponse {
        var answer = self
        answer.headers.append((RequestName.header, request))
        return answer
    }
}
