import APNsSimulator
import Crypto
import EventLoop
import FoundationEssentials
import Glibc
import Model

/// How the story is played.
public struct DemoOptions: Sendable {
    /// The `rouse` executable that runs the server and the simulator.
    public var executable = ""
    public var keepsFolder = false
    /// What was not seen after so long did not happen.
    public var patienceSeconds: UInt64 = 45
    /// The key of the app's pushes is revoked before the first of them: the run must fail.
    public var revokesKey = false
    /// After the story, server and simulator go on until a signal ends the program.
    public var keepsServing = false
    public var tell: @Sendable (DemoMoment) -> Void = { _ in }
    /// What is not part of the story.
    public var remark: @Sendable (String) -> Void = { _ in }

    public init() {}
}

/// The story of waking over real sockets: a server and a simulator as child processes, three
/// devices with the real client behind the simulator, and a backend that publishes. Facts of the
/// server are read through the backend API, facts of devices through the simulator. Lives on the
/// calling thread.
public final class Demo {
    static let app = "demo"
    static let topic = "com.example.demo"
    /// Milliseconds a woken device has to connect: short, since the story waits for it once.
    static let grace: UInt64 = 4_000

    let options: DemoOptions
    let folder: URL
    let loop: Loop
    let server: ServerProcess
    let simulator: SimulatorProcess
    let backend: AppBackend
    /// Commands to the simulator.
    let control: SimulatorClient
    /// The stream of what happens there.
    private let stream: SimulatorClient
    private let startedWall: UInt64
    private let startedAt: UInt64
    /// Device ids by name.
    var devices: [String: String] = [:]
    /// What happened at the simulator since the step began.
    private(set) var events: [SimulatorEvent] = []
    private var facts: [DemoFact] = []
    /// Up to where the other device reads.
    var lastRead: UInt64 = 0

    /// Plays the story; throws what kept it from being played at all.
    public static func run(_ options: DemoOptions) throws -> DemoReport {
        try run(options, story)
    }

    static func run(_ options: DemoOptions, _ story: [Chapter]) throws -> DemoReport {
        let stage = try DemoStage(options)
        defer { stage.clear() }
        let demo = try Demo(options, stage)
        let report = demo.play(story)
        if report.ok, options.keepsServing { try demo.serve() }
        return report
    }

    private init(_ options: DemoOptions, _ stage: DemoStage) throws {
        self.options = options
        folder = stage.folder
        loop = stage.loop
        server = stage.server
        simulator = stage.simulator
        startedWall = SystemClock.wallMilliseconds()
        startedAt = SystemClock.monotonicMilliseconds()
        try stage.raise()
        backend = AppBackend(loop: loop, app: Self.app, server: server)
        control = try SimulatorClient(path: simulator.control)
        stream = try SimulatorClient(path: simulator.control)
        try stream.subscribe()
    }

    // MARK: - The course of it

    private func play(_ story: [Chapter]) -> DemoReport {
        var report = DemoReport(
            ok: true, steps: 0, stepsTotal: story.count, tookMs: 0, failedStep: nil,
            failure: nil)
        for (number, chapter) in story.enumerated() {
            let step = play(chapter, number: number + 1)
            guard step.ok else {
                report.ok = false
                report.failedStep = step.step
                report.failure = step.failure
                break
            }
            report.steps += 1
        }
        report.tookMs = now
        options.tell(.finished(report))
        if !report.ok {
            options.remark("the server's log ends:\n\(server.lastLogLines())")
        }
        return report
    }

    private func play(_ chapter: Chapter, number: Int) -> DemoStep {
        events = []
        facts = []
        var step = DemoStep(
            step: chapter.name, title: chapter.title, ok: true, beganMs: now, tookMs: 0,
            facts: [], failure: nil)
        options.tell(.began(step: number, title: chapter.title))
        do {
            try chapter.play(self)
        } catch {
            step.ok = false
            step.failure = ErrorWords.of(error)
        }
        step.tookMs = now - step.beganMs
        step.facts = facts
        options.tell(.ended(step))
        return step
    }

    // MARK: - What is seen

    /// Milliseconds since the beginning.
    var now: UInt64 { SystemClock.monotonicMilliseconds() - startedAt }

    func say(_ who: String, _ what: String) { say(who, what, at: now) }

    private func say(_ who: String, _ what: String, at time: UInt64) {
        let fact = DemoFact(atMs: time, who: who, what: what)
        facts.append(fact)
        options.tell(.saw(fact))
    }

    @discardableResult
    func command(_ request: ControlRequest) throws(ScenarioError) -> ControlResponse {
        do {
            return try control.call(request)
        } catch {
            throw ScenarioError("\(error)")
        }
    }

