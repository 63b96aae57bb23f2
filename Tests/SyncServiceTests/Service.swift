import Crypto
import EventLoop
import Feed
import Foundation
import Model
import SQLiteStore
import StoreService
import SyncServer
import SyncService
import Telemetry

/// A device port over a store in a temporary folder, with one app and one issuer key.
final class Service: Sendable {
    static let app = AppID("chat")
    static let keyID = "k1"

    let directory: URL
    let store: StoreService
    let sync: SyncService
    let metrics = Metrics()
    let issuer: PrivateKey
    private let desk: Desk

    init(
        limits: SessionLimits = SessionLimits(), loops: Int = 1,
        change: (inout SyncServiceConfiguration) -> Void = { _ in }
    ) throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-sync-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true)
        self.directory = directory
        let certificates = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        issuer = PrivateKey.generate(.p256)
        try Data(certificates.authorityPEM.utf8)
            .write(to: directory.appendingPathComponent("ca.pem"))
        try Data(issuer.pem.utf8).write(to: directory.appendingPathComponent("issuer.pem"))
        let doorbell = SyncService.Doorbell()
        let boot = BootID(high: 1, low: 2)
        let path = directory.appendingPathComponent("rouse.db").path
        store = try StoreService.start(
            duties: [
                StoreDuty(
                    name: "fan-out", request: .continueFanOut(recipients: 64), interval: 1_000,
                    follows: .fanOut),
                StoreDuty(
                    name: "receipts", request: .coalesceReceipts(users: 64), interval: 50),
            ], boot: boot, epochHalf: 77,
            open: {
                UncommittedStore(
                    try SQLiteStore(path: path, tables: Schema.tables),
                    whileThereIs: directory.appendingPathComponent("fail-commits").path,
                    heldBy: directory.appendingPathComponent("hold-commits").path)
            },
            onCommit: { doorbell.committed($0) })
        desk = try Desk(store)
        var configuration = SyncServiceConfiguration(
            host: "127.0.0.1", port: 0, loops: loops,
            session: SessionConfiguration(
                limits: limits, boot: boot, node: "test", sha256: { Digest.sha256($0) }))
        change(&configuration)
        sync = try SyncService.start(
            configuration,
            tls: TLSMaterial(
                certificateChain: Array(certificates.server.certificatePEM.utf8),
                privateKey: Array(certificates.server.privateKeyPEM.utf8)),
            store: store, doorbell: doorbell, log: Log(level: .error), metrics: metrics)
        let time = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        _ = try commit(.administer(.putApp(AppRecord(app: Self.app, createdAt: time))))
        _ = try commit(
            .administer(
                .putIssuerKey(
                    IssuerKeyRecord(
                        app: Self.app, keyID: Self.keyID, publicKeyPEM: issuer.publicKeyPEM,
                        addedAt: time))))
    }

    func commit(_ request: StoreRequest) throws -> StoreOutcome { try desk.commit(request) }

    func stop() {
        sync.stop()
        desk.stop()
        store.stop()
        try? FileManager.default.removeItem(at: directory)
    }

    /// Runs a Python program of Tests/peers; its output and exit status.
    func runPeer(
        _ name: String, _ words: [String], port: UInt16? = nil
    ) throws -> (output: String, status: Int32) {
        let script = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("peers/\(name)")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments =
            [script.path] + words + [
                "--port", "\(port ?? sync.port)",
                "--ca", directory.appendingPathComponent("ca.pem").path,
                "--app", Self.app.name,
                "--key", directory.appendingPathComponent("issuer.pem").path,
                "--kid", Self.keyID, "--folder", directory.path,
            ]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (String(decoding: output, as: UTF8.self), process.terminationStatus)
    }

    /// Asks the store from a test's thread.
    private final class Desk: Sendable {
        private let thread: LoopThread
        private let box: Box

        private final class Box: @unchecked Sendable {
            // @unchecked: `client` is used on its loop only; the rest under `lock`.
            let lock = Lock()
            var client: StoreClient?
            var replies: [UInt64: StoreResult] = [:]
            var waiting: [UInt64: Latch] = [:]

            func answered(_ reply: StoreReply) {
                let latch = lock.withLock {
                    replies[reply.ticket] = reply.result
                    return waiting.removeValue(forKey: reply.ticket)
                }
                latch?.arrive()
            }
        }

        init(_ store: StoreService) throws {
            let box = Box()
            self.box = box
            thread = try LoopThread.start(name: "desk") { loop in
                box.client = store.client(on: loop) { box.answered($0) }
            }
        }

        func commit(_ request: StoreRequest) throws -> StoreOutcome {
            let done = Latch()
            let ticket = Ticket()
            thread.perform { _ in
                guard let client = self.box.client else { return done.arrive() }
                self.box.lock.withLock {
                    let number = client.commit(request)
                    ticket.number = number
                    self.box.waiting[number] = done
                }
            }
            done.wait()
            switch box.lock.withLock({ box.replies.removeValue(forKey: ticket.number) }) {
            case .committed(let outcome): return outcome
            case .failed(let error): throw error
            default: throw StoreError.unavailable("no answer")
            }
        }

        func stop() {
            thread.stop()
            thread.join()
        }

        private final class Ticket: @unchecked Sendable {
            // @unchecked: written before the latch opens, read after.
            var number: UInt64 = 0
        }
    }
}
