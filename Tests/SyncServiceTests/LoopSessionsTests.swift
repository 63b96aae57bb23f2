import Feed
import Model
import Testing

@testable import SyncService

/// Who is logged in on a loop, and what its turn over the heads costs.
@Suite struct LoopSessionsTests {
    private func session(_ number: UInt64, users: UInt64) -> SessionKey {
        SessionKey(
            app: AppID(number % 2 == 0 ? "chat" : "mail"), user: UserID("user \(number % users)"),
            device: DeviceID(high: 1, low: number), role: .app, generation: 1)
    }

    @Test("a turn over the heads looks at each connection once, however many there are")
    func eachOnce() {
        let (count, users) = (UInt64(6_000), UInt64(2_001))
        var sessions = LoopSessions()
        for number in 0..<count {
            sessions.enter(number, of: Hub.UserKey(session(number, users: users)))
        }
        var looked = 0
        let queries = sessions.queries { number in
            looked += 1
            return session(number, users: users)
        }
        #expect(looked == Int(count))
        var heads: Set<Hub.UserKey> = []
        var standings: Set<SessionKey> = []
        for query in queries {
            switch query {
            case .heads(let app, let members):
                #expect(members.count <= LoopSessions.usersPerQuery)
                for user in members {
                    let isNew = heads.insert(Hub.UserKey(app: app, user: user)).inserted
                    #expect(isNew)
                }
            case .standings(let keys): standings.formUnion(keys)
            default: Issue.record("asked for \(query)")
            }
        }
        let all = (0..<count).map { session($0, users: users) }
        #expect(heads == Set(all.map { Hub.UserKey($0) }))
        #expect(standings == Set(all))
    }

    @Test("a user has the connections that are there, and is forgotten with the last one")
    func comeAndGo() {
        var sessions = LoopSessions()
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
        #expect(sessions.queries { session($0, users: 9) }.count == 2, "the other app's are left")
    }
}