    /// Waits for an event of this step on a device, and tells it.
    ///
    /// - Parameter what: in words, for the timeline if it comes and for the failure if not.
    @discardableResult
    func see(
        _ device: String, _ kind: SimulatorEvent.Kind, _ what: String,
        where fits: (SimulatorEvent) -> Bool = { _ in true }
    ) throws(ScenarioError) -> SimulatorEvent {
        let deadline = now + options.patienceSeconds * 1_000
        var looked = 0
        while true {
            while looked < events.count {
                let event = events[looked]
                looked += 1
                guard event.device == device, event.kind == kind, fits(event) else { continue }
                say(device, what, at: event.at - min(event.at, startedWall))
                return event
            }
            guard now < deadline else {
                throw ScenarioError("\(device), not within \(options.patienceSeconds) s: \(what)")
            }
            try take(milliseconds: 100)
        }
    }

    /// All that has happened until now is in `events`.
    func catchUp() throws(ScenarioError) {
        while try take(milliseconds: 0) {}
    }

    @discardableResult
    private func take(milliseconds: Int32) throws(ScenarioError) -> Bool {
        do {
            guard let told = try stream.event(timeoutMilliseconds: milliseconds) else {
                return false
            }
            guard told.lost == 0 else { throw ScenarioError("\(told.lost) events were lost") }
            events.append(told.event)
            return true
        } catch let error as ScenarioError {
            throw error
        } catch {
            throw ScenarioError("\(error)")
        }
    }

    /// Waits until the server says so of a device, and tells it.
    @discardableResult
    func serverSays(
        _ device: String, _ what: String, where fits: (DeviceFacts) -> Bool
    ) throws(ScenarioError) -> DeviceFacts {
        let deadline = now + options.patienceSeconds * 1_000
        while true {
            let facts = try backend.device(devices[device] ?? "")
            if fits(facts) {
                say("server", "\(device) \(what)")
                return facts
            }
            guard now < deadline else {
                let found =
                    "it is \(facts.reachability), \(facts.feed.applied) of "
                    + "\(facts.feed.head) applied, \(facts.sessions.count) sessions"
                throw ScenarioError(
                    "server, not within \(options.patienceSeconds) s: \(device) \(what) (\(found))")
            }
            usleep(50_000)
        }
    }

    /// Waits until a push is in the server's history with this outcome, and tells it.
    func serverRecords(
        _ kind: String, about message: PublishedMessage, to device: String, as outcome: String
    ) throws(ScenarioError) {
        let deadline = now + options.patienceSeconds * 1_000
        while true {
            let wakes = try backend.wakes(of: devices[device] ?? "")
            let about = wakes.filter { $0.messageId == message.id }
            if about.contains(where: { $0.kind == kind && $0.outcome == outcome }) {
                return say("server", "recorded of the \(kind) push to \(device): \(outcome)")
            }
            guard now < deadline else {
                let found = about.map { "\($0.kind) \($0.outcome)" }.joined(separator: ", ")
                throw ScenarioError(
                    "server: no \(kind) push to \(device) with outcome \(outcome) ([\(found)])")
            }
            usleep(50_000)
        }
    }

    // MARK: - Afterwards

    /// Server and simulator run on; what happens is told until a signal ends the program.
    private func serve() throws {
        options.remark(
            """

            Server and simulator run on until Ctrl-C. \(Self.phone) sleeps, \(Self.tablet) is
            online; a device is silently woken at most twice a minute. Publish to them with:

              curl -d '{"sender":"anna","parts":[{"mime_type":"text/plain","text":"Hello"}],\
            "push":{"title":"anna","body":"Hello"}}' \\
                -H 'content-type: application/json' -H 'authorization: Bearer \(backend.apiKey)' \\
                http://127.0.0.1:\(server.apiPort)/v1/conversations/\(Self.claraTalk)/messages

            """)
        events = []
        while true {
            try take(milliseconds: 60_000)
            for event in events {
                guard let device = event.device, let what = Self.words(for: event) else { continue }
                say(device, what, at: event.at - min(event.at, startedWall))
            }
            events = []
            facts = []
        }
    }

    private static func words(for event: SimulatorEvent) -> String? {
        switch event.kind {
        case .push: "\(event.pushType ?? "?") push, APNs answers \(event.status ?? 0)"
        case .wake: "is woken"
        case .state: "is now \(event.state ?? "?")"
        case .shown: "shows \"\(event.title ?? ""): \(event.body ?? "")\""
        case .badge: "badge \(event.badge ?? 0)"
        case .applied: "applied \(event.messages?.count ?? 0) messages"
        case .synced: "is in sync"
        default: nil
        }
    }
}
