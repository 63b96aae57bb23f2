internal import Crypto
internal import EventLoop
internal import FoundationEssentials

/// Where a device's app gets its identity tokens (Protocol/session.md, SES-9).
enum IdentitySource {
    /// Signed here, as the app's backend would.
    case issuer(IdentityIssuer)
    /// Asked of the app's backend, as an app does.
    case address(IdentityAddress)

    /// Answers once, on the loop, now or later; `nil`: there is no token.
    func token(
        for user: String, nonce: [UInt8], loop: Loop, answer: @escaping (String?) -> Void
    ) {
        switch self {
        case .issuer(let issuer):
            let now = SystemClock.wallMilliseconds() / 1_000
            answer(issuer.token(for: user, nonce: nonce, now: now))
        case .address(let address):
            IdentityCall(loop: loop, address: address, user: user, nonce: nonce, answer: answer)
        }
    }
}

/// The address at which an app's backend gives identity tokens: `http`, for a backend beside the
/// simulator.
struct IdentityAddress {
    let host: String
    let port: UInt16
    /// With its query.
    let path: String

    init?(_ text: String) {
        guard let parts = URLComponents(string: text), parts.scheme == "http",
            let host = parts.host, !host.isEmpty, parts.user == nil,
            let port = UInt16(exactly: parts.port ?? 80)
        else { return nil }
        self.host = host
        self.port = port
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        self.path = path + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
    }
}

/// One question to an app's backend: `POST {"user", "nonce"}`, answered by 200 and `{"token"}`. The
/// user stands for the login that a real app has with its backend. Loop-confined; what it waits for
/// holds it.
private final class IdentityCall {
    private static let answerBytesMax = 64 << 10
    private static let milliseconds: UInt64 = 10_000

    private struct Question: Encodable {
        let user: String
        let nonce: String
    }

    private struct Answer: Decodable {
        let token: String
    }

    private let request: [UInt8]
    private var answer: ((String?) -> Void)?
    private var received: [UInt8] = []
    private var stream: EventLoop.Stream?
    private var timer: LoopTimer?

    @discardableResult
    init(
        loop: Loop, address: IdentityAddress, user: String, nonce: [UInt8],
        answer: @escaping (String?) -> Void
    ) {
        let question = Question(user: user, nonce: Base64URL.encode(nonce))
        let body = (try? JSONEncoder().encode(question)).map { Array($0) } ?? []
        let head =
            "POST \(address.path) HTTP/1.1\r\nhost: \(address.host):\(address.port)\r\n"
            + "connection: close\r\ncontent-type: application/json\r\n"
            + "content-length: \(body.count)\r\n\r\n"
        request = Array(head.utf8) + body
        self.answer = answer
        timer = loop.timer { self.finish(nil) }
        timer?.start(afterMilliseconds: Self.milliseconds)
        EventLoop.Stream.connect(loop: loop, host: address.host, port: address.port) { result in
            switch result {
            case .success(let stream): self.connected(stream)
            case .failure: self.finish(nil)
            }
        }
    }

    private func connected(_ stream: EventLoop.Stream) {
        guard answer != nil else { return stream.close() }
        self.stream = stream
        stream.onBytes = { [unowned self] bytes in
            received += bytes
            if received.count > Self.answerBytesMax { finish(nil) }
        }
        stream.onEnd = { [unowned self] in finish(token()) }
        stream.onFailure = { [unowned self] _ in finish(nil) }
        stream.startReading()
        stream.write(request)
    }

    /// The body is whatever follows the head: the connection ends with it.
    private func token() -> String? {
        let separator = Array("\r\n\r\n".utf8)
        let end = received.indices.first { received[$0...].starts(with: separator) }
        guard let end,
            String(decoding: received[..<end], as: UTF8.self).split(separator: " ").dropFirst()
                .first == "200"
        else { return nil }
        let body = Data(received[(end + separator.count)...])
        return try? JSONDecoder().decode(Answer.self, from: body).token
    }

    private func finish(_ token: String?) {
        guard let answer else { return }
        self.answer = nil
        timer?.close()
        timer = nil
        stream?.close()
        stream = nil
        answer(token)
    }
}
