import DeviceModel
import EventLoop
import Model
import Wake

/// What `rouse fleet` runs.
public struct FleetOptions: Sendable {
    public var devices = 10_000
    public var days = 3
    /// In the order of the report.
    public var policies: [PolicyChoice] = []
    /// `nil`: drawn from the model's distributions.
    public var traffic: RecordedTraffic?
    /// What the traffic is called in the report.
    public var trafficName = "everyday"
    public var seed: UInt64 = 1
    public var threads = 1
    public var model = FleetModel()
    /// Devices that one thread takes at a time; another number draws other lives.
    var shardDevices = 1_000
    /// Devices of which it is found out what an app's devices learn together.
    static let trialDevices = 1_000
    /// Devices done, of all; called from any thread, one call at a time.
    public var progress: @Sendable (Int, Int) -> Void = { _, _ in }

    public init() {}
}

/// A million lives under several policies, on one machine, in virtual time.
///
/// Users do not touch each other, so each is lived from beginning to end by itself, under one
/// policy after the other, and memory does not grow with their number. A shard is so many devices
/// by index; threads take shards as they come, and what comes of them are sums of whole numbers:
/// neither order nor number of threads shows in the result.
public enum Fleet {
    public static func run(_ options: FleetOptions) -> FleetReport {
        let work = FleetWork(options)
        let threads = max(1, min(options.threads, work.shards))
        WorkThread.run(onEachOf: threads, "shard") { work.run() }
        return FleetReport(options, tallies: work.tallies)
    }

    /// One shard: its users are drawn until it has its devices.
    ///
    /// - Parameter graces: for each policy what the app's devices learn together.
    static func tallies(
        ofShard shard: Int, devices: Int, graces: [SharedGrace?], _ options: FleetOptions
    ) -> [Tally] {
        let end = fleetStart + UInt64(options.days) * DeviceRules.day
        var tallies = [Tally](repeating: Tally(), count: options.policies.count)
        forEachLife(ofShard: shard, devices: devices, options) { life in
            for (index, choice) in options.policies.enumerated() {
                var world = UserWorld(
                    life: life, policy: choice.policy, model: options.model,
                    sharedGrace: graces[index])
                world.run(until: end)
                tallies[index] += world.tally
            }
        }
        return tallies
    }

    private static func forEachLife(
        ofShard shard: Int, devices: Int, _ options: FleetOptions, _ body: (UserLife) -> Void
    ) {
        let maker = LifeMaker(
            model: options.model, recorded: options.traffic, seed: options.seed,
            days: options.days)
        var left = devices
        var user = UInt64(shard) << 32
        while left > 0 {
            let life = maker.life(of: user, devicesMax: left)
            body(life)
            left -= life.devices.count
            user += 1
        }
    }

    /// What the app's devices learn together; `nil`: nothing, under this policy.
    static func sharedGrace(_ policy: WakePolicy, _ options: FleetOptions) -> SharedGrace? {
        guard policy.adaptive.graceQuantile > 0 else { return nil }
        let end = fleetStart + UInt64(options.days) * DeviceRules.day
        var arrivals: [SharedGrace.Arrival] = []
        let devices = min(options.devices, FleetOptions.trialDevices)
        forEachLife(ofShard: 0, devices: devices, options) { life in
            var world = UserWorld(life: life, policy: policy, model: options.model)
            world.run(until: end)
            arrivals += world.arrivals
        }
        return SharedGrace(arrivals, policy: policy)
    }
}

/// The shards that are left, and the sums of those that are done.
private final class FleetWork: Sendable {
    private let options: FleetOptions
    private let graces: [SharedGrace?]
    let shards: Int
    private let lock = Lock()
    // All guarded by `lock`.
    private nonisolated(unsafe) var next = 0
    private nonisolated(unsafe) var devicesDone = 0
    private nonisolated(unsafe) var sums: [Tally]

    init(_ options: FleetOptions) {
        self.options = options
        graces = options.policies.map { Fleet.sharedGrace($0.policy, options) }
        shards = (options.devices + options.shardDevices - 1) / options.shardDevices
        sums = [Tally](repeating: Tally(), count: options.policies.count)
    }

    var tallies: [Tally] { lock.withLock { sums } }

    private func take() -> Int? {
        lock.withLock {
            guard next < shards else { return nil }
            next += 1
            return next - 1
        }
    }

    func run() {
        while let shard = take() {
            let first = shard * options.shardDevices
            let devices = min(options.shardDevices, options.devices - first)
            let found = Fleet.tallies(
                ofShard: shard, devices: devices, graces: graces, options)
            lock.withLock {
                for index in sums.indices { sums[index] += found[index] }
                devicesDone += devices
                options.progress(devicesDone, options.devices)
            }
        }
    }
}
