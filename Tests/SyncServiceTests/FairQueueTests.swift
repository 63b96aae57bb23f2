import Feed
import Model
import Testing

@testable import StoreService

@Suite struct FairQueueTests {
    @Test("owners take turns, each in its order, over several takes")
    func turns() {
        var queue = FairQueue<String, Int>()
        for item in 0..<6 { queue.append(item, of: "a") }
        queue.append(10, of: "b")
        queue.append(11, of: "b")
        queue.append(20, of: "c")
        #expect(queue.take(4) == [0, 10, 20, 1])
        // Who comes later does not wait for all of a's.
        queue.append(30, of: "d")
        #expect(queue.take(3) == [11, 2, 30])
        #expect(queue.count == 3)
        #expect(queue.take(100) == [3, 4, 5])
        #expect(queue.isEmpty && queue.take(1) == [])
    }

    @Test("what there was no room for comes first again, before what came meanwhile")
    func putBack() {
        var queue = FairQueue<String, Int>()
        for item in 0..<4 { queue.append(item, of: "a") }
        queue.append(10, of: "b")
        #expect(queue.take(4) == [0, 10, 1, 2])
        queue.append(11, of: "b")
        queue.putBack([(item: 10, owner: "b"), (item: 1, owner: "a"), (item: 2, owner: "a")])
        #expect(queue.count == 5)
        let rest = queue.take(9)
        #expect(rest.filter { $0 < 10 } == [1, 2, 3] && rest.filter { $0 >= 10 } == [10, 11])
        #expect(queue.isEmpty)
    }

    @Test("against a plain list: nothing lost, nothing doubled, order within an owner kept")
    func model() {
        var queue = FairQueue<Int, Int>()
        var waiting: [Int: [Int]] = [:]
        var state: UInt64 = 7
        func next(_ bound: UInt64) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % bound)
        }
        for item in 0..<20_000 {
            let owner = next(5) * next(5)
            queue.append(item, of: owner)
            waiting[owner, default: []].append(item)
            guard next(40) == 0 else { continue }
            let limit = next(60)
            let taken = queue.take(limit)
            #expect(taken.count == min(limit, queue.count + taken.count), "something was left")
            let served = next(UInt64(taken.count + 1))
            queue.putBack(
                taken[served...].map { item in
                    (item: item, owner: waiting.first { $0.value.contains(item) }?.key ?? -1)
                })
            for taken in taken[..<served] {
                let found = waiting.first { $0.value.first == taken }?.key
                #expect(found != nil, "\(taken) was not next of anybody")
                if let found { waiting[found]?.removeFirst() }
            }
            #expect(queue.count == waiting.values.reduce(0) { $0 + $1.count })
        }
    }

    @Test("whose turn it was that there was no room for is first again")
    func putBackTurn() {
        var queue = FairQueue<String, Int>()
        queue.append(0, of: "a")
        for item in [10, 11] { queue.append(item, of: "b") }
        #expect(queue.take(1) == [0])
        // Nothing of a's waits but what comes back.
        queue.putBack([(item: 0, owner: "a")])
        #expect(queue.take(3) == [0, 10, 11])
        // Nor does an owner who is there already get a turn more.
        for item in [0, 1, 2, 3] { queue.append(item, of: "a") }
        for item in [10, 11, 12] { queue.append(item, of: "b") }
        #expect(queue.take(2) == [0, 10])
        queue.putBack([(item: 10, owner: "b")])
        #expect(queue.take(5) == [1, 10, 2, 11, 3])
    }

    @Test("a line whose first are taken and come back, however many they are")
    func line() {
        var line = Line<Int>()
        for element in 0..<3_000 { line.append(element) }
        for expected in 0..<2_500 { #expect(line.takeFirst() == expected) }
        #expect(line.count == 500)
        line.prepend([2_498, 2_499])
        line.prepend(Array(0..<2_498))
        #expect(line.count == 3_000)
        for expected in 0..<3_000 { #expect(line.takeFirst() == expected) }
        #expect(line.isEmpty && line.takeFirst() == nil)
    }

    @Test("apps take turns, and within an app its users")
    func users() {
        func of(_ app: String, _ user: String) -> QueryOwner {
            QueryOwner(app: AppID(app), user: UserID(user))
        }
        var queue = FairQueueOfUsers<String>()
        for item in ["a1", "a2", "a3", "a4"] { queue.append(item, of: of("shop", "anna")) }
        for item in ["b1", "b2"] { queue.append(item, of: of("shop", "bert")) }
        queue.append("own", of: QueryOwner())
        for item in ["c1", "c2"] { queue.append(item, of: of("game", "anna")) }
        #expect(queue.take(5) == ["a1", "own", "c1", "b1", "c2"])
        #expect(queue.count == 4 && !queue.isEmpty)
        queue.append("c3", of: of("game", "anna"))
        #expect(queue.take(2) == ["a2", "c3"])
        // An app that is alone takes all turns.
        #expect(queue.take(9) == ["b2", "a3", "a4"])
        #expect(queue.isEmpty && queue.take(1) == [])
    }

    @Test("a question takes its app's share of the reader, and within it that of its user")
    func owners() {
        let (app, user) = (AppID("shop"), UserID("anna"))
        let (device, conversation) = (DeviceID(high: 0, low: 1), ConversationID(high: 0, low: 2))
        let page = PageQuery(app: app, user: user, device: device, after: 0, bytes: 1)
        let own = QueryOwner(app: app, user: user)
        #expect(StoreQuery.page(page).owner == own)
        #expect(StoreQuery.audience(app, user, conversation).owner == own)
        let ofBackend: [StoreQuery] = [
            .heads(app, [user]), .devices(app, user), .device(app, device),
            .conversation(app, conversation), .wakes(app, device, limit: 1),
        ]
        #expect(ofBackend.allSatisfy { $0.owner == QueryOwner(app: app) })
        #expect(StoreQuery.standings([]).owner == QueryOwner())
    }

    @Test("a request takes its app's share of the writer")
    func apps() {
        let app = AppID("shop")
        let session = SessionKey(
            app: app, user: UserID("anna"), device: DeviceID(high: 0, low: 1), role: .app,
            generation: 1)
        let ofApp: [StoreRequest] = [
            .acknowledge(Acknowledge(session: session, applied: 1, completesSync: false)),
            .change(app: app, .deleteMessage(nil), idempotency: nil),
            .schedules(.cancel(app: app, MessageID(high: 0, low: 4), idempotency: nil)),
            .webhooks(.test(WebhookKey(app: app, webhook: WebhookID(high: 0, low: 3)))),
        ]
        #expect(ofApp.allSatisfy { $0.app == app })
        #expect(StoreRequest.keepAlive.app == nil)
    }
}
