import EventLoop
import Feed
import Model
import Testing
import Wire

@testable import StoreService
@testable import SyncService

/// Who is logged in on a loop, and what its turn over the heads costs.
@Suite struct LoopSessionsTests {
    private func session(_ number: UInt64, users: UInt64) -> SessionKey {
        SessionKey(
            app: AppID(number % 2 == 0 ? "chat" : "mail"), user: UserID("user \(number % users)"),
            device: DeviceID(high: 1, low: number), role: .app, generation: 1)
    }

    private func users(_ queries: [StoreQuery]) -> [Hub.UserKey] {
        queries.flatMap { query -> [Hub.UserKey] in
            guard case .heads(let app, let members) = query else { return [] }
            #expect(members.count <= LoopSessions.usersPerQuery)
            return members.map { Hub.UserKey(app: app, user: $0) }
        }
    }

    private func standings(_ queries: [StoreQuery]) -> [SessionKey] {
        queries.flatMap { query -> [SessionKey] in
            if case .standings(let keys) = query { keys } else { [] }
        }
    }

    @Test("a turn over the heads looks at those who are due, and a round at each once")
    func eachOnce() {
        let (count, users) = (UInt64(18_000), UInt64(6_001))
        var sessions = LoopSessions(turns: 60)
        for number in 0..<count {
            sessions.enter(number, of: Hub.UserKey(session(number, users: users)))
        }
        let all = (0..<count).map { session($0, users: users) }
        let different = Set(all.map { Hub.UserKey($0) }).count
        for _ in 0..<3 {
            var heads: [Hub.UserKey] = []
            var found: [SessionKey] = []
            for _ in 0..<60 {
                var looked = 0
                let queries = sessions.nextTurn { number in
                    looked += 1
                    return session(number, users: users)
                }
                // Users have 3 connections, or one: of 12,002 users, 201 in a turn.
                #expect(self.users(queries).count <= different / 60 + 1)
                #expect(looked <= 3 * (different / 60 + 1))
                heads += self.users(queries)
                found += standings(queries)
            }
            #expect(heads.count == different && Set(heads).count == different)
            #expect(found.count == all.count && Set(found) == Set(all))
        }
    }

    @Test("few users are not looked at more often than many")
    func few() {
        var sessions = LoopSessions(turns: 60)
        for number in 0..<UInt64(7) {
            sessions.enter(number, of: Hub.UserKey(session(number, users: 7)))
        }
        var looks = 0
        for _ in 0..<600 { looks += users(sessions.nextTurn { session($0, users: 7) }).count }
        #expect(looks == 70)
    }

    @Test("after something was not told, all are looked at, once")
    func loss() {
        var sessions = LoopSessions(turns: 60)
        for number in 0..<UInt64(1_000) {
            sessions.enter(number, of: Hub.UserKey(session(number, users: 1_000)))
        }
        sessions.allAreDue()
        #expect(users(sessions.nextTurn { session($0, users: 1_000) }).count == 1_000)
        #expect(users(sessions.nextTurn { session($0, users: 1_000) }).count < 18)
    }

    @Test("those who come and go a thousand times are due no more often, and take no more room")
    func comeAndGoOften() {
        var sessions = LoopSessions(turns: 10)
        var looks: [Hub.UserKey: Int] = [:]
        for round in 0..<1_000 {
            for number in 0..<UInt64(20) {
                let user = Hub.UserKey(session(number, users: 20))
                if number < 10, round > 0 { sessions.leave(number, of: user) }
                if number < 10 || round == 0 { sessions.enter(number, of: user) }
            }
            for user in users(sessions.nextTurn { session($0, users: 20) }) {
                looks[user, default: 0] += 1
            }
            #expect(sessions.waiting <= 2 * 20 + 64 + 20)
        }
        #expect(looks.values.reduce(0, +) == 2_000)
        for number in 10..<UInt64(20) {
            #expect(looks[Hub.UserKey(session(number, users: 20))] ?? 0 >= 100)
        }
    }

    @Test("a user has the connections that are there, and is forgotten with the last one")
    func comeAndGo() {
        var sessions = LoopSessions(turns: 1)
        let anna = Hub.UserKey(app: AppID("chat"), user: UserID("anna"))
        let other = Hub.UserKey(app: AppID("mail"), user: UserID("anna"))
        sessions.enter(1, of: anna)
        sessions.enter(2, of: anna)
        sessions.enter(3, of: other)
        #expect(sessions.connections(of: anna) == [1, 2])
        sessions.leave(1, of: anna)
        sessions.leave(1, of: anna)
        #expect(sessions.connections(of: anna) == [2])
        #expect(sessions.connections(of: other) == [3])
        sessions.leave(2, of: anna)
        #expect(sessions.connections(of: anna) == [])
        #expect(sessions.nextTurn { session($0, users: 9) }.count == 2, "the other app's are left")
    }

    @Test("the hub notes which loop was not told of something, once")
    func losses() throws {
        let loop = try Loop()
        defer { loop.close() }
        let hub = Hub()
        let places = [1, 2].map { limit in
            ConnectionPlace(
                loop: hub.add(Mailbox<HubMessage>(loop: loop, limit: limit) { _ in }), number: 7)
        }
        let keys = places.indices.map { session(UInt64($0), users: 2) }
        for (key, place) in zip(keys, places) { hub.enter(key, at: place) }
        var moved = Effects()
        for key in keys {
            moved.changes.note(FeedChange(app: key.app, user: key.user, head: 9, kinds: 1))
        }
        for round in 0..<3 {
            hub.committed(moved)
            #expect(hub.takeLoss(loop: 0) == (round > 0))
            #expect(hub.takeLoss(loop: 1) == (round > 1))
            #expect(!hub.takeLoss(loop: 0))
        }
        var ended = Effects()
        ended.ended = [EndedSession(session: keys[0], code: .revoked)]
        hub.committed(ended)
        #expect(hub.takeLoss(loop: 0) && !hub.takeLoss(loop: 1))
    }
}
