// Publishes with the client that openapi-generator made: publish URL KEY.
import Foundation

@main struct Publish {
    static func main() async throws {
        let configuration = RouseAPIConfiguration(
            basePath: CommandLine.arguments[1],
            customHeaders: ["Authorization": "Bearer \(CommandLine.arguments[2])"])
        // A repetition is recognised by its bytes, and Foundation writes fields in any order.
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        configuration.codableHelper.jsonEncoder = encoder
        let room = try await ConversationsAPI.createConversation(
            conversationInput: ConversationInput(participants: ["anna", "ben"]),
            idempotencyKey: "swift-room", apiConfiguration: configuration)
        let message = MessageInput(
            sender: "anna", parts: [PartInput(mimeType: "text/plain", text: "Dinner at eight?")],
            push: Push(
                title: "Anna", body: "Dinner at eight?", sound: .typeString("bell.caf")))
        func publish() async throws -> Message {
            try await ConversationsAPI.publishMessage(
                conversation: room.id, messageInput: message, idempotencyKey: "swift-1",
                apiConfiguration: configuration)
        }
        let first = try await publish()
        let again = try await publish()
        let listed = try await ConversationsAPI.listMessages(
            conversation: room.id, apiConfiguration: configuration)
        let inbox = try await UsersAPI.listUserConversations(
            user: "ben", apiConfiguration: configuration)
        let row = inbox.conversations.first { $0.id == room.id }
        print("message", first.id)
        print("again", again.id)
        print("listed", listed.messages.count, listed.messages[0].parts?[0].text ?? "")
        print("inbox", row?.unread ?? 0, row?.lastMessage?.parts?[0].text ?? "")
        do {
            _ = try await ConversationsAPI.publishMessage(
                conversation: "0190a1b2-c3d4-7123-8456-000000000000", messageInput: message,
                apiConfiguration: configuration)
        } catch let ErrorResponse.error(status, body, _, _) {
            let problem = try JSONDecoder().decode(Problem.self, from: body ?? Data())
            print("refused", status, problem.code)
        }
    }
}
