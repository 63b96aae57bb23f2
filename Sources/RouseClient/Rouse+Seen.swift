internal import AppLife
public import Model
public import SyncClient

// What the person sees is read; what comes while nobody looks is not.
extension Rouse {
    /// The person sees a conversation as far as it is on this device: it is read, if the app is in
    /// front and `onScreen` says that the conversation is. Else it is when both are so again, until
    /// `onScreen` says that the person is elsewhere. Call it with each window that is shown.
    public func seen(_ conversation: ConversationID) throws(LocalStoreError) {
        watched = conversation
        guard life.sees(conversation) else { return }
        try markRead(conversation)
    }

    /// The app came to the front, or the person went somewhere else in it.
    func readSeen(after input: AppInput) {
        switch input {
        case .becameActive, .onScreen: break
        default: return
        }
        guard let watched, store != nil, life.sees(watched) else { return }
        do throws(LocalStoreError) {
            try markRead(watched)
        } catch {
            storeTrouble(error)
        }
    }

    /// What was read without the server leaves the screen, and the icon's number is that of what is
    /// here, if all that may be unread is.
    func readHere() {
        steps.insert(.action(.look), at: 0)
        guard let store, replica?.session.isOpen != true else { return }
        do throws(LocalStoreError) {
            guard let count = try store.unread(at: clock.wall) else { return }
            tell(.unread(count))
            answer(.unread(count))
        } catch {
            storeTrouble(error)
        }
    }
}
