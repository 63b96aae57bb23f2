import FoundationEssentials

/// What a replay runs through: one server, or several behind a balancer.
protocol ReplayServers: AnyObject {
    /// Where devices connect to.
    var host: String { get }
    var port: UInt16 { get }
    /// Where backends call: any of them does.
    var apis: [HTTPCall.Place] { get }
    /// The one over which the app is set up.
    var first: ServerProcess { get }
    /// Every second user speaks through the app's backend instead of the own device.
    var hasPublisher: Bool { get }
    /// What is done to them on the way, in this order.
    var faults: [ReplayFault] { get }
    /// Returns when all serve.
    func start() throws
    /// Orderly and at once.
    func stop()
    /// kill -9.
    func kill()
    /// What is in the store, once all have ended.
    func facts() throws -> ServerFacts
    func lastLogLines() -> String
}

extension ServerProcess: ReplayServers {
    var host: String { "127.0.0.1" }
    var port: UInt16 { devicePort }
    var apis: [HTTPCall.Place] { [.tcp(host: host, port: apiPort)] }
    var first: ServerProcess { self }
    var hasPublisher: Bool { false }
    var faults: [ReplayFault] { [] }

    func start() throws { try start(settings: [:]) }

    func facts() throws -> ServerFacts { try ServerFacts(path: storePath) }

    func lastLogLines() -> String { lastLogLines(5) }
}
