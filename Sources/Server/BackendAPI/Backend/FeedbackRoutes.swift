import Crypto
import Feed
import HTTP1
import Model

/// Tokens that APNs called dead or wrong. It is what Apple's own feedback service was.
enum FeedbackRoutes {
    static let all: [Route] = [
        // `next` is the `after` of the next request, now or later.
        Route(
            "GET", "/v1/push/feedback", query: ["after", "limit"],
            answerBytes: HTTPResponse.listBytesMax, .keyed(list))
    ]

    static let rowsDefault = 100
    static let rowsMax = 1000

    static func list(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let limit = try call.limit(default: rowsDefault, max: rowsMax)
        var after: UInt64 = 0
        if let text = call.request.queryValue("after") {
            guard let number = UInt64(digits: text), number <= .max >> 1 else {
                throw .malformed("after: must be the `next` of an answer of this address")
            }
            after = number
        }
        return .read(.backend(app, .tokenFeedback(after: after, limit: limit))) {
            reading throws(Problem) in
            guard case .backend(.tokenFeedback(let records, let last)) = reading else {
                throw .unexpected(reading)
            }
            return .answer(
                try .list(
                    "dropped", records, next: String(last), after: { String($0.number) },
                    body: { FeedbackBody($0) }))
        }
    }
}

struct FeedbackBody: Encodable {
    let user: String
    let device: String
    /// SHA-256 of the token, in hexadecimal: a token itself is told to nobody.
    let tokenSha256: String
    let environment: String
    let topic: String
    let status: UInt64
    let reason: String
    /// APNs' time of death; with 410 only.
    let deadSince: String?
    let droppedAt: String

    init(_ record: TokenFeedbackRecord) {
        user = record.user.name
        device = record.device.description
        tokenSha256 = Hex.encode(Digest.sha256(record.token))
        environment = record.environment.name
        topic = record.topic
        status = record.status
        reason = record.reason
        deadSince = record.deadSince?.text
        droppedAt = record.droppedAt.text
    }
}
