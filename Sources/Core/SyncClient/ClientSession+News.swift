import Model
public import Wire

// What the entries of a page mean for what the person sees.
extension ClientSession {
    /// What a page says was read.
    struct ReadMark: Equatable, Sendable {
        /// As that of the receipt it answers.
        var subject: [UInt8]
        /// `nil`: an announcement, read as a whole.
        var state: ReadMarkState?

        init?(_ entry: Entry) {
            switch entry.body {
            case .readMark(let state):
                guard let conversation = entry.conversation else { return nil }
                (subject, self.state) = (conversation.bytes, state)
            default:
                guard let id = entry.announcementDone else { return nil }
                subject = ReadReceipt(announcement: id).subject
            }
        }

        func covers(_ receipt: ReadReceipt) -> Bool {
            receipt.subject == subject && state.map { receipt.isCovered(by: $0) } ?? true
        }
    }

    /// Those of applied entries that the user may be notified of (PSH-8): messages of others and
    /// announcements that are not of a first sync, a reset or a FETCH, and were not alerted.
    public func news(among applied: [Entry]) -> [Entry] {
        applied.filter { $0.isNews(to: user, above: historyThrough) }
    }
}

extension Entry {
    /// The announcement that was read, or taken back (MSG-57): no receipt of it need be sent any
    /// more.
    var announcementDone: MessageID? {
        switch body {
        case .announcement(let announcement) where announcement.read: MessageID(object)
        case .tombstone(let state) where isOfAnnouncement && !state.conversation:
            MessageID(object)
        default: nil
        }
    }

    private var isOfAnnouncement: Bool { conversation == nil }

    /// Whether it is of a kind that a user may be notified of, and has its text for that (MSG-3).
    var mayNotify: Bool {
        switch body {
        case .message(let message): message.push != nil
        case .announcement(let announcement): announcement.push != nil && !announcement.read
        default: false
        }
    }

    /// The server alerted of it with an earlier text. Of an older history nothing is marked so.
    var isEditOfAlerted: Bool {
        guard alerted, seq > 0, case .message(let message) = body else { return false }
        return message.editedMs > 0
    }

    /// - Parameter history: up to here the feed came with a first sync or a reset.
    func isNews(to user: String, above history: UInt64) -> Bool {
        // Pages beside the feed name no `seq` (HIS-2).
        guard seq > history, !alerted else { return false }
        return switch body {
        case .message(let message): !message.sender.isExactly(user)
        case .announcement(let announcement): !announcement.read
        default: false
        }
    }
}
