import Model

@testable import Feed

/// The person's mutes as the server's rows have them.
struct WeekMutes {
    /// `.max`: until it is taken back.
    private var ends: [ConversationID: Timestamp] = [:]
    private let now: Timestamp

    init(_ week: Week) throws {
        now = week.clock.wall
        for setting in try week.rows(SettingsRecord.self)
        where setting.user.name == week.user && setting.isMuted {
            ends[setting.conversation] =
                setting.mutedUntil ?? Timestamp(milliseconds: .max)
        }
    }

    func lasts(in conversation: ConversationID) -> Bool {
        lasts(in: conversation, at: now)
    }

    /// Of a moment after the mute was made.
    func lasts(in conversation: ConversationID, at time: Timestamp) -> Bool {
        ends[conversation].map { time < $0 } ?? false
    }

    /// Whether one of them came to its end since then, which nobody is told of.
    func ended(since time: Timestamp) -> Bool {
        ends.values.contains { time < $0 && $0 <= now }
    }
}
