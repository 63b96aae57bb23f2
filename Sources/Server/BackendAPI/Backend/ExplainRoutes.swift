import Feed
import HTTP1
import Model
import Wake
import Wire

/// Why devices were pushed to for a message or an announcement, or were not.
enum ExplainRoutes {
    static let all: [Route] = [
        Route("GET", "/v1/messages/{message}/explain", query: ["user", "device"], .keyed(explain))
    ]

    static func explain(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let message = try call.identifier("message", as: MessageID.self)
        var query = ExplainQuery(message: message)
        if let name = call.parameters["user"] ?? call.request.queryValue("user") {
            query.user = UserID(name)
            guard query.user?.isValid ?? false else {
                throw .malformed("user: must be 1 to \(UserID.bytesMax) bytes")
            }
        }
        if let text = call.request.queryValue("device") {
            query.device = DeviceID(text: text)
            guard query.device != nil else {
                throw .malformed("device: must be 36 characters like \(DeviceID.example)")
            }
        }
        return .read(.explain(app, query)) { reading throws(Problem) in
            switch reading {
            case .explained(let found):
                guard query.user != nil || found.conversation != nil else {
                    throw Problem(
                        .missingField, "user: name the recipient of an announcement")
                }
                return .answer(.json(200, ExplanationBody(found)))
            case .nothing: throw .noSuch("message")
            default: throw .unexpected(reading)
            }
        }
    }
}

struct ExplanationBody: Encodable {
    struct Subject: Encodable {
        let user: String
        /// Left out where it holds for all devices of the user.
        let device: String?
        let steps: [Step]
    }

    struct Step: Encodable {
        /// Left out where it holds now.
        let at: String?
        let reason: String
        let until: String?
        let push: String?
        let status: UInt64?
        let answer: String?
    }

    let message: String
    let conversationId: String?
    let sentAt: String
    let urgency: String
    let subjects: [Subject]
    /// There are more recipients than were looked at: name one.
    let isCut: Bool
    /// Left out where whoever published it named none.
    let trace: String?

    init(_ found: Explanation) {
        message = found.message.description
        conversationId = found.conversation?.description
        sentAt = found.sentAt.text
        urgency = found.urgency.name
        isCut = found.isCut
        trace = found.trace?.id
        subjects = found.subjects.map { subject in
            Subject(
                user: subject.user.name, device: subject.device?.description,
                steps: subject.steps.map { step in
                    Step(
                        at: step.at?.text, reason: step.reason.rawValue, until: step.until?.text,
                        push: step.push?.description,
                        status: step.status == 0 ? nil : step.status,
                        answer: step.answer.isEmpty ? nil : step.answer)
                })
        }
    }
}
