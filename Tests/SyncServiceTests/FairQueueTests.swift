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
            let taken = queue.take(next(60))
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
}
