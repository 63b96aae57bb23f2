#if canImport(UIKit)
    public import AppLife
    public import Foundation
    public import Model
    public import RouseClient
    public import UIKit
    import UserNotifications
    import Wire

    extension UIBackgroundFetchResult {
        public init(_ result: FetchResult) {
            switch result {
            case .newData: self = .newData
            case .noData: self = .noData
            case .failed: self = .failed
            }
        }
    }

    // What an application delegate forwards.
    extension Rouse {
        /// The run time that the system gives a silent push.
        public static let pushTime: Milliseconds = 30_000

        /// `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`.
        public nonisolated(nonsending) func received(_ userInfo: [AnyHashable: Any]) async
            -> UIBackgroundFetchResult
        {
            let subject = userInfo["rouse"] as? [String: Any]
            let wake = (subject?["w"] as? String).flatMap { WakeID(text: $0) }
            return UIBackgroundFetchResult(await woken(by: wake, within: Self.pushTime))
        }

        /// `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`.
        ///
        /// - Parameters:
        ///   - topic: the app's bundle id.
        ///   - isDevelopment: the app was signed for development (`aps-environment`): its tokens
        ///     are of APNs' sandbox.
        public func registered(_ token: Data, topic: String, isDevelopment: Bool) {
            setPush(
                PushRegistration(
                    token: Array(token), environment: isDevelopment ? .development : .production,
                    topic: topic))
        }

        /// Follows the window, the lock and the switches of the phone, and registers for pushes
        /// anew when the server wants another token, until the task is cancelled.
        @MainActor
        public func follow(_ application: UIApplication) async {
            let time = BackgroundTime()
            let (calls, telling) = AsyncStream.makeStream(
                of: SystemCall.self, bufferingPolicy: .bufferingNewest(16))
            let center = NotificationCenter.default
            let observers = SystemCall.allCases.map { call in
                center.addObserver(forName: call.name, object: nil, queue: nil) { _ in
                    telling.yield(call)
                }
            }
            defer { for observer in observers { center.removeObserver(observer) } }
            let changes = await changes()
            let renewing = Task { @MainActor in
                for await change in changes where change == .pushTokenRefused {
                    application.registerForRemoteNotifications()
                }
            }
            defer { renewing.cancel() }
            // It may have become active before anybody followed it.
            if application.applicationState == .active { await scene(.active) }
            await tellSwitches(application)
            for await call in calls {
                switch call {
                case .active:
                    time.end(application)
                    await scene(.active)
                    // The system does not tell when the person allows or forbids alerts. The person
                    // does so in another app, and then comes back to this one.
                    await tellSwitches(application)
                case .backgroundRefresh, .power: await tellSwitches(application)
                case .resigns: await scene(.inactive)
                case .background:
                    time.begin(application) { await self.scene(.suspending) }
                    // Without limit while the app is debugged.
                    let seconds = min(max(application.backgroundTimeRemaining, 0), 3_600)
                    await scene(.background(remaining: Milliseconds(seconds * 1_000)))
                case .unlocked: await unlocked()
                }
            }
        }

        @MainActor
        private func tellSwitches(_ application: UIApplication) async {
            let settings = await UNUserNotificationCenter.current().notificationSettings()
            await setSwitches(
                notifications: settings.authorizationStatus.letsShow,
                backgroundRefresh: application.backgroundRefreshStatus == .available,
                lowPower: ProcessInfo.processInfo.isLowPowerModeEnabled)
        }
    }

    extension UNAuthorizationStatus {
        /// Whether an alert of the app is shown, be it without a sound. `nil`: newer than this.
        fileprivate var letsShow: Bool? {
            switch self {
            case .authorized, .provisional, .ephemeral: true
            case .notDetermined, .denied: false
            @unknown default: nil
            }
        }
    }

    private enum SystemCall: CaseIterable {
        case active
        case resigns
        case background
        case unlocked
        case backgroundRefresh
        case power

        var name: Notification.Name {
            switch self {
            case .active: UIApplication.didBecomeActiveNotification
            case .resigns: UIApplication.willResignActiveNotification
            case .background: UIApplication.didEnterBackgroundNotification
            case .unlocked: UIApplication.protectedDataDidBecomeAvailableNotification
            case .backgroundRefresh: UIApplication.backgroundRefreshStatusDidChangeNotification
            case .power: .NSProcessInfoPowerStateDidChange
            }
        }
    }

    /// The system lets the app run on for a while when its window is gone, and says when that ends.
    @MainActor
    private final class BackgroundTime {
        private var task = UIBackgroundTaskIdentifier.invalid

        func begin(
            _ application: UIApplication, isOver: @escaping @MainActor @Sendable () async -> Void
        ) {
            end(application)
            task = application.beginBackgroundTask(withName: "rouse") {
                Task { @MainActor in
                    await isOver()
                    self.end(application)
                }
            }
        }

        func end(_ application: UIApplication) {
            guard task != .invalid else { return }
            application.endBackgroundTask(task)
            task = .invalid
        }
    }
#endif
