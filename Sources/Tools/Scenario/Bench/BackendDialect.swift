/// What a backend and a measured server speak: one request at a time on a connection, each
/// answered before the next.
struct BackendDialect: Sendable {
    typealias Answer = (answer: HTTPCall.Answer, bytes: Int)

    /// What a connection begins with, answered before it carries a request; `nil`: nothing.
    var greeting: [UInt8]?
    /// The first answer of what has come, and its bytes; `nil`: it is not whole.
    var answer: @Sendable ([UInt8]) throws(ScenarioError) -> Answer?

    static let http = BackendDialect(greeting: nil) { bytes throws(ScenarioError) in
        try HTTPAnswer.first(of: bytes)
    }
}

/// Answers that have a `content-length`, or no body: what comes is our own servers' HTTP.
private enum HTTPAnswer {
    static func first(of bytes: [UInt8]) throws(ScenarioError) -> BackendDialect.Answer? {
        guard let head = headEnd(bytes) else { return nil }
        let lines = String(decoding: bytes[..<head], as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count > 1, let status = Int(words[1]) else {
            throw ScenarioError("the answer is no HTTP")
        }
        let name = "content-length:"
        let length = lines.first { $0.lowercased().hasPrefix(name) }
            .flatMap { Int($0.dropFirst(name.count).filter { $0 != " " }) }
        let whole = head + 4 + (length ?? 0)
        guard bytes.count >= whole else { return nil }
        let body = Array(bytes[(head + 4)..<whole])
        return (HTTPCall.Answer(status: status, body: body), whole)
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (0...(bytes.count - 4)).first { at in
            bytes[at] == 13 && bytes[at + 1] == 10 && bytes[at + 2] == 13 && bytes[at + 3] == 10
        }
    }
}
