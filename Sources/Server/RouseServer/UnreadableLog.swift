import EventLoop
import Feed
import Model
import Synchronization
import Telemetry

/// The lines of the log about rows that cannot be read. A duty meets such a row at each of its
/// turns: it is logged once, and then at most once an hour.
final class UnreadableLog: Sendable {
    /// Lines, at most, each time some are met.
    private static let linesMax = 16
    static let pause: Milliseconds = 3_600_000

    private let log: Log
    /// Rows remembered. Of more than these the log tells no more within the hour; all are counted.
    private let rowsMax: Int
    /// When each was logged, by the monotonic clock.
    private let told = Mutex<[Key: UInt64]>([:])

    private struct Key: Hashable {
        let app: AppID
        let user: UserID
        let conversation: ConversationID
        let detail: ExactText

        init(_ row: UnreadableRow) {
            (app, user, conversation) = (row.app, row.user, row.conversation)
            detail = ExactText(row.detail)
        }
    }

    init(_ log: Log, rowsMax: Int = 1_024) {
        self.log = log
        self.rowsMax = rowsMax
    }

    func report(
        _ rows: [UnreadableRow], now: UInt64 = SystemClock.monotonicMilliseconds()
    ) {
        for row in take(rows, now) {
            log.warning(
                "store.row_unreadable",
                [
                    LogField("app", row.app.name), LogField("user", row.user.name),
                    LogField("conversation", row.conversation), LogField("what", row.detail),
                ])
        }
    }

    /// - Returns: those that are news, not more than one turn may log.
    private func take(_ rows: [UnreadableRow], _ now: UInt64) -> [UnreadableRow] {
        told.withLock { told in
            var news: [UnreadableRow] = []
            for row in rows where news.count < Self.linesMax {
                let key = Key(row)
                if let last = told[key], now < last + Self.pause { continue }
                if told[key] == nil, told.count >= rowsMax {
                    told = told.filter { now < $0.value + Self.pause }
                    guard told.count < rowsMax else { continue }
                }
                told[key] = now
                news.append(row)
            }
            return news
        }
    }
}
