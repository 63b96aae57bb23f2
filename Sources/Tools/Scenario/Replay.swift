import APNsSimulator
import Client
import Crypto
import EventLoop
import FoundationEssentials
import Glibc
import Model

/// How a log is replayed.
public struct ReplayOptions: Sendable {
    public var logFile = ""
    /// Log time runs so many times faster than the clock.
    public var factor = 60.0
    public var seed: UInt64 = 1
    /// Nobody sleeps: no wake, demotion, alert or recovery is asked for.
    public var isAwake = true
    public var kills = 0
    /// Apps that the system kills in the middle of a wake.
    public var phoneKills = 0
    /// Only the first lines of the log.
    public var lines: Int?
    /// A defect put in on one device: the run must fail. Only if nobody sleeps.
    public var damage: ReplayDamage?
    public var keepsFolder = false
    /// The `rouse` executable that runs the server.
    public var executable = ""
    public var progress: @Sendable (String) -> Void = { _ in }
    /// Told what should not be missed.
    public var remark: @Sendable (String) -> Void = { _ in }

    public init() {}
}

/// Runs an IRC log through a server of its own: every nick a user with a device, every line a
/// mutation on that device's own connection. Lives on the calling thread.
public final class Replay {
    static let app = "irc"
    static let keyID = "replay"
    /// Lines sent and not acknowledged; above it log time waits.
    static let unacknowledgedMax = 50
    /// Without any delivery for so long, what is missing is lost: three of the longest waits of a
    /// client in the foreground (CON-14), for a server that was killed may be long in coming back.
    static let patience: UInt64 = 100_000
    /// How long a settled run is watched for doubles.
    static let watch: UInt64 = 1_500

    let options: ReplayOptions
    let log: IRCLog
    let folder: URL
    let loop: Loop
    let servers: any ReplayServers
    let issuer: PrivateKey
    let conversation: ConversationID
    var fleet: (any DeviceFleet)?
    var backend: ReplayBackend?
    var authorityPEM = ""
    var report = ReplayReport()
    var ledger = ReplayLedger()
    var random: SeededRandom
    var numbers: [String: Int] = [:]
    /// By the numbers of their devices.
    private var users: [String] = []
    var isAdded: [Bool] = []
    private var waitingLines: [Int: [String]] = [:]
    var waitingAdds: [String] = []
    var addsInFlight = 0
    var nextEvent = 0
    private var logClock: Double = 0
    var lastTick: UInt64 = 0
    private var timer: LoopTimer?
    private var lastProgress: UInt64 = 0
    var settling = Settling()
    /// The faults on the way; `nil`: there are none, or all were carried out.
    var course: FaultCourse?
    private var failure: String?
    var simulator: SimulatorProcess?
    private(set) var isAsleep: [Bool] = []
    /// Its user has swiped the app away.
    private(set) var isSwipedAway: [Bool] = []
    private var lastLineMinute: [Int] = []
    private var lastIdleMinute = -1
    private var isCounting = false
    /// As it was before the devices were compared with the server.
    var judged: ReplayLedger?
    var digests = DigestTally()
    var screens = ScreenTally()
    var screenWatch = ScreenWatch()
    var readers: ReplayReaders
    var phoneKills: PhoneKills
    /// Of which it was not said yet what they hold.
    var askedVictims = 0
    let pushKey = PrivateKey.generate(.p256)

    /// Log minutes without a line after which an app sleeps, in logs that tell no parts.
    static let idleMinutes = 10
    static let topic = "org.example.irc"
    static let team = "REPLAYTEAM"
    static let pushKeyID = "REPLAYKEY1"

    /// Runs to the end; throws what kept it from running at all.
    public static func run(_ options: ReplayOptions) throws -> ReplayReport {
        try run(options) { folder in
            ServerProcess(executable: URL(fileURLWithPath: options.executable), folder: folder)
        }
    }

