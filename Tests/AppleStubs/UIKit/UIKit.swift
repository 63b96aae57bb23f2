// Of Apple's UIKit, and of its Foundation what Linux lacks, what Sources/ApplePlatform names, with
// the signatures that Apple documents.

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

@MainActor
open class UIApplication: NSObject {
    public nonisolated static let didBecomeActiveNotification = Notification.Name("active")
    public nonisolated static let willResignActiveNotification = Notification.Name("resign")
    public nonisolated static let didEnterBackgroundNotification = Notification.Name("background")
    public nonisolated static let protectedDataDidBecomeAvailableNotification =
        Notification.Name("available")

    open var backgroundTimeRemaining: TimeInterval { fatalError() }

    open func beginBackgroundTask(
        withName taskName: String?, expirationHandler handler: (@MainActor @Sendable () -> Void)?
    ) -> UIBackgroundTaskIdentifier { fatalError() }

    open func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) { fatalError() }
}

extension NotificationCenter {
    public final class Notifications: AsyncSequence, Sendable {
        public typealias Element = Notification

        public struct AsyncIterator: AsyncIteratorProtocol {
            public mutating func next() async -> Notification? { fatalError() }
        }

        public func makeAsyncIterator() -> AsyncIterator { fatalError() }
    }

    public func notifications(
        named name: Notification.Name, object: AnyObject? = nil
    ) -> Notifications { fatalError() }
}
