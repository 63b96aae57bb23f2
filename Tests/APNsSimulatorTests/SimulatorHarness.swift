import APNsSimulator
import Crypto
import EventLoop
import Foundation
import HTTP2
import Testing

/// A simulator on its own thread with one app and one key, and its control socket.
final class SimulatorHarness {
    static let certificates = try? DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
    let directory: String
    let thread: LoopThread
    let ports: SimulatorPorts
    let client: SimulatorClient
    let key = PrivateKey.generate(.p256)

    init(
        maximumStreams: UInt32 = 1_000, change: (inout SimulatorOptions) -> Void = { _ in }
    ) throws {
        let made = try #require(Self.certificates)
        var template = Array("/tmp/rouse-simulator-XXXXXX".utf8CString)
        let name = try #require(mkdtemp(&template))
        directory = String(cString: name)
        var options = SimulatorOptions(
            certificateChain: Array(made.server.certificatePEM.utf8),
            privateKey: Array(made.server.privateKeyPEM.utf8))
        options.controlPath = directory + "/control"
        options.controlPort = 0
        options.directory = directory
        options.maximumStreams = maximumStreams
        change(&options)
        let chosen = options
        (thread, ports) = try LoopThread.startReturning(name: "simulator") { loop in
            let simulator = try Simulator(loop: loop, options: chosen)
            // The loop's end closes all that lives on it; the box keeps the simulator until then.
            SimulatorBox.keep(simulator)
            return simulator.ports
        }
        client = try SimulatorClient(path: directory + "/control")
        providerToken = CheckFixture.providerToken(iat: String(seconds), with: key)
        var app = ControlRequest(.appAdd)
        app.topic = CheckFixture.topic
        app.team = CheckFixture.team
        try client.call(app)
        var request = ControlRequest(.keyAdd)
        request.kid = CheckFixture.keyID
        request.team = CheckFixture.team
        request.publicKey = key.publicKeyPEM
        try client.call(request)
    }

    deinit {
        thread.perform { _ in SimulatorBox.close() }
        thread.stop()
        thread.join()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// One token for all of a test's connections, as a provider should have it.
    let providerToken: String
    /// When it was made, in seconds since 1970.
    let seconds = SystemClock.wallMilliseconds() / 1_000

    /// A device without a client; its token.
    func device(_ name: String) throws -> String {
        var request = ControlRequest(.deviceCreate, device: name)
        request.topic = CheckFixture.topic
        return try #require(try client.call(request).token)
    }

    /// Runs `body` on the simulator's thread and waits for it.
    func onSimulator(_ body: @escaping @Sendable (Simulator) -> Void) {
        let done = Latch()
        thread.perform { _ in
            SimulatorBox.current.map(body)
            done.arrive()
        }
        done.wait()
    }

    /// Waits for an event that fits, reading the log from `after` on.
    func event(
        after: UInt64 = 0, _ fits: (SimulatorEvent) -> Bool
    ) throws -> SimulatorEvent? {
        let reader = try SimulatorClient(path: directory + "/control")
        try reader.subscribe(after: after)
        while let (event, _) = try reader.event(timeoutMilliseconds: 10_000) {
            if fits(event) { return event }
        }
        return nil
    }
}

/// Keeps a simulator on the thread it lives on.
private enum SimulatorBox {
    private static let lock = Lock()
    nonisolated(unsafe) private static var kept: [UInt: Simulator] = [:]

    static func keep(_ simulator: Simulator) {
        lock.withLock { kept[UInt(pthread_self())] = simulator }
    }

    static var current: Simulator? {
        lock.withLock { kept[UInt(pthread_self())] }
    }

    static func close() {
        let simulator = lock.withLock { kept.removeValue(forKey: UInt(pthread_self())) }
        simulator?.close()
    }
}
