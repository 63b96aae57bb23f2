import Model
import Wire

// push.md: what a client shows of its own.
let clientPushCases: [ClientCase] = [
    .should(
        "push.client-notice", "a client's own notification is what the alert would have been",
        ["PSH-12"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        func append(_ push: PushText, _ hints: PushHints?) -> MessageID {
            let id = trial.newMessage()
            var entry = trial.feed.nextMessage("text", in: conversation, by: "ben", id: id)
            if case .message(var message) = entry.body {
                (message.push, message.hints) = (push, hints)
                entry.body = .message(message)
            }
            trial.feed.append(entry)
            return id
        }
        let plain = append(PushText(title: "Ben", body: "Hello"), nil)
        let hinted = append(
            PushText(body: "On its way"),
            PushHints(
                subtitle: "Order 42", sound: PushSound(kind: .named, name: "van.caf"),
                thread: "orders", category: "ORDER", event: "order", object: "42",
                data: #"{"shop":7}"#))
        let silent = append(
            PushText(title: "Night", body: "Hush"),
            PushHints(sound: PushSound(kind: SoundKind.none)))
        try link.push()
        try link.settle()
        let held = try trial.state().conversations ?? []
        let messages = held.first { $0.id == conversation.description }?.messages ?? []
        guard messages.contains(where: { $0.notice != nil }) else {
            throw CaseEnd.skipped("the driver does not tell what the client would show")
        }
        func notice(_ id: MessageID) -> ClientDriver.Answer.Notice? {
            messages.first { $0.id == id.description }?.notice
        }
        typealias Notice = ClientDriver.Answer.Notice
        try requireEqual(
            notice(plain),
            Notice(
                title: "Ben", body: "Hello", sound: "default", thread: conversation.description),
            "the notification of a push without hints")
        try requireEqual(
            notice(hinted),
            Notice(
                subtitle: "Order 42", body: "On its way", sound: "van.caf", thread: "orders",
                category: "ORDER", event: "order", object: "42", data: #"{"shop":7}"#),
            "the notification of a push with hints")
        try requireEqual(
            notice(silent),
            Notice(title: "Night", body: "Hush", thread: conversation.description),
            "the notification of a push without sound")
    }
]
