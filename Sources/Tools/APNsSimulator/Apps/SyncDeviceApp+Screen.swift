internal import AppLife
internal import EventLoop
internal import Model
internal import RouseClient

// What stands on the screen, and what its user is owed.
extension SyncDeviceApp {
    /// Answers `.look` by the system's list and by what is stored.
    func look() {
        let delivered = hooks.screen().map { shown in
            DeliveredNotification(
                identifier: shown.identifier, object: shown.object.flatMap { MessageID(text: $0) },
                conversation: shown.conversation.flatMap { ConversationID(text: $0) })
        }
        let time = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        do {
            give(.looked(try openStore().screen(delivered: delivered, at: time)))
        } catch {
            fail("screen: \(error)")
            give(.storeFailed)
        }
    }
}
