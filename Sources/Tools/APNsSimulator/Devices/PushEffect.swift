/// What a phone does with a push, as data: one row per state of the app and kind of push. From
/// Apple's "Pushing background updates to your App", "Handling notifications and notification-
/// related actions" and `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`.
public struct PushEffect: Equatable, Sendable {
    /// The state of the app when the push arrives.
    public enum State: String, Codable, Sendable, CaseIterable {
        case foreground
        /// In the background with run time left.
        case background
        /// In memory, not running.
        case suspended
        /// Swiped away: the system starts it for nothing until the user opens it.
        case forceQuit = "force_quit"
    }

    /// The kinds of push that differ.
    public enum Kind: String, Sendable, CaseIterable {
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
    }

    /// The delegate call that the app sees.
    public enum Callback: String, Codable, Sendable {
        case none
        /// `userNotificationCenter(_:willPresent:)`: the app in front decides, ours shows nothing.
        case willPresent
        /// `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`
        case didReceiveRemote
        /// Both of them, in this order.
        case willPresentAndDidReceiveRemote
    }

    public var callback: Callback
    /// The alert appears on the screen by itself.
    public var shows: Bool
    /// The badge number is set.
    public var setsBadge: Bool
    /// The app, if it is not running, runs for 30 s.
    public var wakes: Bool

    private init(_ callback: Callback, shows: Bool, badge: Bool, wakes: Bool) {
        self.callback = callback
        self.shows = shows
        setsBadge = badge
        self.wakes = wakes
    }

    /// The table.
    public static func of(_ kind: Kind, in state: State) -> PushEffect {
        switch (state, kind) {
        case (_, .nothing): PushEffect(.none, shows: false, badge: false, wakes: false)

        case (.foreground, .silent):
            PushEffect(.didReceiveRemote, shows: false, badge: false, wakes: false)
        case (.foreground, .alert):
            PushEffect(.willPresent, shows: false, badge: true, wakes: false)
        case (.foreground, .alertWithContent):
            PushEffect(.willPresentAndDidReceiveRemote, shows: false, badge: true, wakes: false)
        case (.foreground, .badge):
            PushEffect(.willPresent, shows: false, badge: true, wakes: false)
        case (.foreground, .badgeWithContent):
            PushEffect(.willPresentAndDidReceiveRemote, shows: false, badge: true, wakes: false)

        case (.background, .silent), (.suspended, .silent):
            PushEffect(.didReceiveRemote, shows: false, badge: false, wakes: true)
        case (.background, .alert), (.suspended, .alert):
            PushEffect(.none, shows: true, badge: true, wakes: false)
        case (.background, .alertWithContent), (.suspended, .alertWithContent):
            PushEffect(.didReceiveRemote, shows: true, badge: true, wakes: true)
        case (.background, .badge), (.suspended, .badge):
            PushEffect(.none, shows: false, badge: true, wakes: false)
        case (.background, .badgeWithContent), (.suspended, .badgeWithContent):
            PushEffect(.didReceiveRemote, shows: false, badge: true, wakes: true)

        case (.forceQuit, .silent):
            PushEffect(.none, shows: false, badge: false, wakes: false)
        case (.forceQuit, .alert), (.forceQuit, .alertWithContent):
            PushEffect(.none, shows: true, badge: true, wakes: false)
        case (.forceQuit, .badge), (.forceQuit, .badgeWithContent):
            PushEffect(.none, shows: false, badge: true, wakes: false)
        }
    }

    /// Which kind a push is.
    public static func kind(of push: PushDelivery) -> Kind {
        let content = push.content
        if push.pushType == "background" { return content.contentAvailable ? .silent : .nothing }
        if content.showsAlert || content.sound {
            return content.contentAvailable ? .alertWithContent : .alert
        }
        if content.badge != nil { return content.contentAvailable ? .badgeWithContent : .badge }
        // Push type alert without anything to show wakes nothing either.
        return .nothing
    }
}
