internal import AppLife
internal import Client
internal import DeviceModel
internal import EventLoop
internal import Model
internal import RouseClient
internal import Wire

/// The process of a simulated app, as the system has it: what its code does is done on the
/// simulator's loop, stands still while it is frozen, and reaches nobody once it is dead.
final class AppProcess: SerialExecutor, @unchecked Sendable {
    // @unchecked: used on the loop, but for `enqueue`.

    enum State {
        case running
        /// Its run time is over; it says its good-byes.
        case leaving
        /// In memory, and nothing of it moves.
        case frozen
        /// What is left of it runs out into nothing.
        case dead
    }

    private let door: LoopDoor
    private let loop: Loop
    private var frozen: [UnownedJob] = []
    var state = State.running {
        didSet {
            guard state != .frozen, !frozen.isEmpty else { return }
            let jobs = frozen
            frozen = []
            for job in jobs { enqueue(job) }
        }
    }

    init(loop: Loop, door: LoopDoor) {
        self.loop = loop
        self.door = door
    }

    func enqueue(_ job: UnownedJob) {
        door.perform { [self] _ in
            guard state != .frozen else { return frozen.append(job) }
            job.runSynchronously(on: asUnownedSerialExecutor())
        }
    }

    func checkIsolated() { loop.preconditionInside() }

    /// Carries out what waits and what that leads to, as far as it waits for nobody else.
    func catchUp() {
        for _ in 0..<Self.roundsMax { door.deliver() }
    }

    /// The first steps of a process, one after another, and some to spare.
    private static let roundsMax = 8
}

/// The file that an app shares with its extension, as its process reaches it.
struct ProcessRecord: ToldRecord {
    let process: AppProcess
    let file: ToldFile

    init(process: AppProcess, file path: String) {
        self.process = process
        file = ToldFile(path: path)
    }

    func contains(_ identifier: String) -> Bool { file.contains(identifier) }

    func note(_ identifier: String) {
        if process.state != .dead { file.note(identifier) }
    }
}

/// The phone as an app's code reaches it, from within its process.
actor PhoneLink: RousePhone {
    private let process: AppProcess
    private weak var app: SyncDeviceApp?

    init(_ process: AppProcess, of app: SyncDeviceApp) {
        self.process = process
        self.app = app
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { process.asUnownedSerialExecutor() }

    func delivered() async -> [DeliveredNotification] {
        guard let hooks = await hooks() else { return [] }
        return hooks.screen().map { DeliveredNotification($0) }
    }

    func show(_ notice: AppNotice) async {
        guard await hooks() != nil else { return }
        await app?.show(notice, from: process)
    }

    func remove(identifier: String) async { await hooks()?.removeNotification(identifier) }

    func setBadge(_ count: UInt32) async {
        guard let hooks = await hooks() else { return }
        let stood = hooks.screen()
        hooks.setBadge(UInt64(count))
        // The change to 0 takes all of them away.
        let stands = Set(hooks.screen().map(\.identifier))
        for var gone in stood where !stands.contains(gone.identifier) {
            gone.look.quieten()
            hooks.showNotification(gone)
        }
    }

    /// The system answers a process that runs. One whose time is over is stopped in the middle,
    /// and goes on where it was; `nil`: it never does.
    private func hooks() async -> DeviceAppHooks? {
        while process.state == .leaving || process.state == .frozen {
            process.state = .frozen
            await Task.yield()
        }
        return process.state == .dead ? nil : app?.hooks
    }
}
