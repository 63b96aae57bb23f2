import EventLoop
import Feed
import SyncService
import Telemetry

/// Carries out what this node's beat finds in its row: an operator's `rouse node drain`, `resume`
/// or `rebalance`, given at whatever node. From any thread.
final class NodeDesk: Sendable {
    private let isDraining: Flag
    private let log: Log
    private let lock = Lock()
    // All guarded by `lock`.
    private nonisolated(unsafe) var standing = NodeStanding()
    private nonisolated(unsafe) var isServing = false
    private nonisolated(unsafe) var sync: SyncService?

    init(isDraining: Flag, log: Log) {
        self.isDraining = isDraining
        self.log = log
    }

    /// Another node is there and takes devices, as the last beat found it.
    var hasOthers: Bool { lock.withLock { standing.hasOthers } }

    /// Devices are served from here on.
    func serve(_ sync: SyncService) {
        let drains = lock.withLock {
            self.sync = sync
            return standing.leaves
        }
        if drains { carryOut(drains: true) }
    }

    /// Told by the store's writer with each beat: it only posts.
    func take(_ new: NodeStanding) {
        let old = lock.withLock {
            defer { standing = new }
            return standing
        }
        if new.leaves != old.leaves { carryOut(drains: new.leaves) }
        if new.waits, !old.waits {
            log.info("node.drain_waits", [LogField("for", "another node that takes devices")])
        }
        if new.hasNamesake, !old.hasNamesake {
            log.warning(
                "node.same_name",
                [
                    LogField(
                        "advice",
                        "another process has this node's name, and both are told what one is to "
                            + "do: give each its own node.name")
                ])
        }
        guard new.surplus > 0, let sync = lock.withLock({ sync }) else { return }
        log.info("node.rebalancing", [LogField("devices", new.surplus)])
        sync.sendAway(new.surplus)
    }

    private func carryOut(drains: Bool) {
        // A node that ends has told its devices when to come back.
        guard !isDraining.has(.end), let sync = lock.withLock({ sync }) else { return }
        if drains {
            isDraining.raise(.operatorsWish)
            log.info("node.draining", [LogField("connections", "sent to other nodes")])
            sync.leave()
        } else {
            isDraining.lower(.operatorsWish)
            log.info("node.resumed")
            sync.resume()
        }
    }
}

/// Why a node takes no new devices. From any thread.
final class Flag: Sendable {
    enum Reason { case end, operatorsWish }

    private let lock = Lock()
    private nonisolated(unsafe) var reasons: Set<Reason> = []  // guarded by `lock`

    var isSet: Bool { lock.withLock { !reasons.isEmpty } }
    func has(_ reason: Reason) -> Bool { lock.withLock { reasons.contains(reason) } }
    func raise(_ reason: Reason) { _ = lock.withLock { reasons.insert(reason) } }
    func lower(_ reason: Reason) { _ = lock.withLock { reasons.remove(reason) } }
}
