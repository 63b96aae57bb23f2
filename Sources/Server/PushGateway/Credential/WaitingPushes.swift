import Feed
import Model
import Wake

/// Claimed pushes that wait for a stream: wakes before alerts before badges, each class in the
/// order of its claims.
struct WaitingPushes {
    private var lanes: [[HeldPush]] = [[], [], []]

    private static func lane(_ kind: PushKind) -> Int {
        switch kind {
        case .silent: 0
        case .alert: 1
        case .badge: 2
        }
    }

    var count: Int { lanes.reduce(0) { $0 + $1.count } }
    var isEmpty: Bool { lanes.allSatisfy(\.isEmpty) }

    mutating func append(_ push: HeldPush) { lanes[Self.lane(push.job.kind)].append(push) }

    /// Back to the front, in their order.
    mutating func giveBack(_ pushes: [HeldPush]) {
        for push in pushes.reversed() { lanes[Self.lane(push.job.kind)].insert(push, at: 0) }
    }

    mutating func takeFirst() -> HeldPush? {
        for lane in lanes.indices where !lanes[lane].isEmpty {
            return lanes[lane].removeFirst()
        }
        return nil
    }

    /// Takes out those whose lease is too short by now.
    mutating func takeLate(now: Instant, reserve: Milliseconds) -> [HeldPush] {
        take { $0.sendBefore(reserve: reserve) <= now }
    }

    mutating func takeAll() -> [HeldPush] { take { _ in true } }

    private mutating func take(_ isWanted: (HeldPush) -> Bool) -> [HeldPush] {
        var taken: [HeldPush] = []
        for lane in lanes.indices where lanes[lane].contains(where: isWanted) {
            taken += lanes[lane].filter(isWanted)
            lanes[lane].removeAll(where: isWanted)
        }
        return taken
    }
}