    /// The same through servers of the caller's choice, and through their faults: each is judged
    /// by itself, and the run ends with the last.
    ///
    /// - Parameter servers: Makes them; the folder holds `server.pem` and `server.key`.
    static func run(
        _ options: ReplayOptions, servers: (_ folder: URL) throws -> any ReplayServers
    ) throws -> ReplayReport {
        var text = try IRCLog.text(of: options.logFile)
        if let lines = options.lines {
            text = text.split(separator: "\n").prefix(lines).joined(separator: "\n")
        }
        let log = IRCLog(text: text)
        guard log.messages > 0 else {
            throw UnusableLog("\(options.logFile) holds no line like `[12:00] <nick> text`")
        }
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-replay-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { if !options.keepsFolder { try? FileManager.default.removeItem(at: folder) } }
        let replay = try Replay(options, log: log, folder: folder, servers: servers(folder))
        defer { replay.tidy() }
        return try replay.play()
    }

    private init(
        _ options: ReplayOptions, log: IRCLog, folder: URL, servers: any ReplayServers
    ) throws {
        self.options = options
        self.log = log
        self.folder = folder
        self.servers = servers
        course = servers.faults.isEmpty ? nil : FaultCourse(servers.faults)
        _ = Descriptors.raiseLimit()
        loop = try Loop()
        random = SeededRandom(seed: options.seed)
        readers = ReplayReaders(seed: options.seed)
        phoneKills = PhoneKills(wanted: options.phoneKills, seed: options.seed)
        conversation = ConversationID(high: random.next(), low: random.next())
        issuer = PrivateKey.generate(.p256)
    }

    private func tidy() {
        fleet?.stop()
        timer?.close()
        loop.close()
        servers.kill()
        simulator?.kill()
        if options.keepsFolder { options.remark("kept \(folder.path)") }
    }

    // MARK: - From beginning to end

    private func play() throws -> ReplayReport {
        let started = SystemClock.monotonicMilliseconds()
        let certificates = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        try Data(certificates.server.certificatePEM.utf8)
            .write(to: folder.appendingPathComponent("server.pem"))
        try Data(certificates.server.privateKeyPEM.utf8)
            .write(to: folder.appendingPathComponent("server.key"))
        try Data(certificates.authorityPEM.utf8)
            .write(to: folder.appendingPathComponent("ca.pem"))
        try Data(issuer.pem.utf8).write(to: folder.appendingPathComponent("issuer.pem"))
        authorityPEM = certificates.authorityPEM
        try servers.start()
        let fleet = options.isAwake ? try clientFleet() : try simulatorFleet()
        fleet.onEvent = { [unowned self] event in self.heard(event) }
        self.fleet = fleet
        do {
            try setUpApp()
        } catch {
            throw ScenarioError(failure ?? "\(error)")
        }
        loop.updateNow()
        lastTick = loop.now
        timer = loop.timer { [unowned self] in self.tick() }
        timer?.start(afterMilliseconds: 1, repeatingMilliseconds: 5)
        loop.run()
        if let failure { throw ScenarioError(failure) }
        try finishReport(started)
        return report
    }

    private func clientFleet() throws -> any DeviceFleet {
        ClientFleet(
            loop: loop,
            endpoint: SyncEndpoint(
                host: servers.host, port: servers.port, serverName: "localhost"),
            tls: try TLSContext.client(
                trustedCertificates: Array(authorityPEM.utf8), protocols: ["rouse/1"],
                keepsSessions: true),
            app: Self.app,
            issuer: IdentityIssuer(
                issuer: "rouse-scenario", keyID: Self.keyID, key: issuer, app: Self.app),
            folder: folder, seed: options.seed, damage: options.damage)
    }

