import AppLife
import Foundation
import MemoryStore
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What a notification service extension keeps of a user who has logged out of the app, which does
/// not reach the extension's store.
@Suite(.timeLimit(.minutes(60))) struct LoginTests {
    /// A folder that the app and its extension share, and the extension's own store.
    private struct Group {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("login-\(UUID().uuidString)")
        let own = MemoryStore(tables: LocalSchema.tables)
        var login: LoginFile { LoginFile(path: folder.appendingPathComponent("login").path) }

        init() throws {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true)
        }

        func peek(
            _ number: UInt64, _ stage: Stage, login: LoginFile? = nil, user: String? = nil
        ) async -> Peek {
            let disk = FaultyStore(own)
            let peeker = RouseExtension(
                configuration: ClientConfiguration(
                    app: "chess", device: DeviceID(high: 5, low: 5), user: user,
                    clientName: "test", clientVersion: "1"),
                transport: stage.server, clock: stage.clock, seed: 1,
                login: login ?? self.login, openStore: { TableLocalStore(store: disk) },
                openAppStore: { throw LocalStoreError.unavailable("another container") },
                identity: { _ in "anyone" })
            return await peeker.peek(
                MessageID(high: 0, low: number), in: Stage.room, within: 30_000)
        }

        func kept() throws -> (user: String, token: [UInt8], entries: Int) {
            let store = TableLocalStore(store: own)
            let state = try store.load()
            return (state.user, state.sessionToken, try store.counts().entries)
        }
    }

    @Test("when the user has logged out, the extension erases its own and asks nobody")
    func loggedOut() async throws {
        let (stage, group) = (try Stage(), try Group())
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process(over: FaultyStore(stage.disk), login: group.login)
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        #expect(group.login.read() == .user("anna"))
        #expect(await group.peek(1, stage).notice?.body == "1")
        #expect(try group.kept() == ("anna", [7], 1))
        #expect(try await rouse.logOut())
        #expect(group.login.read() == .nobody)
        // An alert that was on its way, or of a server that has not heard of it.
        stage.server.feed.withLock { $0.hellos = [] }
        let peek = await group.peek(1, stage)
        #expect(peek.isLoggedOut && peek.notice == nil && peek.badge == nil)
        #expect(try group.kept() == ("", [], 0))
        #expect(stage.server.feed.withLock { $0.hellos }.isEmpty)
    }

    @Test("of a user who has taken the device the former one's message is not shown")
    func otherUser() async throws {
        let (stage, group) = (try Stage(), try Group())
        #expect(group.login.write("anna"))
        stage.server.publish(Stage.message(1, body: "for anna"), unread: 1)
        #expect(await group.peek(1, stage).notice?.body == "for anna")
        stage.server.feed.withLock { ($0.user, $0.entries) = ("ben", []) }
        let rouse = stage.process(
            user: "ben", over: FaultyStore(stage.disk), login: group.login)
        await rouse.scene(.active)
        while group.login.read() != .user("ben") { await Task.yield() }
        stage.server.feed.withLock { $0.challenges = true }
        let peek = await group.peek(1, stage)
        #expect(peek.notice == nil && !peek.isLoggedOut)
        #expect(try group.kept().user == "ben" && group.kept().entries == 0)
        // One whose own keychain is behind looks at nothing.
        #expect(await group.peek(1, stage, user: "anna").isLoggedOut)
        #expect(try group.kept() == ("", [], 0))
    }

    @Test("where the record cannot be read nothing is erased, asked or shown")
    func unreadable() async throws {
        let (stage, group) = (try Stage(), try Group())
        #expect(group.login.write("anna"))
        stage.server.publish(Stage.message(1), unread: 1)
        _ = await group.peek(1, stage)
        stage.server.feed.withLock { $0.hellos = [] }
        // No container, and a name that stands for no file.
        for path in ["", group.folder.path, group.folder.path + "/login/login"] {
            #expect(LoginFile(path: path).read() == .unknown)
            #expect(!LoginFile(path: path).write("anna"))
            #expect(await group.peek(1, stage, login: LoginFile(path: path)) == Peek())
        }
        #expect(try group.kept() == ("anna", [7], 1))
        #expect(stage.server.feed.withLock { $0.hellos }.isEmpty)
    }

    @Test("an app that has said nothing yet has nobody logged in")
    func neverSaid() async throws {
        let (stage, group) = (try Stage(), try Group())
        let store = TableLocalStore(store: group.own)
        try store.saveSession(token: [7], user: "anna")
        #expect(await group.peek(1, stage).isLoggedOut)
        #expect(try group.kept() == ("", [], 0))
    }
}
