import APNsSimulator
import Client
import Crypto
import EventLoop
import FoundationEssentials
import Model
import SQLiteStore
import SyncClient
import Wire

/// Devices in this process: each a real client with a store of its own on disk, on one loop.
/// Loop-confined.
final class ClientFleet: DeviceFleet {
    var onEvent: (FleetEvent) -> Void = { _ in }

    private(set) var syncRequests = 0
    private(set) var deltas = 0

    private let loop: Loop
    private let endpoint: SyncEndpoint
    private let tls: TLSContext
    private let app: String
    private let issuer: IdentityIssuer
    private let folder: URL
    private let seed: UInt64
    /// For a proof that the report notices.
    private let damage: ReplayDamage?
    private var entriesSeen = 0
    private var devices: [Device] = []

    private final class Device {
        let user: String
        let id: DeviceID
        var client: SyncClient?
        var store: TableLocalStore?
        var messages: [UInt64: MessageID] = [:]
        var resets = 0

        init(user: String, id: DeviceID) {
            self.user = user
            self.id = id
        }
    }

    init(
        loop: Loop, endpoint: SyncEndpoint, tls: TLSContext, app: String, issuer: IdentityIssuer,
        folder: URL, seed: UInt64, damage: ReplayDamage?
    ) {
        self.loop = loop
        self.endpoint = endpoint
        self.tls = tls
        self.app = app
        self.issuer = issuer
        self.folder = folder
        self.seed = seed
        self.damage = damage
    }

    func add(user: String, device: DeviceID) throws {
        devices.append(Device(user: user, id: device))
    }

    func open(_ number: Int) {
        let device = devices[number]
        let state = AppState(phase: .foreground)
        if let client = device.client {
            client.appStateChanged(state)
            return
        }
        do {
            let client = try makeClient(number, device)
            device.client = client
            client.start(state)
        } catch {
            onEvent(.failed(device: number, "\(error)"))
        }
    }

    /// In this process sleeping is the app's good-bye; nothing wakes it but `open`.
    func sleep(_ number: Int, forced: Bool) {
        devices[number].client?.sleep()
    }

    func send(_ number: Int, _ line: OutgoingLine) throws {
        let device = devices[number]
        guard let client = device.client else {
            throw ScenarioError("device \(number) was never opened")
        }
        let mutation = try client.mutate(
            .sendMessage(
                SendMessage(
                    conversation: line.conversation, message: line.message,
                    parts: [Part(mimeType: "text/plain", content: Array(line.text.utf8))],
                    push: PushText(title: line.title, body: line.text))))
        device.messages[mutation] = line.message
    }

    func checkDigest(_ number: Int) { devices[number].client?.checkDigest() }

    func count(then: @escaping () -> Void) { then() }

    func stop() {
        for device in devices {
            device.client?.terminate()
            device.client = nil
        }
    }

    private func makeClient(_ number: Int, _ device: Device) throws -> SyncClient {
        var options = SQLiteOptions()
        // Hundreds of devices share this machine's one disk; a killed server does not lose what
        // its clients' kernel has.
        options.syncs = false
        options.cacheSize = 256
        options.check = .never
        let file = folder.appendingPathComponent("device-\(number).db").path
        let store = TableLocalStore(
            store: try SQLiteStore(path: file, tables: LocalSchema.tables, options: options))
        device.store = store
        var events = SyncClientEvents { [unowned self] nonce, answer in
            let now = SystemClock.wallMilliseconds() / 1_000
            answer(self.issuer.token(for: device.user, nonce: nonce, now: now))
        }
        events.reported = { [unowned self] event in self.reported(number, event) }
        events.applied = { [unowned self] entries in self.applied(number, entries) }
        events.results = { [unowned self] results in self.answered(number, results) }
        var place = endpoint
        // 28,000 ports an address; spreading also keeps loopback's time-wait apart.
        place.sourceAddress = "127.0.0.\(2 + number % 8)"
        return try SyncClient(
            loop: loop, endpoint: place, tls: tls, store: filtered(store),
            configuration: ClientConfiguration(
                app: app, device: device.id, clientName: "replay", clientVersion: "1"),
            seed: seed &+ UInt64(number) &* 0x9E37_79B9_7F4A_7C15, events: events)
    }

