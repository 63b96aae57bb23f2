// Of Apple's UserNotifications, what Sources/ApplePlatform names, with the signatures that Apple
// documents.

public import Foundation

public struct UNNotificationSoundName: RawRepresentable, Hashable, Sendable {
    public var rawValue: String
    public init(rawValue: String) { fatalError() }
    public init(_ rawValue: String) { fatalError() }
}

open class UNNotificationSound: NSObject {
    open class var `default`: UNNotificationSound { fatalError() }
    public convenience init(named name: UNNotificationSoundName) { fatalError() }
    open class func criticalSoundNamed(
        _ name: UNNotificationSoundName, withAudioVolume volume: Float
    ) -> UNNotificationSound { fatalError() }
}

public enum UNNotificationInterruptionLevel: UInt, Sendable {
    case passive
    case active
    case timeSensitive
    case critical
}

open class UNNotificationContent: NSObject {
    open var title: String { fatalError() }
    open var body: String { fatalError() }
    open var badge: NSNumber? { fatalError() }
    open var userInfo: [AnyHashable: Any] { fatalError() }
}

open class UNMutableNotificationContent: UNNotificationContent {
    public override init() { fatalError() }
    open override var title: String {
        get { fatalError() }
        set { fatalError() }
    }
    open var subtitle: String {
        get { fatalError() }
        set { fatalError() }
    }
    open override var body: String {
        get { fatalError() }
        set { fatalError() }
    }
    open var threadIdentifier: String {
        get { fatalError() }
        set { fatalError() }
    }
    open var categoryIdentifier: String {
        get { fatalError() }
        set { fatalError() }
    }
    open var targetContentIdentifier: String? {
        get { fatalError() }
        set { fatalError() }
    }
    open override var badge: NSNumber? {
        get { fatalError() }
        set { fatalError() }
    }
    open override var userInfo: [AnyHashable: Any] {
        get { fatalError() }
        set { fatalError() }
    }
    open var sound: UNNotificationSound? {
        get { fatalError() }
        set { fatalError() }
    }
    open var interruptionLevel: UNNotificationInterruptionLevel {
        get { fatalError() }
        set { fatalError() }
    }
    open var relevanceScore: Double {
        get { fatalError() }
        set { fatalError() }
    }
}

open class UNNotificationTrigger: NSObject {}

open class UNNotificationRequest: NSObject {
    open var identifier: String { fatalError() }
    open var content: UNNotificationContent { fatalError() }
    public convenience init(
        identifier: String, content: UNNotificationContent, trigger: UNNotificationTrigger?
    ) { fatalError() }
}

open class UNNotification: NSObject {
    open var date: Date { fatalError() }
    open var request: UNNotificationRequest { fatalError() }
}

open class UNNotificationResponse: NSObject {
    open var notification: UNNotification { fatalError() }
}

open class UNTextInputNotificationResponse: UNNotificationResponse {
    open var userText: String { fatalError() }
}

public enum UNAuthorizationStatus: Int, Sendable {
    case notDetermined = 0
    case denied = 1
    case authorized = 2
    case provisional = 3
    case ephemeral = 4
}

open class UNNotificationSettings: NSObject, @unchecked Sendable {
    open var authorizationStatus: UNAuthorizationStatus { fatalError() }
}

open class UNUserNotificationCenter: NSObject {
    open weak var delegate: (any UNUserNotificationCenterDelegate)? {
        get { fatalError() }
        set { fatalError() }
    }
    open class func current() -> UNUserNotificationCenter { fatalError() }
    open func deliveredNotifications() async -> [UNNotification] { fatalError() }
    open func add(_ request: UNNotificationRequest) async throws { fatalError() }
    open func removeDeliveredNotifications(withIdentifiers identifiers: [String]) { fatalError() }
    open func notificationSettings() async -> UNNotificationSettings { fatalError() }
    open func setBadgeCount(_ newBadgeCount: Int) async throws { fatalError() }
}

extension NSString {
    public class func localizedUserNotificationString(
        forKey key: String, arguments: [Any]?
    ) -> String { fatalError() }
}

open class UNNotificationServiceExtension: NSObject {
    public override init() { fatalError() }
    open func didReceive(
        _ request: UNNotificationRequest,
        withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
    ) { fatalError() }
    open func serviceExtensionTimeWillExpire() { fatalError() }
}

public struct UNNotificationPresentationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { fatalError() }
    public static var badge: Self { fatalError() }
    public static var sound: Self { fatalError() }
    public static var list: Self { fatalError() }
    public static var banner: Self { fatalError() }
}

// Its methods are optional; here only those that are forwarded are declared.
@MainActor
public protocol UNUserNotificationCenterDelegate: NSObjectProtocol {
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse
    ) async
}
