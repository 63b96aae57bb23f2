/// What a phone does with a push, as data: one row per state of the app and kind of push. From
/// Apple's "Pushing background updates to your App", "Handling notifications and notification-
/// related actions" and `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`.
public struct PushEffect: Equatable, Sendable {
    /// The state of the app when the push arrives.
    public enum State: String, Codable, Sendable, CaseIterable {
        case foreground
        /// In front, and covered: by a call, the list of notifications, the app switcher.
        case inactive
        /// In the background with run time left.
        case background
        /// In memory, not running.
        case suspended
        /// The system took it out of memory; it starts it again when there is reason to.
        case notRunning = "not_running"
        /// Swiped away: the system starts it for nothing until the user opens it or restarts the
        /// phone.
        case forceQuit = "force_quit"
        /// The phone was restarted and unlocked, and the app not opened since: a force-quit is
        /// forgotten.
        case rebooted
    }

    /// The kinds of push that differ.
    public enum Kind: String, Codable, Sendable, CaseIterable {
        /// Push type `background` with `content-available` 1.
        case silent
        /// Shows something; without `content-available`.
        case alert
        /// Shows something, with `content-available` 1.
        case alertWithContent = "alert_with_content"
        /// Push type `alert` with nothing to show but a badge.
        case badge
        /// A badge with `content-available` 1.
        case badgeWithContent = "badge_with_content"
        /// Neither shows nor wakes.
        case nothing

        /// What the payload asks for besides waking is shown whatever the wake's fate.
        public var hasContentAvailable: Bool {
            self == .silent || self == .alertWithContent || self == .badgeWithContent
        }
    }

    /// The delegate call that the app sees.
    public enum Callback: String, Codable, Sendable {
        case none
        /// `userNotificationCenter(_:willPresent:)`: the app in front decides, ours shows nothing.
        case willPresent
        /// `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`
        case didReceiveRemote
        /// `application(_:didFinishLaunchingWithOptions:)`, in the background, and then
        /// `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`.
        case launchAndDidReceiveRemote
        /// `willPresent` and `didReceiveRemote`, in this order.
        case willPresentAndDidReceiveRemote
        /// `userNotificationCenter(_:didReceive:)`: its user has done something with a
        /// notification.
        case didReceiveResponse
        /// `application(_:didFinishLaunchingWithOptions:)`, and then
        /// `userNotificationCenter(_:didReceive:)`.
        case launchAndDidReceiveResponse

        /// The delegate calls in their order, as the system of today makes them.
        public var calls: [String] {
            switch self {
            case .none: []
            case .willPresent: [Call.willPresent]
            case .didReceiveRemote: [Call.remote]
            case .launchAndDidReceiveRemote: [Call.launch, Call.remote]
            case .willPresentAndDidReceiveRemote: [Call.willPresent, Call.remote]
            case .didReceiveResponse: [Call.response]
            case .launchAndDidReceiveResponse: [Call.launch, Call.response]
            }
        }

        /// The same before iOS 10, when one method told of all: an app in front, and one that was
        /// opened by a notification, were told as one that was woken.
        public var olderCalls: [String] {
            switch self {
            case .none: []
            case .willPresent, .didReceiveRemote, .willPresentAndDidReceiveRemote,
                .didReceiveResponse:
                [Call.remote]
            case .launchAndDidReceiveRemote, .launchAndDidReceiveResponse:
                [Call.launch, Call.remote]
            }
        }

        private enum Call {
            static let launch = "application(_:didFinishLaunchingWithOptions:)"
            static let remote =
                "application(_:didReceiveRemoteNotification:fetchCompletionHandler:)"
            static let willPresent =
                "userNotificationCenter(_:willPresent:withCompletionHandler:)"
            static let response = "userNotificationCenter(_:didReceive:withCompletionHandler:)"
        }
    }

    /// The delegate call for what a user does with a notification: an app that is not in memory is
    /// launched, also one that was swiped away.
    public static func callback(of response: NotificationResponse, in state: State) -> Callback {
        if response == .dismissed(isTold: false) { return .none }
        return switch state {
        case .foreground, .inactive, .background, .suspended: .didReceiveResponse
        case .notRunning, .forceQuit, .rebooted: .launchAndDidReceiveResponse
        }
    }

    public var callback: Callback
    /// The alert appears on the screen by itself.
    public var shows: Bool
    /// The badge number is set.
    public var setsBadge: Bool
    /// The app runs in the background for 30 s (from now on, if it ran already).
    public var wakes: Bool

    fileprivate init(_ callback: Callback, _ does: [Doing]) {
        self.callback = callback
        shows = does.contains(.shows)
        setsBadge = does.contains(.badge)
        wakes = does.contains(.wakes)
    }

    fileprivate enum Doing {
        case shows, badge, wakes
    }