    private func filtered(_ store: TableLocalStore) -> any LocalStore {
        guard let damage else { return store }
        return DamagingStore(store) { [unowned self] entry in
            self.entriesSeen += 1
            guard self.entriesSeen == damage.entry else { return entry }
            guard damage.kind == .corrupted else { return nil }
            var entry = entry
            entry.version &+= 1
            return entry
        }
    }

    private func reported(_ number: Int, _ event: ClientEvent) {
        switch event {
        case .syncRequested: syncRequests += 1
        case .delta: deltas += 1
        case .reset:
            devices[number].resets += 1
            onEvent(.reset(device: number, isFirst: devices[number].resets == 1))
        case .refused(let code, _), .loginRefused(let code):
            onEvent(.failed(device: number, "refused with \(code)"))
        case .storeFailed(let error): onEvent(.failed(device: number, "\(error)"))
        case .otherUser(let user): onEvent(.failed(device: number, "logged in as \(user)"))
        case .upgradeRequired: onEvent(.failed(device: number, "upgrade required"))
        case .digest(let isComparable, let isEqual, let objects):
            compared(number, isComparable, isEqual, objects)
        case .opened, .synced, .unread, .closed, .pushTokenRefused, .drained, .retrying, .parked,
            .loggedOut, .snapshot, .fetched, .fetchFailed, .peeked, .signalled, .reauthenticated:
            break
        }
    }

    private func compared(
        _ number: Int, _ isComparable: Bool, _ isEqual: Bool, _ objects: UInt64
    ) {
        guard let store = devices[number].store else { return }
        do {
            let held = try store.counts()
            onEvent(
                .digest(
                    device: number,
                    SimulatorEvent.DigestFacts(
                        isComparable: isComparable, isEqual: isEqual, objects: objects,
                        entries: held.entries, conversations: held.conversations,
                        messages: held.messages)))
        } catch {
            onEvent(.failed(device: number, "counting: \(error)"))
        }
    }

    private func applied(_ number: Int, _ entries: [Entry]) {
        let now = SystemClock.monotonicMilliseconds()
        for entry in entries {
            guard let conversation = entry.conversation else { continue }
            switch entry.body {
            case .message(let state):
                guard let message = MessageID(entry.object) else { continue }
                onEvent(
                    .applied(
                        device: number, conversation, message, position: state.position,
                        alerted: entry.alerted, at: now))
            case .participant(let state) where state.user == devices[number].user:
                onEvent(.joined(device: number, conversation, position: state.joinedPosition))
            default: continue
            }
        }
    }

    private func answered(_ number: Int, _ results: [MutationResult]) {
        let now = SystemClock.monotonicMilliseconds()
        for result in results {
            guard let message = devices[number].messages.removeValue(forKey: result.number)
            else { continue }
            onEvent(
                .answered(
                    device: number, message, position: result.position, code: result.code, at: now)
            )
        }
    }
}

/// Changes or drops chosen message entries before they are stored, as a defect on the way would.
private final class DamagingStore: ForwardingLocalStore {
    let forwarded: any LocalStore
    private let damaged: (Entry) -> Entry?

    init(_ store: any LocalStore, damaged: @escaping (Entry) -> Entry?) {
        forwarded = store
        self.damaged = damaged
    }

    func apply(_ change: LocalChange) throws(LocalStoreError) -> [Entry] {
        var change = change
        change.entries = change.entries.compactMap { entry in
            guard case .message = entry.body else { return entry }
            return damaged(entry)
        }
        return try forwarded.apply(change)
    }
}