    private func simulatorFleet() throws -> any DeviceFleet {
        let simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: options.executable), folder: folder)
        self.simulator = simulator
        try simulator.start()
        let fleet = SimulatorFleet(
            loop: loop, control: simulator.control,
            surroundings: SimulatorFleet.Surroundings(
                topic: Self.topic, app: Self.app, host: servers.host, port: servers.port,
                serverName: "localhost", trustFile: folder.appendingPathComponent("ca.pem").path,
                issuerKeyFile: folder.appendingPathComponent("issuer.pem").path,
                issuerKeyID: Self.keyID))
        var app = ControlRequest(.appAdd)
        app.topic = Self.topic
        app.team = Self.team
        fleet.call(app)
        var key = ControlRequest(.keyAdd)
        key.kid = Self.pushKeyID
        key.team = Self.team
        key.publicKey = pushKey.publicKeyPEM
        fleet.call(key)
        return fleet
    }

    func fail(_ why: String) {
        failure = why + "\n" + servers.lastLogLines()
        loop.stop()
    }

    private func finishReport(_ started: UInt64) throws {
        try countPushes()
        // What a device repaired after its digest does not count.
        let ledger = judged ?? self.ledger
        let verdict = ledger.verdict()
        report.log = URL(fileURLWithPath: options.logFile).lastPathComponent
        report.factor = options.factor
        report.seed = options.seed
        report.isAwake = options.isAwake
        report.devices = ledger.devices.count
        report.messages = report.faults.isEmpty ? log.messages : ledger.messages.count
        report.acknowledged = ledger.acknowledged
        report.unacknowledged = ledger.unacknowledged
        report.refused = ledger.refused
        report.deliveries = ledger.deliveries
        report.syncRequests = fleet?.syncRequests ?? 0
        report.deltas = fleet?.deltas ?? 0
        report.lost = verdict.lost
        report.duplicated = verdict.duplicated
        report.outOfOrder = ledger.outOfOrder
        let all = ledger.delays(atShares: [0.5, 0.99])
        (report.p50Milliseconds, report.p99Milliseconds) = (all[0], all[1])
        let awake = ledger.delays(atShares: [0.5, 0.99], awake: true)
        (report.awakeP50Milliseconds, report.awakeP99Milliseconds) = (awake[0], awake[1])
        report.seconds = Double(SystemClock.monotonicMilliseconds() - started) / 1000
        var failures: [String] = []
        if verdict.lost > 0 {
            failures.append("\(verdict.lost) lost, on devices \(verdict.missing.prefix(5))")
        }
        if verdict.duplicated > 0 { failures.append("\(verdict.duplicated) doubled") }
        if ledger.outOfOrder > 0 { failures.append("\(ledger.outOfOrder) out of order") }
        if ledger.unacknowledged > 0 {
            failures.append("\(ledger.unacknowledged) lines were never acknowledged")
        }
        if ledger.refused > 0 { failures.append("\(ledger.refused) lines were refused") }
        if ledger.unknown > 0 { failures.append("\(ledger.unknown) messages nobody sent") }
        if report.faults.isEmpty, ledger.messages.count < log.messages {
            failures.append("\(log.messages - ledger.messages.count) lines were never sent")
        }
        judgeDigests(&failures)
        reportScreens(&failures)
        if report.resets > 0 { failures.append("\(report.resets) resets after the first login") }
        report.failures += failures
    }

    /// What the server holds and recorded of its wakes, read from its file after its end, and
    /// what the simulator was sent.
    private func countPushes() throws {
        servers.stop()
        let facts = try servers.facts()
        report.held = facts.objects
        guard let fleet = fleet as? SimulatorFleet else { return }
        report.silentWakes = fleet.silentWakes
        report.alerts = fleet.alerts
        report.badges = fleet.badges
        report.demotions = facts.demotions
        report.recoveries = facts.recoveries
        report.failures += fleet.lints.map { "the simulator complains: \($0)" }
        for (name, count) in [
            ("silent wake", report.silentWakes), ("demotion", report.demotions),
            ("alert", report.alerts), ("recovery", report.recoveries),
        ] where count == 0 {
            report.failures.append("no \(name) happened")
        }
    }

    // MARK: - The log

    private func tick() {
        let now = loop.now
        tellProgress(now)
        carryOutPlans(now)
        if course != nil { return goThroughFaults(now) }
        if report.faults.isEmpty, nextEvent < log.events.count { return play(now) }
        settle(now)
    }

    /// What happens in the log until now.
    func play(_ now: UInt64) {
        // Log time waits for a server that is behind.
        if ledger.unacknowledged < Self.unacknowledgedMax {
            logClock += Double(now - lastTick) * options.factor / 60_000
        }
        lastTick = now
        // Lines of one minute are spread over it by their order.
        while nextEvent < log.events.count, dueMinute(nextEvent) <= logClock {
            happen(log.events[nextEvent])
            nextEvent += 1
            killIfDue()
            killPhones()
            takeTabletUp()
        }
    }

    private func dueMinute(_ index: Int) -> Double {
        let minute = log.events[index].minute
        var first = index
        while first > 0, log.events[first - 1].minute == minute { first -= 1 }
        var last = index
        while last + 1 < log.events.count, log.events[last + 1].minute == minute { last += 1 }
        return Double(minute) + Double(index - first) / Double(last - first + 1)
    }

    private func happen(_ event: IRCLog.Event) {
        let device = device(of: event.user)
        switch event.kind {
        case .message(let text):
            lastLineMinute[device] = event.minute
            wakeUp(device)
            planReading(on: device)
            waitingLines[device, default: []].append(text)
            sendWaiting(device)
        case .join:
            lastLineMinute[device] = event.minute
        case .part: fallAsleep(device)
        }
        if !log.hasParts, event.minute > lastIdleMinute {
            lastIdleMinute = event.minute
            for number in isAsleep.indices
            where ledger.user(of: number) == number
                && event.minute - lastLineMinute[number] >= Self.idleMinutes
            {
                fallAsleep(number)
            }
        }
    }

    /// A seeded third of those who leave swipe the app away.
    func fallAsleep(_ device: Int) {
        guard !options.isAwake, !isAsleep[device], isAdded[device] else { return }
        isAsleep[device] = true
        ledger.slept(device)
        let isForced = ledger.user(of: device) == device && random.next() % 3 == 0
        isSwipedAway[device] = isForced
        fleet?.sleep(device, forced: isForced)
    }

    func wakeUp(_ device: Int) {
        guard isAsleep[device] else { return }
        isAsleep[device] = false
        isSwipedAway[device] = false
        ledger.opened(device, at: SystemClock.monotonicMilliseconds())
        fleet?.open(device)
    }

    /// First sight connects the device and adds it to the channel's conversation.
    private func device(of user: String) -> Int {
        if let number = numbers[user] { return number }
        let number = addDevice(of: user, phone: nil)
        numbers[user] = number
        do {
            try fleet?.add(user: user, device: DeviceID(high: random.next(), low: random.next()))
            fleet?.open(number)
            ledger.opened(number, at: SystemClock.monotonicMilliseconds())
            if !options.isAwake { try addHabit(to: number, user) }
        } catch {
            fail("\(error)")
        }
        waitingAdds.append(user)
        addWaiting()
        return number
    }

    func addDevice(of user: String, phone: Int?) -> Int {
        let number = ledger.addDevice(of: phone)
        users.append(user)
        isAdded.append(false)
        isAsleep.append(false)
        isSwipedAway.append(false)
        lastLineMinute.append(log.events[min(nextEvent, log.events.count - 1)].minute)
        return number
    }

    private func addHabit(to phone: Int, _ user: String) throws {
        let habit = readers.habit()
        guard habit.reads else { return }
        if habit.onTablet {
            try addTablet(of: phone, user)
        } else {
            readers.add(phone, readsOn: phone)
        }
    }

    func sendWaiting(_ device: Int) {
        guard isAdded[device], let lines = waitingLines.removeValue(forKey: device) else { return }
        for text in lines {
            let message = MessageID(high: random.next(), low: random.next())
            // A message needs a part with content of at least a byte; IRC has empty lines.
            let line = OutgoingLine(
                conversation: conversation, message: message, title: "device \(device)",
                text: text.isEmpty ? " " : text)
            ledger.sent(message, by: device, at: SystemClock.monotonicMilliseconds())
            do {
                if servers.hasPublisher, device % 2 == 1 {
                    backend?.publish(line, from: users[device])
                } else {
                    try fleet?.send(device, line)
                }
            } catch {
                fail("\(error)")
            }
        }
    }

    // MARK: - The devices

    private func heard(_ event: FleetEvent) {
        switch event {
        case .reset(let device, let isFirst):
            screenWatch.reset(device)
            if !isFirst { report.resets += 1 }
        case .sight(let device, let sight): watch(sight, on: device)
        case .joined(let device, let place, let position):
            if place == conversation { ledger.joined(device, position: position) }
        case .applied(let device, let place, let message, let position, let alerted, let time):
            if place == conversation {
                ledger.applied(device, message, position: position, at: time)
                if ledger.isOthers(message, to: device) {
                    screenWatch.applied(device, message, position: position, alerted: alerted)
                }
            }
        case .answered(_, let message, let position, let code, let time):
            ledger.answered(message, position: code == 0 ? position : 0, at: time)
            if code == 0 { screenWatch.placed(message, at: position) }
        case .digest(let device, let facts):
            loop.updateNow()
            digests.heard(facts, from: device, now: loop.now)
        case .failed(let device, let why):
            if report.failures.count < 10 { report.failures.append("device \(device): \(why)") }
        case .ended(let why): fail(why)
        }
    }

    // MARK: - The server

    private func killIfDue() {
        guard options.kills > report.kills.count else { return }
        let share = log.events.count / (options.kills + 1)
        guard nextEvent >= share * (report.kills.count + 1) else { return }
        var kill = ReplayReport.Kill()
        kill.line = nextEvent
        kill.unansweredMutations = ledger.unacknowledged
        let started = SystemClock.monotonicMilliseconds()
        servers.kill()
        do {
            if !options.isAwake {
                let facts = try servers.facts()
                kill.wakesInFlight = facts.wakesInFlight
                kill.graceRows = facts.graceRows
            }
            try servers.start()
        } catch {
            return fail("\(error)")
        }
        kill.downMilliseconds = SystemClock.monotonicMilliseconds() - started
        report.kills.append(kill)
        loop.updateNow()
        lastTick = loop.now
    }

    // MARK: - The end

    private func settle(_ now: UInt64) {
        guard isSettled(now), !isCounting else { return }
        if judged == nil { judged = ledger }
        guard compareDigests(now) else { return }
        isCounting = true
        fleet?.count { [unowned self] in
            self.lookAtScreens { tally in
                self.screens = tally
                self.countAtServer()
            }
        }
    }

    /// All come online; what is still missing when nothing has come for a long time is lost.
    func isSettled(_ now: UInt64) -> Bool {
        if !settling.hasBegun {
            // Whoever reads now still does, and puts nothing away.
            for index in readers.plans.indices.reversed()
            where readers.plans[index].kind == .putAway { readers.plans.remove(at: index) }
            settling = Settling(hasBegun: true, lastDelivery: now)
            for device in isAsleep.indices { wakeUp(device) }
        }
        if ledger.deliveries != settling.lastDeliveries {
            settling.lastDeliveries = ledger.deliveries
            settling.lastDelivery = now
            settling.since = nil
            return false
        }
        guard now - settling.lastDelivery > 300 else { return false }
        if settling.since == nil, now - settling.lastDelivery < Self.patience {
            guard addsInFlight == 0, waitingAdds.isEmpty, readers.plans.isEmpty else {
                return false
            }
            guard now - settling.lastVerdict >= 500 else { return false }
            settling.lastVerdict = now
            guard askVictims() else { return false }
            guard ledger.unacknowledged == 0, ledger.verdict().lost == 0 else { return false }
            settling.since = now
        }
        return settling.since.map { now - $0 >= Self.watch } ?? true
    }

    /// The log goes on: devices may sleep again.
    func unsettle() { settling = Settling() }

    private func tellProgress(_ now: UInt64) {
        guard now - lastProgress >= 1_000 else { return }
        lastProgress = now
        let share = nextEvent * 100 / max(1, log.events.count)
        options.progress(
            "\(share)% of the log, \(ledger.devices.count) devices, "
                + "\(ledger.acknowledged) of \(log.messages) lines acknowledged, "
                + "\(ledger.deliveries) deliveries")
    }
}