    /// One row: a kind of push in a state of the app.
    public struct Row: Equatable, Sendable {
        public let state: State
        public let kind: Kind
        public let effect: PushEffect

        fileprivate init(
            _ state: State, _ kind: Kind, _ callback: Callback, _ does: Doing...
        ) {
            self.state = state
            self.kind = kind
            effect = PushEffect(callback, does)
        }
    }

    /// The table, with nothing in the way of a wake; `WakeObstacle` has what may be.
    public static let table: [Row] = [
        Row(.foreground, .silent, .didReceiveRemote),
        Row(.foreground, .alert, .willPresent, .badge),
        Row(.foreground, .alertWithContent, .willPresentAndDidReceiveRemote, .badge),
        Row(.foreground, .badge, .willPresent, .badge),
        Row(.foreground, .badgeWithContent, .willPresentAndDidReceiveRemote, .badge),
        Row(.foreground, .nothing, .none),

        Row(.inactive, .silent, .didReceiveRemote),
        Row(.inactive, .alert, .willPresent, .badge),
        Row(.inactive, .alertWithContent, .willPresentAndDidReceiveRemote, .badge),
        Row(.inactive, .badge, .willPresent, .badge),
        Row(.inactive, .badgeWithContent, .willPresentAndDidReceiveRemote, .badge),
        Row(.inactive, .nothing, .none),

        Row(.background, .silent, .didReceiveRemote, .wakes),
        Row(.background, .alert, .none, .shows, .badge),
        Row(.background, .alertWithContent, .didReceiveRemote, .shows, .badge, .wakes),
        Row(.background, .badge, .none, .badge),
        Row(.background, .badgeWithContent, .didReceiveRemote, .badge, .wakes),
        Row(.background, .nothing, .none),

        Row(.suspended, .silent, .didReceiveRemote, .wakes),
        Row(.suspended, .alert, .none, .shows, .badge),
        Row(.suspended, .alertWithContent, .didReceiveRemote, .shows, .badge, .wakes),
        Row(.suspended, .badge, .none, .badge),
        Row(.suspended, .badgeWithContent, .didReceiveRemote, .badge, .wakes),
        Row(.suspended, .nothing, .none),

        Row(.notRunning, .silent, .launchAndDidReceiveRemote, .wakes),
        Row(.notRunning, .alert, .none, .shows, .badge),
        Row(.notRunning, .alertWithContent, .launchAndDidReceiveRemote, .shows, .badge, .wakes),
        Row(.notRunning, .badge, .none, .badge),
        Row(.notRunning, .badgeWithContent, .launchAndDidReceiveRemote, .badge, .wakes),
        Row(.notRunning, .nothing, .none),

        Row(.forceQuit, .silent, .none),
        Row(.forceQuit, .alert, .none, .shows, .badge),
        Row(.forceQuit, .alertWithContent, .none, .shows, .badge),
        Row(.forceQuit, .badge, .none, .badge),
        Row(.forceQuit, .badgeWithContent, .none, .badge),
        Row(.forceQuit, .nothing, .none),

        Row(.rebooted, .silent, .launchAndDidReceiveRemote, .wakes),
        Row(.rebooted, .alert, .none, .shows, .badge),
        Row(.rebooted, .alertWithContent, .launchAndDidReceiveRemote, .shows, .badge, .wakes),
        Row(.rebooted, .badge, .none, .badge),
        Row(.rebooted, .badgeWithContent, .launchAndDidReceiveRemote, .badge, .wakes),
        Row(.rebooted, .nothing, .none),
    ]

    /// By state and kind; what is not in the table does nothing.
    private static let effects: [PushEffect] = State.inPlaces.flatMap { state in
        Kind.allCases.map { kind in
            table.first { $0.state == state && $0.kind == kind }?.effect ?? PushEffect(.none, [])
        }
    }

    /// The table's row.
    public static func of(_ kind: Kind, in state: State) -> PushEffect {
        effects[state.place * Kind.allCases.count + kind.place]
    }
}

extension PushEffect.State {
    /// The app's code runs.
    public var isRunning: Bool {
        self == .foreground || self == .inactive || self == .background
    }

    fileprivate static let inPlaces = allCases.sorted { $0.place < $1.place }

    fileprivate var place: Int {
        switch self {
        case .foreground: 0
        case .background: 1
        case .suspended: 2
        case .notRunning: 3
        case .forceQuit: 4
        case .rebooted: 5
        case .inactive: 6
        }
    }
}

extension PushEffect.Kind {
    fileprivate var place: Int {
        switch self {
        case .silent: 0
        case .alert: 1
        case .alertWithContent: 2
        case .badge: 3
        case .badgeWithContent: 4
        case .nothing: 5
        }
    }
}
