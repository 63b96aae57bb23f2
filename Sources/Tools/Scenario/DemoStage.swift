import Crypto
import EventLoop
import FoundationEssentials
import Glibc

/// Folder, processes and loop of a demo; cleared at its end or by a signal.
final class DemoStage {
    let folder: URL
    let loop: Loop
    let server: ServerProcess
    let simulator: SimulatorProcess
    private let keepsFolder: Bool
    private let remark: @Sendable (String) -> Void
    private let ending: Ending
    private let signals: LoopThread

    init(_ options: DemoOptions) throws {
        keepsFolder = options.keepsFolder
        remark = options.remark
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-demo-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        loop = try Loop()
        let executable = URL(fileURLWithPath: options.executable)
        server = ServerProcess(executable: executable, folder: folder)
        simulator = try SimulatorProcess(executable: executable, folder: folder)
        let ending = Ending(folder: keepsFolder ? nil : folder.path)
        self.ending = ending
        // The children are no part of the terminal's process group: Ctrl-C reaches only us.
        signals = try LoopThread.start(name: "signals") { loop in
            for (kind, number) in [(Signals.Kind.interrupt, SIGINT), (.terminate, SIGTERM)] {
                ending.keep(try Signals.watch(kind, on: loop) { ending.end(signal: number) })
            }
        }
    }

    /// Writes certificates and keys, and starts simulator and server.
    func raise() throws {
        let made = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        try write(made.server.certificatePEM, "server.pem")
        try write(made.server.privateKeyPEM, "server.key")
        try write(made.authorityPEM, "authority.pem")
        try simulator.start()
        ending.add(simulator.identifier)
        try server.start()
        ending.add(server.identifier)
    }

    /// - Returns: the file's path.
    @discardableResult
    func write(_ text: String, _ name: String) throws -> String {
        let file = folder.appendingPathComponent(name)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    func clear() {
        signals.stop()
        signals.join()
        server.kill()
        simulator.kill()
        loop.close()
        if keepsFolder {
            remark("kept \(folder.path)")
        } else {
            try? FileManager.default.removeItem(at: folder)
        }
    }
}

/// What a signal leaves behind: nothing.
private final class Ending: @unchecked Sendable {
    // @unchecked: `children` is only touched under the lock, `watches` only on the signals' loop.
    private let lock = Lock()
    private var children: [Int32] = []
    private var watches: [SignalWatch] = []
    private let folder: String?

    init(folder: String?) { self.folder = folder }

    func keep(_ watch: SignalWatch) { watches.append(watch) }

    func add(_ child: Int32?) {
        lock.withLock { if let child { children.append(child) } }
    }

    func end(signal: Int32) -> Never {
        lock.withLock { for child in children { _ = kill(child, SIGKILL) } }
        if let folder { try? FileManager.default.removeItem(atPath: folder) }
        // As a shell reports an end by a signal.
        _exit(128 + signal)
    }
}
