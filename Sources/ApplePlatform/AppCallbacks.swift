#if canImport(UIKit)
    public import AppLife
    public import Foundation
    public import Model
    public import RouseClient
    public import UIKit
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
        public func received(_ userInfo: sending [AnyHashable: Any]) async
            -> UIBackgroundFetchResult
        {
            let subject = userInfo["rouse"] as? [String: Any]
            let wake = (subject?["w"] as? String).flatMap { WakeID(text: $0) }
            return UIBackgroundFetchResult(await woken(by: wake, within: Self.pushTime))
        }

        /// `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`.
        ///
        /// - Parameter topic: the app's bundle id.
        public func registered(_ token: Data, topic: String, isDevelopment: Bool) {
            setPush(
                PushRegistration(
                    token: Array(token), environment: isDevelopment ? .development : .production,
                    topic: topic))
        }

        /// Follows the window and the lock of the phone, until the task is cancelled.
        @MainActor
        public func follow(_ application: UIApplication) async {
            let time = BackgroundTime()
            await withTaskGroup(of: Void.self) { group in
                for (name, phase) in Self.phases {
                    group.addTask { @MainActor in
                        let center = NotificationCenter.default
                        for await _ in center.notifications(named: name).map({ _ in () }) {
                            let phase = phase(application)
                            await self.scene(phase)
                            if case .background = phase {
                                time.begin(application) { await self.scene(.suspending) }
                            } else {
                                time.end(application)
                            }
                        }
                    }
                }
                group.addTask { @MainActor in
                    let name = UIApplication.protectedDataDidBecomeAvailableNotification
                    let center = NotificationCenter.default
                    for await _ in center.notifications(named: name).map({ _ in () }) {
                        await self.unlocked()
                    }
                }
            }
        }

        @MainActor
        private static var phases:
            [(Notification.Name, @MainActor @Sendable (UIApplication) -> ScenePhase)]
        {
            [
                (UIApplication.didBecomeActiveNotification, { _ in .active }),
                (UIApplication.willResignActiveNotification, { _ in .inactive }),
                (
                    UIApplication.didEnterBackgroundNotification,
                    { application in
                        // Without limit while the app is debugged.
                        let seconds = min(max(application.backgroundTimeRemaining, 0), 3_600)
                        return .background(remaining: Milliseconds(seconds * 1_000))
                    }
                ),
            ]
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
