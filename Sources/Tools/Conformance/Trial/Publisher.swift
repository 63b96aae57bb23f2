import FoundationEssentials
import Model

/// The app's backend, as the credentials describe it.
struct Publisher {
    fileprivate let place: ConformanceCredentials.Publish
    private let deadline: Moment

    init(_ place: ConformanceCredentials.Publish, deadline: Moment) {
        self.place = place
        self.deadline = deadline
    }

    /// Publishes a line for a user.
    func publish(_ text: String, sender: String, to conversation: ConversationID) throws {
        if let command = place.command {
            _ = try ChildCommand.run(
                command,
                replacing: [
                    "conversation": conversation.description, "sender": sender, "text": text,
                ])
            return
        }
        let body =
            "{\"sender\":\(TokenDraft.quoted(sender)),\"parts\":[{\"mime_type\":\"text/plain\","
            + "\"text\":\(TokenDraft.quoted(text))}],\"push\":{\"title\":\"conform\","
            + "\"body\":\(TokenDraft.quoted(text))}}"
        try call("POST", "/v1/conversations/\(conversation)/messages", body)
    }

    /// A request of the backend API, without a body if none is given.
    ///
    /// - Throws: inconclusive unless it is answered with success.
    func call(_ method: String, _ path: String, _ body: String = "") throws {
        guard let api = place.api, let colon = api.lastIndex(of: ":"),
            let port = UInt16(api[api.index(after: colon)...])
        else { throw CaseEnd.inconclusive("publish.api is no host and port") }
        let socket = try BlockingSocket(
            host: String(api[..<colon]), port: port, deadline: deadline)
        defer { socket.close() }
        let request =
            "\(method) \(path) HTTP/1.1\r\nhost: \(api)\r\nconnection: close\r\n"
            + "authorization: Bearer \(place.key ?? "")\r\n"
            + (body.isEmpty ? "" : "content-type: application/json\r\n")
            + "content-length: \(body.utf8.count)\r\n\r\n\(body)"
        try Array(request.utf8).withUnsafeBytes { try socket.write($0, deadline: deadline) }
        var answer: [UInt8] = []
        while true {
            let bytes = try socket.read(deadline: deadline)
            if bytes.isEmpty { break }
            answer += bytes
        }
        let text = String(decoding: answer, as: UTF8.self)
        let words = text.prefix { !$0.isNewline }.split(separator: " ")
        guard words.count > 1, let status = Int(words[1]), (200..<300).contains(status) else {
            throw CaseEnd.inconclusive("the backend API answered \(text.prefix(200))")
        }
    }
}

extension Trial {
    /// Publishes as the backend does; skips the case if nobody told how.
    func publisher() throws -> Publisher {
        guard let publish = server.credentials.publish else {
            throw CaseEnd.skipped("the credentials do not say how to publish")
        }
        return Publisher(publish, deadline: clock.end)
    }

    /// The backend API itself; skips the case without one.
    func backend() throws -> Publisher {
        let publisher = try publisher()
        guard publisher.place.api != nil else {
            throw CaseEnd.skipped("the credentials name no backend API")
        }
        return publisher
    }
}
