import Model
import RouseClient
import SyncClient

/// Where a conversation is looked at: the last line that is seen.
public struct ChatPlace: Equatable, Sendable {
    var message: MessageID
    /// In whose stead the messages before it are seen when it is gone.
    var position: UInt64?
    /// Of the message, so many are seen.
    var lines: Int
}

/// The lines of a conversation that are seen, and which messages end among them.
struct ChatPage {
    let lines: [String]
    let hasAbove: Bool
    /// Indices of the rows whose last line is seen: they were read.
    let seen: Range<Int>
    /// There are lines below those that are seen.
    let hasBelow: Bool
    let place: ChatPlace?
}

/// Finds pages among the rows of a window. Rows are laid out where they are looked at, and not
/// beyond: a message may have thousands of lines.
final class ChatScroll {
    /// A row, and how many of its lines are above the end of the page.
    private struct End: Equatable, Comparable {
        var row: Int
        var lines: Int

        static func < (left: Self, right: Self) -> Bool {
            (left.row, left.lines) < (right.row, right.lines)
        }
    }

    private let rows: [MessageRow]
    private let height: Int
    private let layOut: (MessageRow) -> [String]
    private var laidOut: [Int: [String]] = [:]

    /// - Parameter layOut: the lines of a message, one at least.
    init(
        _ rows: [MessageRow], height: Int, _ layOut: @escaping (MessageRow) -> [String]
    ) {
        self.rows = rows
        self.height = height
        self.layOut = layOut
    }

    /// - Parameter place: `nil`: the newest.
    func page(at place: ChatPlace?) -> ChatPage { page(to: end(at: place)) }

    func pageUp(from place: ChatPlace?) -> ChatPage {
        page(to: up(from: end(at: place), by: max(1, height - 1)))
    }

    func pageDown(from place: ChatPlace?) -> ChatPage {
        page(to: down(from: end(at: place), by: max(1, height - 1)))
    }

    private func lines(_ row: Int) -> [String] {
        if let known = laidOut[row] { return known }
        let lines = layOut(rows[row])
        laidOut[row] = lines
        return lines
    }

    private func count(_ row: Int) -> Int { lines(row).count }

    private func end(at place: ChatPlace?) -> End {
        let newest = End(row: rows.count - 1, lines: rows.isEmpty ? 0 : count(rows.count - 1))
        guard let place else { return newest }
        if let row = rows.lastIndex(where: { $0.id == place.message }) {
            return End(row: row, lines: min(place.lines, count(row)))
        }
        let position = place.position ?? .max
        guard let row = rows.lastIndex(where: { $0.position.map { $0 < position } ?? false })
        else { return newest }
        return End(row: row, lines: count(row))
    }

    private func up(from end: End, by lines: Int) -> End {
        var (end, left) = (end, lines)
        while left >= end.lines {
            guard end.row > 0 else { return End(row: 0, lines: 1) }
            left -= end.lines
            end = End(row: end.row - 1, lines: count(end.row - 1))
        }
        end.lines -= left
        return end
    }

    private func down(from end: End, by lines: Int) -> End {
        guard !rows.isEmpty else { return end }
        var (end, left) = (end, lines)
        while true {
            let below = count(end.row) - end.lines
            if left <= below || end.row == rows.count - 1 {
                end.lines += min(left, below)
                return end
            }
            left -= below
            end = End(row: end.row + 1, lines: 0)
        }
    }

    private func fills(_ end: End) -> Bool {
        var (row, lines) = (end.row, end.lines)
        while lines < height, row > 0 {
            row -= 1
            lines += count(row)
        }
        return lines >= height
    }

    private func page(to wanted: End) -> ChatPage {
        guard !rows.isEmpty else {
            return ChatPage(
                lines: [], hasAbove: false, seen: 0..<0, hasBelow: false, place: nil)
        }
        // Never higher than the first page, which is full if anything can fill it.
        let end =
            fills(wanted) ? wanted : max(wanted, down(from: End(row: 0, lines: 0), by: height))
        let last = lines(end.row)
        var seen = Array(last.prefix(end.lines))
        var first = end.row
        while seen.count < height, first > 0 {
            first -= 1
            seen.insert(contentsOf: lines(first), at: 0)
        }
        let isWhole = end.lines == last.count
        let hasBelow = !isWhole || end.row < rows.count - 1
        let row = rows[end.row]
        return ChatPage(
            lines: seen.suffix(height), hasAbove: first > 0 || seen.count > height,
            seen: first..<(isWhole ? end.row + 1 : end.row),
            hasBelow: hasBelow,
            place: hasBelow
                ? ChatPlace(message: row.id, position: row.position, lines: end.lines) : nil)
    }
}

/// What the person has read of a conversation.
enum ChatReading: Equatable {
    case through(UInt64)
    /// These, and not all of what stands before them.
    case between(UInt64, UInt64)
}

extension ChatModel {
    /// What is read of the open conversation now that these of its rows were seen to their ends.
    func reading(of seen: Range<Int>) -> ChatReading? {
        let rows = window.rows
        guard phase == .front, seen.upperBound <= rows.count else { return nil }
        let unread = rows[seen].filter(\.isUnread).compactMap(\.position)
        guard let first = unread.first, let last = unread.last else { return nil }
        guard !rows[..<seen.lowerBound].contains(where: \.isUnread), unreadBeyond == 0 else {
            return .between(first, last)
        }
        // Of what the feed has told: an own message that is only accepted says nothing of those
        // below it.
        let known = rows[..<seen.upperBound].filter { $0.version > 0 }.compactMap(\.position)
        return .through(max(last, known.max() ?? last))
    }

    /// Unread messages that are older than all of the window; of those that are not on this
    /// device, one stands for all.
    var unreadBeyond: Int {
        guard window.hasOlder || window.mayFetchOlder, let row = openRow else { return 0 }
        let beyond = row.unread - window.rows.filter(\.isUnread).count
        return max(beyond, row.hasOlderUnread ? 1 : 0)
    }
}
