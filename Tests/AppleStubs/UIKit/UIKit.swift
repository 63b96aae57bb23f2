// Of Apple's UIKit, what Sources/ApplePlatform and the library's guide name, with the signatures that
// Apple documents.

public import Foundation

public enum UIBackgroundFetchResult: UInt, Sendable {
    case newData
    case noData
    case failed
}

public struct UIBackgroundTaskIdentifier: RawRepresentable, Hashable, Sendable {
    public var rawValue: Int
    public init(rawValue: Int) { fatalError() }
    public static let invalid = UIBackgroundTaskIdentifier(rawValue: 0)
}

extension FileManager {
    /// Of Apple's Foundation; Linux's has no groups of apps.
    public func containerURL(forSecurityApplicationGroupIdentifier group: String) -> URL? {
        fatalError()
    }
}

extension ProcessInfo {
    /// Of Apple's Foundation, as the notification of its change.
    public var isLowPowerModeEnabled: Bool { fatalError() }
}

extension NSNotification.Name {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    public static let NSProcessInfoPowerStateDidChange = NSNotification.Name("power")
}

public enum UIBackgroundRefreshStatus: Int, Sendable {
    case restricted = 0
    case denied = 1
    case available = 2
}

@MainActor
open class UIResponder: NSObject {
    public override init() { fatalError() }
}

@MainActor
public protocol UIApplicationDelegate: AnyObject {}

public struct OpenURLOptionsKey: Hashable, Sendable {}

public struct LaunchOptionsKey: Hashable, Sendable {}

@MainActor
open class UIApplication: UIResponder {
    public typealias OpenURLOptionsKey = UIKit.OpenURLOptionsKey
    public typealias LaunchOptionsKey = UIKit.LaunchOptionsKey

    open func registerForRemoteNotifications() { fatalError() }
    open func unregisterForRemoteNotifications() { fatalError() }

    public nonisolated static let didBecomeActiveNotification = Notification.Name("active")
    public nonisolated static let willResignActiveNotification = Notification.Name("resign")
    public nonisolated static let didEnterBackgroundNotification = Notification.Name("background")
    public nonisolated static let protectedDataDidBecomeAvailableNotification =
        Notification.Name("available")
    public nonisolated static let backgroundRefreshStatusDidChangeNotification =
        Notification.Name("refresh")

    public nonisolated static let significantTimeChangeNotification = Notification.Name("time")

    public enum State: Int, Sendable {
        case active = 0
        case inactive = 1
        case background = 2
    }

    open var applicationState: State { fatalError() }
    open var backgroundRefreshStatus: UIBackgroundRefreshStatus { fatalError() }
    open var backgroundTimeRemaining: TimeInterval { fatalError() }

    open func beginBackgroundTask(
        withName taskName: String?, expirationHandler handler: (@MainActor @Sendable () -> Void)?
    ) -> UIBackgroundTaskIdentifier { fatalError() }

    open func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) { fatalError() }
}
