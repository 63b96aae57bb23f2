import Foundation
import MemoryStore
import Model
import StoreService
import Telemetry
import Testing

@testable import Feed
@testable import RouseServer

@Suite struct UnreadableRowTests {
    private static let app = AppID("chess")

    /// A store in which the message of a change on its way is gone.
    private static func damaged() throws -> MemoryStore {
        let store = MemoryStore(
            tables: Schema.tables, lockRanks: Schema.lockRanks,
            clock: Timestamp(milliseconds: 1_000_000))
        try store.arrange { transaction throws(StoreError) in
            let now = store.now()
            let room = ConversationID(high: 1, low: 2)
            try transaction.put(AppRecord(app: app, createdAt: now))
            try transaction.put(
                ConversationRecord(app: app, conversation: room, creator: "", createdAt: now))
            try transaction.put(
                FanOutRecord(
                    app: app, conversation: room, revision: 7, change: .message,
                    object: MessageID(high: 3, low: 4).bytes, cursor: "", createdAt: now,
                    turnAt: now))
        }
        return store
    }

    @Test("the log says that the store fails, and why")
    func failureIsLogged() throws {
        let pipe = Pipe()
        let log = Log(level: .info, descriptor: pipe.fileHandleForWriting.fileDescriptor)
        Server.report(.failed(.full("no space: rouse.db")), to: log)
        let line = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
        #expect(line.contains("level=error event=store.failed"), "\(line)")
        #expect(line.contains("no space: rouse.db"), "\(line)")
        Server.report(.works, to: log)
        let next = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
        #expect(next.contains("event=store.works"), "\(next)")
    }

    @Test("a row that is met again and again is logged once an hour")
    func isLoggedOnceAnHour() throws {
        let pipe = Pipe()
        let file = pipe.fileHandleForWriting
        let lines = UnreadableLog(
            Log(level: .warning, descriptor: file.fileDescriptor), rowsMax: 8)
        func row(_ number: Int) -> UnreadableRow {
            UnreadableRow(
                app: Self.app, user: UserID("u\(number)"), conversation: .none, detail: "wake")
        }
        let hour = UnreadableLog.pause
        for second in 0..<UInt64(10) { lines.report([row(1)], now: second * 1_000) }
        lines.report([row(1), row(2)], now: hour - 1)
        lines.report([row(1), row(2)], now: hour)
        // Of more than it remembers none is logged, but for what the hour is over of.
        for number in 3...20 { lines.report([row(number)], now: hour) }
        lines.report([row(5_000)], now: hour * 2 - 1)
        lines.report([row(5_000)], now: hour * 2)
        var text = ""
        while !text.contains("user=u5000") {
            let data = pipe.fileHandleForReading.availableData
            text += String(decoding: data, as: UTF8.self)
        }
        func count(_ number: Int) -> Int {
            text.split(separator: "\n").count { $0.contains("user=u\(number) ") }
        }
        #expect(count(1) == 2 && count(2) == 1, "\(text.prefix(2_000))")
        #expect(count(8) == 1 && count(9) == 0)
        #expect(count(5_000) == 1)
    }

    @Test("a row that cannot be read is counted, and the log says which")
    func isCountedAndLogged() throws {
        let pipe = Pipe()
        let log = Log(level: .warning, descriptor: pipe.fileHandleForWriting.fileDescriptor)
        let store = try StoreService.start(
            duties: [
                StoreDuty(
                    name: "fan-out", request: .continueFanOut(recipients: 64), interval: 1_000,
                    follows: .fanOut)
            ], boot: BootID(high: 1, low: 1), epochHalf: 7,
            open: { try Self.damaged() }, onCommit: { _ in },
            onUnreadable: { UnreadableLog(log).report($0) })
        defer { store.stop() }
        let metrics = Metrics()
        Server.register(metrics, store: store)
        // The line comes when the duty has its first turn.
        let line = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
        #expect(line.contains("store.row_unreadable"), "\(line)")
        #expect(line.contains("app=chess"), "\(line)")
        #expect(line.contains("fan_out 7"), "\(line)")
        #expect(metrics.text.contains("\nrouse_store_unreadable_rows_total 1\n"))
    }
}
