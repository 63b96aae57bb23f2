public import Model
public import RouseClient

/// Why an app cannot do what it is asked for.
public struct DeviceAppError: Error, Equatable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}

/// What an app says about itself.
public struct DeviceAppStatus: Codable, Equatable, Sendable {
    /// It holds an open session.
    public var isOnline = false
    /// Everything it was told of is stored and acknowledged.
    public var isInSync = false
    /// Mutations without a result.
    public var hasUnanswered = false
    public var epoch: String?
    public var seq: UInt64?
    /// Where its user is, after a tap on a notification of it; `nil`: nowhere in particular.
    public var conversation: String?

    public init() {}
}

/// A message as an app has stored it.
public struct StoredMessage: Codable, Equatable, Sendable {
    public var conversation: String
    public var message: String
    public var position: UInt64
    public var seq: UInt64
    public var sender: String
    public var text: String

    public init(
        conversation: String, message: String, position: UInt64, seq: UInt64, sender: String,
        text: String
    ) {
        self.conversation = conversation
        self.message = message
        self.position = position
        self.seq = seq
        self.sender = sender
        self.text = text
    }
}

/// What its user may do to what is there.
public enum AppChange: Equatable, Sendable {
    case remove([String], from: ConversationID)
    case edit(MessageID, text: String)
    case delete(MessageID, forEveryone: Bool)
    case deleteConversation(ConversationID, forEveryone: Bool)
    case setTitle(String, of: ConversationID)
    case mute(ConversationID, Bool)
    case block(String, Bool)
}

/// What an app asks of the phone it runs on, and what it tells of itself. Called on the loop.
public struct DeviceAppHooks {
    /// The app needs no more run time.
    public var finished: () -> Void
    public var showNotification: (ScreenNotification) -> Void
    /// In front the app was asked about a push, and this is shown of it.
    public var presentNotification: (ScreenNotification) -> Void
    public var removeNotification: (_ identifier: String) -> Void
    /// What stands on the screen of this app, oldest first.
    public var screen: () -> [ScreenNotification]
    /// The phone was restarted and not unlocked since: the app's files cannot be read.
    public var isLocked: () -> Bool
    public var setBadge: (UInt64) -> Void
    /// For the log. `device` is filled in.
    public var tell: (SimulatorEvent) -> Void

    public init(
        finished: @escaping () -> Void,
        showNotification: @escaping (ScreenNotification) -> Void,
        presentNotification: @escaping (ScreenNotification) -> Void = { _ in },
        removeNotification: @escaping (_ identifier: String) -> Void,
        screen: @escaping () -> [ScreenNotification],
        isLocked: @escaping () -> Bool = { false },
        setBadge: @escaping (UInt64) -> Void, tell: @escaping (SimulatorEvent) -> Void
    ) {
        self.finished = finished
        self.showNotification = showNotification
        self.presentNotification = presentNotification
        self.removeNotification = removeNotification
        self.screen = screen
        self.isLocked = isLocked
        self.setBadge = setBadge
        self.tell = tell
    }
}

/// The app on a simulated device. Loop-confined; it gives nothing back before the call that
/// asked has returned, except by the hooks.
public protocol DeviceApp: AnyObject {
    /// A push made it run in the background for so long.
    func run(wake: WakeID?, remainingMilliseconds: Milliseconds)
    /// It comes with a notification service extension.
    var hasExtension: Bool { get }
    /// What that shares with the app.
    var told: (any ToldRecord)? { get }
    /// A push came while it is in front, with something to show: what of it, the app decides.
    func willPresent(_ notification: ScreenNotification)
    /// A push came while it is in front.
    func notify(wake: WakeID?)
    func enterForeground()
    /// Something lies over it.
    func resignActive()
    /// Its files can be read.
    func unlocked()
    /// It came to the front by a tap on this notification.
    func tapped(_ notification: ScreenNotification)
    func enterBackground(remainingMilliseconds: Milliseconds)
    /// It is about to stop running and stays in memory.
    func suspend()
    /// It is gone from memory; what it has stored stays.
    func terminate()
    func networkChanged(isUp: Bool)
    /// While it is held the app reads nothing of what its server sends: somebody who must not miss
    /// what it applies is behind.
    func hold(_ isHeld: Bool)

    func createConversation(_ conversation: ConversationID, participants: [String])
        throws(DeviceAppError)
    func addParticipants(_ users: [String], to conversation: ConversationID)
        throws(DeviceAppError)
    /// - Parameter title: of an alert about it; `nil`: the user's name.
    func send(
        _ text: String, title: String?, as message: MessageID, to conversation: ConversationID
    ) throws(DeviceAppError)
    func read(_ conversation: ConversationID, through position: UInt64) throws(DeviceAppError)
    /// One message and none before it.
    func read(_ conversation: ConversationID, only position: UInt64) throws(DeviceAppError)
    func change(_ change: AppChange) throws(DeviceAppError)
    /// Compares what it holds with its server; a `digest` event tells.
    func checkDigest() throws(DeviceAppError)
    /// Logs the device out.
    func forget() throws(DeviceAppError)

    var status: DeviceAppStatus { get }
    /// Messages of a conversation above a position, ascending.
    func messages(
        _ conversation: ConversationID, above position: UInt64, limit: Int
    ) throws(DeviceAppError) -> [StoredMessage]
}

extension DeviceApp {
    public var hasExtension: Bool { false }
    public var told: (any ToldRecord)? { nil }
    public func willPresent(_ notification: ScreenNotification) {}
    public func resignActive() {}
    public func unlocked() {}
}
