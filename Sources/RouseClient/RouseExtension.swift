public import AppLife
public import Model
public import SyncClient
import Wire

/// What a notification service extension makes of a push before the person sees it.
public struct Peek: Equatable, Sendable {
    /// What the notification says; `nil`: what the push says.
    public var notice: AppNotice?
    /// The icon's number; `nil`: as the push says.
    public var badge: UInt32?
    /// The person has read the message elsewhere, or it was deleted: an extension that may show
    /// nothing shows nothing.
    public var isOver = false

    public init() {}
}

/// The notification service extension's client: looks at the newest of the feed within its
/// seconds, in a session of its own role (SES-17), beside the app or without it.
///
/// Its store is a file of its own in the folder that it shares with the app. It never writes the
/// app's: the app's cursor stays where it is, and what was looked at comes to the app again.
public struct RouseExtension: Sendable {
    /// So long before its time is over it answers, whatever it has.
    public static let margin: Milliseconds = 2_000

    let configuration: ClientConfiguration
    let transport: any RouseTransport
    let clock: any RouseClock
    let seed: UInt64
    let device: Rouse.Device?
    let openStore: Rouse.OpenStore
    let openAppStore: Rouse.OpenStore
    let identity: Rouse.Identity

    /// - Parameters:
    ///   - openStore: the extension's own store.
    ///   - openAppStore: the app's, of which the credential is read if there is none yet; it may
    ///     throw, as while the app has it.
    ///   - seed: chance for back-off; another in every process.
    ///   - device: the app's, in place of the configuration's, where that is not known yet.
    public init(
        configuration: ClientConfiguration, transport: any RouseTransport,
        clock: any RouseClock, seed: UInt64, device: Rouse.Device? = nil,
        openStore: @escaping Rouse.OpenStore,
        openAppStore: @escaping Rouse.OpenStore, identity: @escaping Rouse.Identity
    ) {
        var configuration = configuration
        configuration.role = .extension
        configuration.push = nil
        self.configuration = configuration
        self.transport = transport
        self.clock = clock
        self.seed = seed
        self.device = device
        self.openStore = openStore
        self.openAppStore = openAppStore
        self.identity = identity
    }

    /// Whether the person was told already of what an alert is about: a notification with its
    /// identifier stands, be it the app's own or an earlier alert, or stood. Then it comes without
    /// a sound. The app's store is not asked: the app has it locked as long as it runs.
    ///
    /// - Parameters:
    ///   - identifier: of the alert, which is its collapse id (PSH-4).
    ///   - standing: the system's list of the app's notifications, read before the alert joins it.
    ///   - told: shared with the app; from now on it says that they were told.
    public static func isRepeat(
        _ identifier: String, among standing: [DeliveredNotification],
        told: (any ToldRecord)? = nil
    ) -> Bool {
        let wasTold = told?.contains(identifier) ?? false
        if !wasTold { told?.note(identifier) }
        return wasTold || standing.contains { ExactText($0.identifier) == ExactText(identifier) }
    }

    /// Deletes what the extension has kept of its user, its credential too: the app does so when
    /// that user logs out, beside `Rouse.logOut`.
    ///
    /// - Throws: when its store cannot be opened, as while the extension has it, or written.
    public func erase() throws {
        let store = try openStore()
        defer { store.close() }
        try store.erase()
    }

    /// Looks at what a push is about. One at a time: its store has one user.
    ///
    /// - Parameters:
    ///   - object: `o` of the payload.
    ///   - conversation: `c` of it; `nil`: an announcement.
    ///   - time: what the system gives the extension. What is known by then, less `margin`, is the
    ///     answer; it may be that nothing is.
    public func peek(
        _ object: MessageID, in conversation: ConversationID?, within time: Milliseconds
    ) async -> Peek {
        let end = clock.now + (time > Self.margin ? time - Self.margin : 0)
        return await PeekSession(self, object, conversation).run(until: end)
    }
}
