public import AppLife
public import Model
public import SyncClient
import Wire

/// What an alert says before its extension has looked: what stands in the push.
public struct AlertWords: Equatable, Sendable {
    public var title: String
    public var body: String

    public init(title: String, body: String) {
        self.title = title
        self.body = body
    }

    func tells(_ notice: AppNotice) -> Bool {
        ExactText(title) == ExactText(notice.title) && ExactText(body) == ExactText(notice.body)
    }
}

/// What a notification service extension makes of a push before the person sees it.
public struct Peek: Equatable, Sendable {
    /// What the notification says; `nil`: what the push says. It says nothing of other messages
    /// that the push stands for.
    public var notice: AppNotice?
    /// The icon's number; `nil`: as the push says.
    public var badge: UInt32?
    /// The person has read the message elsewhere, or it was deleted: an extension that may show
    /// nothing shows nothing.
    public var isOver = false
    /// The app's user has logged out, and the server may not have heard of it: what the push says
    /// is for nobody who holds this device.
    public var isLoggedOut = false

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

    private(set) var configuration: ClientConfiguration
    let login: (any LoginRecord)?
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
    ///   - login: of the app. Where it says another user than the one whose rows are here, or
    ///     nobody, they are erased before anything else; where it cannot be read, nothing is
    ///     touched or asked, and a push shows what it says. `nil`: the app erases them itself.
    ///   - device: the app's, in place of the configuration's, where that is not known yet.
    public init(
        configuration: ClientConfiguration, transport: any RouseTransport,
        clock: any RouseClock, seed: UInt64, login: (any LoginRecord)? = nil,
        device: Rouse.Device? = nil, openStore: @escaping Rouse.OpenStore,
        openAppStore: @escaping Rouse.OpenStore, identity: @escaping Rouse.Identity
    ) {
        var configuration = configuration
        configuration.role = .extension
        configuration.push = nil
        self.configuration = configuration
        self.login = login
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

    /// Deletes what the extension has kept of its user, its credential too. An app whose extension
    /// has its store in a container of its own, as on iOS, does not reach it so: there `login`
    /// tells the extension to.
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
    ///   - words: what the alert says. The notice is then given only of a message that was edited,
    ///     and where these words say something else: of any other the push says it as well, in the
    ///     person's language, and may name the number of older messages that it stands for (PSH-4).
    ///     `nil`: given in any case.
    ///   - time: what the system gives the extension. What is known by then, less `margin`, is the
    ///     answer; it may be that nothing is.
    public func peek(
        _ object: MessageID, in conversation: ConversationID?, shown words: AlertWords? = nil,
        within time: Milliseconds
    ) async -> Peek {
        let end = clock.now + (time > Self.margin ? time - Self.margin : 0)
        var setup = self
        switch login?.read() {
        case nil: break
        case .unknown: return Peek()
        case .user(let user) where configuration.user?.isExactly(user) ?? true:
            setup.configuration.user = user
        case .user, .nobody:
            // What cannot be erased now is at the next push.
            try? erase()
            var peek = Peek()
            peek.isLoggedOut = true
            return peek
        }
        return await PeekSession(setup, object, conversation, words).run(until: end)
    }
}
