public import Feed
import Model
import Wire

/// The body of a delivery to a webhook, in the words of the backend API (WHK-2, WHK-6).
public enum DeliveryDocument {
    /// - Returns: JSON.
    public static func render(_ job: DeliveryJob) -> [UInt8] {
        // Only a number that is no number could fail: JSON, of which metadata was read, has none.
        guard let bytes = try? JSONWriter.write(DeliveryBody(job)) else {
            preconditionFailure("delivery \(job.delivery) is not JSON")
        }
        return bytes
    }
}

private struct DeliveryBody: Encodable {
    let delivery: String
    let webhook: String
    let app: String
    let dropped: UInt64
    let events: [EventBody]

    init(_ job: DeliveryJob) {
        delivery = job.delivery.description
        webhook = job.key.webhook.description
        app = job.key.app.name
        dropped = job.dropped
        events = job.events.map { EventBody($0) }
    }
}

/// One event; which fields it has says its kind.
private struct EventBody: Encodable {
    let id: String
    let number: UInt64
    let kind: String
    let at: String
    let conversationId: String?
    let messageId: String?
    let position: UInt64?
    let version: UInt64?
    let user: String?
    let joined: [String]?
    let left: [String]?
    let participants: [String]?
    let message: FullMessageBody?
    let metadata: MetadataBody?
    let conversation: ConversationBody?
    let deviceId: String?
    let droppedToken: FeedbackBody?
    let traceparent: String?

    init(_ view: WebhookEventView) {
        let event = view.event
        id = view.id.description
        number = event.number
        kind = event.kind.name
        at = event.at.text
        conversationId = event.conversation?.description
        messageId = event.message?.description
        position = event.position == 0 ? nil : event.position
        version = event.version == 0 ? nil : event.version
        user = event.user.isEmpty ? nil : event.user
        let isChange = event.kind == .participantsChanged
        joined = isChange ? event.joined : nil
        left = isChange ? event.left : nil
        participants = event.kind == .conversationCreated ? event.joined : nil
        // A row that cannot be read is told without its content: the others must not wait for it.
        message = view.message.flatMap { try? FullMessageBody($0) }
        metadata = view.metadata.flatMap { try? MetadataBody($0) }
        conversation = view.conversation.map { ConversationBody($0) }
        deviceId = event.device?.description
        droppedToken = view.dropped.map { FeedbackBody($0) }
        traceparent = view.traceparent
    }
}
