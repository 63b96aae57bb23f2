#if canImport(UIKit)
    public import AppLife
    public import Foundation
    public import Model
    import Network
    public import RouseClient
    import SyncClient
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

        /// Follows the window, the lock, the networks, the zone and the switches of the phone, and
        /// registers for pushes anew when the server wants another token, until the client closes
        /// or the task is cancelled.
        @MainActor
        public func follow(_ application: UIApplication) async {
            let time = BackgroundTime()
            let (news, telling) = AsyncStream.makeStream(
                of: SystemNews.self, bufferingPolicy: .bufferingNewest(64))
            let observers = Self.observe(application, time, telling)
            defer {
                for observer in observers { NotificationCenter.default.removeObserver(observer) }
            }
            let monitor = Self.watchNetwork(telling)
            defer { monitor.cancel() }
            let changes = await changes()
            let renewing = Task { @MainActor in
                for await change in changes where change == .pushTokenRefused {
                    application.registerForRemoteNotifications()
                }
                // The client is closed: nothing is left to follow.
                telling.finish()
            }
            defer { renewing.cancel() }
            await setPlace(.ofThisPhone)
            // It may have become active before anybody followed it.
            if application.applicationState == .active { await scene(.active) }
            await tellSwitches(application)
            var network = NetworkWatch()
            for await new in news {
                switch new {
                case .call(let call): await heard(call, application, time)
                case .network(let isUp, let interface):
                    if network.changed(isUp: isUp, interface: interface) { await networkChanged() }
                }
            }
            await time.leave()
            time.end(application)
        }

        @MainActor
        private func heard(
            _ call: SystemCall, _ application: UIApplication, _ time: BackgroundTime
        ) async {
            switch call {
            case .active:
                // What is said of the front comes after what was said of leaving it.
                await time.leave()
                time.end(application)
                await scene(.active)
                // The system does not tell when the person allows or forbids alerts. The person
                // does so in another app, and then comes back to this one.
                await tellSwitches(application)
            case .backgroundRefresh, .power: await tellSwitches(application)
            case .resigns: await scene(.inactive)
            case .background:
                await time.leave()
                // Of what is left, so much that the good-bye leaves before the system's end of it.
                let seconds = min(max(application.backgroundTimeRemaining - 5, 0), 25)
                let left = Milliseconds(seconds * 1_000)
                await scene(.background(remaining: left))
                time.leaving = Task { @MainActor in
                    // What is in sync, with nothing to send, need not be kept awake.
                    _ = await settled(within: left)
                    guard !Task.isCancelled, application.applicationState == .background else {
                        return
                    }
                    await scene(.suspending)
                    time.end(application)
                }
            case .unlocked: await unlocked()
            case .zone, .locale, .time: await setPlace(.ofThisPhone)
            }
        }

        @MainActor
        private static func observe(
            _ application: UIApplication, _ time: BackgroundTime,
            _ telling: AsyncStream<SystemNews>.Continuation
        ) -> [any NSObjectProtocol] {
            SystemCall.allCases.map { call in
                NotificationCenter.default.addObserver(
                    forName: call.name, object: nil, queue: nil
                ) { _ in
                    // Here and now: the app may be suspended as soon as this returns. The window's
                    // notifications come on the main thread.
                    if call == .background {
                        MainActor.assumeIsolated { time.begin(application) }
                    }
                    telling.yield(.call(call))
                }
            }
        }

        private static func watchNetwork(
            _ telling: AsyncStream<SystemNews>.Continuation
        ) -> NWPathMonitor {
            let monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { path in
                telling.yield(
                    .network(
                        isUp: path.status == .satisfied,
                        interface: path.availableInterfaces.first?.name ?? ""))
            }
            monitor.start(queue: DispatchQueue(label: "rouse.network"))
            return monitor
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

    private enum SystemNews: Sendable {
        case call(SystemCall)
        case network(isUp: Bool, interface: String)
    }

    private enum SystemCall: CaseIterable, Sendable {
        case active
        case resigns
        case background
        case unlocked
        case backgroundRefresh
        case power
        case zone
        case locale
        /// Among others, the clock was put forward or back for the summer.
        case time

        var name: Notification.Name {
            switch self {
            case .active: UIApplication.didBecomeActiveNotification
            case .resigns: UIApplication.willResignActiveNotification
            case .background: UIApplication.didEnterBackgroundNotification
            case .unlocked: UIApplication.protectedDataDidBecomeAvailableNotification
            case .backgroundRefresh: UIApplication.backgroundRefreshStatusDidChangeNotification
            case .power: .NSProcessInfoPowerStateDidChange
            case .zone: .NSSystemTimeZoneDidChange
            case .locale: NSLocale.currentLocaleDidChangeNotification
            case .time: UIApplication.significantTimeChangeNotification
            }
        }
    }

    /// The system lets the app run on for a while when its window is gone, and says when that ends.
    @MainActor
    private final class BackgroundTime {
        private var task = UIBackgroundTaskIdentifier.invalid
        /// Says good-bye and ends the time, when there is nothing more to do.
        var leaving: Task<Void, Never>?

        func begin(_ application: UIApplication) {
            end(application)
            // The system ends an app that has not ended its task when this returns. The good-bye
            // was said before.
            task = application.beginBackgroundTask(withName: "rouse") { self.end(application) }
        }

        /// Nothing of an earlier departure is said from here on.
        func leave() async {
            leaving?.cancel()
            await leaving?.value
            leaving = nil
        }

        func end(_ application: UIApplication) {
            guard task != .invalid else { return }
            application.endBackgroundTask(task)
            task = .invalid
        }
    }
#endif
