import Glibc
import Model
import RouseClient
import SyncClient
import Testing

@testable import Chat

/// What keeps the app from its work stands on the screen, whole, until it is over.
@Suite struct TroubleTests {
    init() { setlocale(LC_CTYPE, "C.UTF-8") }

    private let long = "the file is locked by another process, which may be a chat of this folder"

    private func text(_ model: ChatModel, columns: Int = 80, rows: Int = 24) -> String {
        let drawing = ChatDrawing(model, columns: columns, rows: rows)
        #expect(drawing.lines.count == rows)
        for line in drawing.lines { #expect(ChatText.width(line) == columns) }
        // The app's part, in one line.
        return drawing.lines.map { $0.prefix(columns > 71 ? 51 : columns) }
            .joined(separator: " ").split(separator: " ").joined(separator: " ")
    }

    private func after(_ records: RouseRecord...) -> ChatModel {
        var model = ChatModel.looking()
        model.opened = nil
        for record in records { model.trouble = model.trouble.after(record) ?? model.trouble }
        return model
    }

    @Test("it can be read to its end, whatever else is said, and on a small terminal too")
    func whole() {
        var model = after(.storeFailed(long))
        model.remark = "there is no /nonsense; /help shows what there is"
        #expect(text(model).contains("the store: \(long)"))
        #expect(text(model).contains(model.remark))
        #expect(text(model, columns: 60, rows: 12).contains("the store: \(long)"))
        #expect(text(model, columns: 40, rows: 8).contains("…"))
        model.remark = String(repeating: "very long ", count: 400)
        #expect(text(model).contains("…"))
    }

    @Test("why there is no connection is told until there is one")
    func server() {
        let lost = RouseRecord.lost(why: "the certificate is of an unknown authority")
        #expect(text(after(lost)).contains("no connection to the server: the certificate is of"))
        // Trying again is not the end of it.
        #expect(after(lost, .left).trouble == after(lost).trouble)
        let refused = text(after(lost, .event(.loginRefused(2_001))))
        #expect(refused.contains("the server refused the login: it does not know the key"))
        #expect(!refused.contains("2001") && !refused.contains("no connection"))
        #expect(text(after(.event(.upgradeRequired))).contains("newer app"))
        #expect(after(lost, .event(.opened(user: "anna", node: "1"))).trouble == ChatTrouble())
    }

    @Test("a store that failed does so until what came is stored")
    func store() {
        let failed = RouseRecord.storeFailed(long)
        #expect(after(failed, .lost(why: "gone")).trouble.store.contains(long))
        #expect(
            after(failed, .event(.synced(Cursor(epoch: Epoch(high: 1, low: 1), seq: 1)))).trouble
                == ChatTrouble())
    }

    @Test("nobody is told that there is nothing where it is not known")
    func unknown() {
        var model = after(.storeFailed(long))
        #expect(text(model).contains("The conversations are not known yet. /kill and /start"))
        model = after()
        model.hasList = true
        #expect(!text(model).contains("No conversations yet"))
        model.hasSynced = true
        #expect(text(model).contains("No conversations yet"))
        model.opened = ChatModel.room
        #expect(text(model).contains("Nobody has said anything yet"))
        model.hasSynced = false
        #expect(text(model).contains("The messages are not known yet"))
    }

    @Test("a refused login is told in words")
    func words() {
        for code in [2_001, 2_002, 2_003, 2_004, 2_006] as [UInt32] {
            #expect(!"\(Refusal(code: code))".contains("\(code)"))
        }
    }
}
