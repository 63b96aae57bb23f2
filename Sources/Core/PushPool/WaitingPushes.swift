import Feed
import Model
import Wake

/// Claimed pushes of one class that wait for a stream, in the order of their claims.
struct WaitingPushes {
    private var pushes: [HeldPush] = []
    private var start = 0

    var count: Int { pushes.count - start }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ push: HeldPush) { pushes.append(push) }

    /// Back to the front, in their order.
    mutating func giveBack(_ more: [HeldPush]) {
        pushes.replaceSubrange(..<start, with: more)
        start = 0
    }

    mutating func takeFirst() -> HeldPush? {
        guard start < pushes.count else { return nil }
        start += 1
        let push = pushes[start - 1]
        if start > 64, start * 2 > pushes.count {
            pushes.removeFirst(start)
            start = 0
        }
        return push
    }

    /// Takes out those that are wanted, in their order.
    mutating func take(where isWanted: (HeldPush) -> Bool) -> [HeldPush] {
        guard pushes[start...].contains(where: isWanted) else { return [] }
        let all = takeAll()
        pushes = all.filter { !isWanted($0) }
        return all.filter(isWanted)
    }

    mutating func takeAll() -> [HeldPush] {
        defer {
            pushes = []
            start = 0
        }
        return Array(pushes[start...])
    }
}
