import APNsSimulator
import Model

/// Devices that a scenario drives: in this process, or behind the simulator's control socket.
/// Loop-confined. A device is named by its number, in the order of `add`.
protocol DeviceFleet: AnyObject {
    var onEvent: (FleetEvent) -> Void { get set }
    /// A new device of a user; it stays shut until `open`.
    func add(user: String, device: DeviceID) throws
    /// The user opens the app.
    func open(_ device: Int)
    /// Puts the app to sleep; `forced`: the user swipes it away.
    func sleep(_ device: Int, forced: Bool)
    func send(_ device: Int, _ line: OutgoingLine) throws
    /// Has the device compare itself with the server; `.digest` tells.
    func checkDigest(_ device: Int)
    /// Has `syncRequests` and `deltas` counted up to now.
    func count(then: @escaping () -> Void)
    /// What the devices have got from the server, as of the last `count`.
    var syncRequests: Int { get }
    var deltas: Int { get }
    /// All devices' local stores are closed and nothing more is heard of them.
    func stop()
}

/// One line of the log on its way.
struct OutgoingLine {
    let conversation: ConversationID
    let message: MessageID
    let title: String
    let text: String
}

/// What a person could see of a phone.
enum PhoneSight {
    /// Of the app, in the simulator's words.
    case state(String)
    /// - Parameters:
    ///   - isLocal: the app did, and not an alert.
    ///   - isQuiet: without a sound.
    case shown(MessageID, isLocal: Bool, isQuiet: Bool)
    /// The app has told the system that it is done.
    case completed(result: String, open: Int)
}

/// What happened on a device. Times are milliseconds of the machine's monotonic clock.
enum FleetEvent {
    case reset(device: Int, isFirst: Bool)
    /// The device's own participant entry.
    case joined(device: Int, ConversationID, position: UInt64)
    /// - Parameter alerted: the server says that the device showed it already.
    case applied(
        device: Int, ConversationID, MessageID, position: UInt64, alerted: Bool, at: UInt64)
    case answered(device: Int, MessageID, position: UInt64, code: UInt32, at: UInt64)
    /// The device was compared with the server, because of `checkDigest` or because the server
    /// asked.
    case digest(device: Int, SimulatorEvent.DigestFacts)
    case sight(device: Int, PhoneSight)
    case failed(device: Int, String)
    /// Nothing more is heard of any device.
    case ended(String)
}
