import APNsSimulator
import Crypto
import EventLoop
import Foundation
import Glibc
import Model

@testable import Scenario

/// What stories share: one simulator with all their devices, certificates and keys.
final class World: @unchecked Sendable {
    // @unchecked: after init only `seen` changes, under the lock, and the simulator's process,
    // by one thread.
    static let team = "KILLTEAM01"
    static let pushKeyID = "KILLKEY001"
    static let issuerKeyID = "issuer"

    /// The executable beside this test program.
    static let executable: URL = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        return URL(fileURLWithPath: own ?? "").deletingLastPathComponent()
            .appendingPathComponent("rouse")
    }()

    let folder: URL
    let simulator: SimulatorProcess
    let receiver: EventReceiver
    let issuer = PrivateKey.generate(.p256)
    let signer = PrivateKey.generate(.p256)
    let authorityPEM: String
    private let lock = Lock()
    private var seen: UInt64 = 0
    var authorityFile: String { folder.appendingPathComponent("authority.pem").path }
    var issuerFile: String { folder.appendingPathComponent("issuer.key").path }

    init() throws {
        signal(SIGPIPE, SIG_IGN)
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-kill-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        let made = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        authorityPEM = made.authorityPEM
        for (name, text) in [
            ("server.pem", made.server.certificatePEM), ("server.key", made.server.privateKeyPEM),
            ("authority.pem", made.authorityPEM), ("issuer.key", issuer.pem),
        ] {
            try Data(text.utf8).write(to: folder.appendingPathComponent(name))
        }
        receiver = try EventReceiver()
        simulator = try SimulatorProcess(executable: Self.executable, folder: folder)
        try simulator.start()
        let control = try SimulatorClient(path: simulator.control)
        var key = ControlRequest(.keyAdd)
        key.kid = Self.pushKeyID
        key.team = Self.team
        key.publicKey = signer.publicKeyPEM
        try control.call(key)
    }

    /// A folder with the server's certificate, for a server of its own.
    func makeServer(_ name: String) throws -> ServerProcess {
        let place = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        for file in ["server.pem", "server.key"] {
            try FileManager.default.copyItem(
                at: folder.appendingPathComponent(file), to: place.appendingPathComponent(file))
        }
        return ServerProcess(executable: Self.executable, folder: place)
    }

    /// A number in the simulator's log that was reached before now.
    var logSeen: UInt64 { lock.withLock { seen } }
    func sawLog(through number: UInt64) { lock.withLock { seen = max(seen, number) } }

    func clear() {
        simulator.kill()
        receiver.stop()
        try? FileManager.default.removeItem(at: folder)
    }
}

struct StoryError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
