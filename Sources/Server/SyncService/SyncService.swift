import EventLoop
public import Feed
public import Model
public import StoreService
public import Telemetry

/// The device port: loops that share one port, and the hub that connects them to the store's
/// commits.
public final class SyncService: Sendable {
    /// The hub alone: the store is started with its `committed` before the service exists.
    public struct Doorbell: Sendable {
        let hub = Hub()

        public init() {}

        /// Told by the store's writer after each commit.
        public func committed(_ effects: Effects) { hub.committed(effects) }

        /// Connections of devices now.
        public var connections: Int { hub.connections.current }

        /// What other nodes of the store committed may not have been told.
        public func lostHints() { hub.lostHints() }

        /// Who gets signals has changed in more ways than another node can tell.
        public func audiencesChanged() { hub.audiencesChanged() }

        /// Somebody signals through another node of the store.
        public func signalled(_ signal: NodeSignal) { hub.signalledElsewhere(signal) }
    }

    /// The port in use.
    public let port: UInt16
    /// The port without TLS; `nil`: there is none.
    public let plainPort: UInt16?
    let threads: [LoopThread]
    private let shells: [ShellBox]
    private let gates: RateGates

    /// A loop's shell, named from other threads only to be handed back to its own.
    private struct ShellBox: @unchecked Sendable {
        // @unchecked: used inside `LoopThread.perform` of the same loop only.
        let shell: SyncLoop
    }

    private init(
        port: UInt16, plainPort: UInt16?, threads: [LoopThread], shells: [ShellBox],
        gates: RateGates
    ) {
        self.port = port
        self.plainPort = plainPort
        self.threads = threads
        self.shells = shells
        self.gates = gates
    }

    /// Opens the port and serves.
    public static func start(
        _ configuration: SyncServiceConfiguration, tls: TLSMaterial, store: StoreService,
        doorbell: Doorbell, log: Log, metrics: Metrics
    ) throws -> SyncService {
        let options = SyncOptions(configuration)
        let syncMetrics = SyncMetrics(metrics)
        metrics.reading(
            "rouse_receiving_bytes", "Bytes of frames that have begun, over all connections."
        ) { [receiving = options.receiving] in Double(receiving.current) }
        metrics.reading("rouse_sessions_open", "Sessions in the hub.") {
            Double(doorbell.hub.count)
        }
        var port = configuration.port
        var plain = configuration.plain
        var threads: [LoopThread] = []
        var shells: [ShellBox] = []
        for number in 0..<max(1, configuration.loops) {
            let (wanted, wantedPlain) = (port, plain)
            let (thread, (shell, bound, boundPlain)) = try LoopThread.startReturning(
                name: "sync-\(number)"
            ) {
                loop in
                let shell = try SyncLoop(
                    loop: loop, loopCount: max(1, configuration.loops), options: options,
                    hub: doorbell.hub, service: store, tls: tls, log: log, metrics: syncMetrics)
                let bound = try shell.listen(
                    host: configuration.host, port: wanted, inherited: configuration.inherited)
                let boundPlain = try wantedPlain.map { try shell.listenPlain($0) }
                return (ShellBox(shell: shell), bound, boundPlain)
            }
            port = bound
            if let boundPlain { plain?.port = boundPlain }
            threads.append(thread)
            shells.append(shell)
        }
        return SyncService(
            port: port, plainPort: plain?.port, threads: threads, shells: shells,
            gates: options.gates)
    }

    /// Lets new connections use another certificate. A pair that does not fit is an error and
    /// changes nothing.
    public func reload(_ tls: TLSMaterial) throws {
        _ = try SyncLoop.context(tls)
        for (thread, box) in zip(threads, shells) {
            thread.perform { _ in
                // Checked above: only a lack of memory could fail now, and then the old one stays.
                try? box.shell.reload(tls)
            }
        }
    }

    /// Other limits from here on. Who has a place keeps it.
    public func change(_ limits: SyncLimits) {
        gates.rates = limits.rates
        for (thread, box) in zip(threads, shells) {
            thread.perform { _ in box.shell.change(limits) }
        }
    }

    /// Asks every client to come back, stops accepting at the deadline and closes each by then.
    /// `done` is called once, on a loop's thread, when no connection is left or the deadline and
    /// the time to say goodbye have passed.
    ///
    /// - Parameters:
    ///   - settling: Nobody is told before.
    ///   - isElsewhere: Asked then: other nodes take the devices, so that they need not wait for
    ///     the next process.
    public func drain(
        within deadline: Milliseconds, settling: Milliseconds = 0,
        isElsewhere: @escaping @Sendable () -> Bool = { false },
        done: @escaping @Sendable () -> Void
    ) {
        let finished = Latch(count: threads.count)
        let leavingTime = min(deadline / 2, Self.leavingTime)
        for (thread, box) in zip(threads, shells) {
            thread.perform { loop in
                let last = loop.now + deadline + 3_000
                var settled: LoopTimer?
                if settling > 0 {
                    settled = loop.timer {
                        box.shell.drain(
                            within: deadline - min(settling, deadline), isElsewhere: isElsewhere())
                    }
                    settled?.start(afterMilliseconds: settling)
                } else {
                    box.shell.drain(within: deadline, isElsewhere: isElsewhere())
                }
                var poll: LoopTimer?
                poll = loop.timer {
                    if loop.now + leavingTime >= last - 3_000 { box.shell.leaveNewcomers() }
                    if loop.now >= last - 3_000 { box.shell.endDrain() }
                    guard box.shell.count == 0 || loop.now >= last else { return }
                    box.shell.endDrain()
                    settled?.close()
                    poll?.close()
                    (settled, poll) = (nil, nil)
                    finished.arrive()
                    if finished.wait(seconds: 0) { done() }
                }
                poll?.start(afterMilliseconds: 20, repeatingMilliseconds: 20)
            }
        }
    }

    /// For so long before its end a process takes no connection that the next one can take: who is
    /// in by then has the time to log in.
    private static let leavingTime: Milliseconds = 2_000

    /// Calls `done` on a loop's thread, at least once, when every loop has had a turn.
    public func whenAllTurned(_ done: @escaping @Sendable () -> Void) {
        let turned = Latch(count: threads.count)
        for thread in threads {
            thread.perform { _ in
                turned.arrive()
                if turned.wait(seconds: 0) { done() }
            }
        }
    }

    /// Asks every client to go to another node, and whoever comes from now on. It goes on.
    public func leave() {
        for (thread, box) in zip(threads, shells) {
            thread.perform { _ in box.shell.drain(within: nil, isElsewhere: true) }
        }
    }

    /// Clients may stay again.
    public func resume() {
        for (thread, box) in zip(threads, shells) { thread.perform { _ in box.shell.resume() } }
    }

    /// Asks about so many clients to go to another node.
    public func sendAway(_ count: Int) {
        for (index, (thread, box)) in zip(threads, shells).enumerated() {
            let share = (count + index) / threads.count
            if share > 0 { thread.perform { _ in box.shell.sendAway(share) } }
        }
    }

    /// Closes everything at once.
    public func stop() {
        for (thread, box) in zip(threads, shells) {
            thread.perform { _ in box.shell.abandonAll() }
            thread.stop()
        }
        for thread in threads { thread.join() }
    }
}
