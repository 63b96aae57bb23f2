import AppLife
import Foundation
import Model
import RouseClient
import Synchronization
import Testing
import Wire

/// What a person has put aside and was told of: it comes no second time with a sound.
@Suite struct ToldTests {
    private static func path() -> String {
        FileManager.default.temporaryDirectory.appendingPathComponent(
            "rouse-told-\(UUID().uuidString.prefix(8))"
        ).path
    }

    private static func id(_ number: UInt64) -> String {
        MessageID(high: 0, low: number).description
    }

    private func withFile(_ body: (ToldFile, _ path: String) throws -> Void) rethrows {
        let path = Self.path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(ToldFile(path: path), path)
    }

    @Test("what one process notes another finds, the newest thousands of it, in a file of one size")
    func file() throws {
        try withFile { app, path throws in
            #expect(!app.contains(Self.id(1)))
            let count: UInt64 = 20_000
            for number in 1...count { app.note(Self.id(number)) }
            app.note(Self.id(count))
            let appExtension = ToldFile(path: path)
            let newest = (count - 1_000...count).count { appExtension.contains(Self.id($0)) }
            #expect(newest > 900)
            #expect((1...1_000).count { appExtension.contains(Self.id($0)) } < 100)
            #expect(!appExtension.contains(Self.id(count + 1)))
            let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
            #expect(try #require(size) <= 64 << 10)
        }
    }

    @Test("what names no message is not kept, and a file that is damaged or away is none")
    func nonsense() throws {
        try withFile { file, path throws in
            for words in ["badge", "", Self.id(0)] {
                file.note(words)
                #expect(!file.contains(words))
            }
            #expect(!FileManager.default.fileExists(atPath: path))
            try Data(repeating: 7, count: 33).write(to: URL(fileURLWithPath: path))
            file.note(Self.id(1))
            #expect(file.contains(Self.id(1)) && !file.contains(Self.id(2)))
            let away = ToldFile(path: "/nonexistent/told")
            away.note(Self.id(1))
            #expect(!away.contains(Self.id(1)))
        }
    }

    @Test("an alert of what the person was told of and has put aside is a repeat")
    func repeatsOfWhatIsGone() {
        withFile { file, _ in
            // The first alert of it, which says that they are told from now on.
            #expect(!RouseExtension.isRepeat(Self.id(1), among: [], told: file))
            #expect(RouseExtension.isRepeat(Self.id(1), among: [], told: file))
            #expect(!RouseExtension.isRepeat(Self.id(1), among: []))
        }
    }

    @Test("the app notes what it has shown, and shows nothing that an alert has told of")
    func theAppAndItsExtension() async throws {
        let path = Self.path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = ToldFile(path: path)
        let stage = try Stage()
        // Its alert was put aside, and the server knows no more of it: the token has died.
        _ = RouseExtension.isRepeat(Self.id(1), among: [], told: file)
        stage.server.publish(Stage.message(1), unread: 1)
        stage.server.publish(Stage.message(2), unread: 2)
        let rouse = stage.process(told: file)
        #expect(await rouse.woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen == [2])
        #expect(RouseExtension.isRepeat(Self.id(2), among: [], told: file))
    }

    @Test("an edit replaces what an alert has told of, if it stands, and else brings nothing back")
    func edits() async throws {
        for stands in [true, false] {
            let path = Self.path()
            defer { try? FileManager.default.removeItem(atPath: path) }
            let file = ToldFile(path: path)
            let stage = try Stage()
            _ = RouseExtension.isRepeat(Self.id(1), among: [], told: file)
            if stands { stage.phone.alert(Stage.message(1)) }
            guard case .message(var edited) = Stage.message(1, body: "new").body else { return }
            edited.editedMs = 5
            var entry = Stage.message(1)
            entry.body = .message(edited)
            stage.server.publish(entry, unread: 1)
            _ = await stage.process(told: file).woken(by: nil, within: 30_000)
            #expect(stage.phone.notices.map(\.isQuiet) == (stands ? [true] : []))
        }
    }
}
