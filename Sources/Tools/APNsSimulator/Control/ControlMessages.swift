public import DeviceModel

/// One line to the control socket. Which fields a command reads is in the README beside this
/// file; the others are ignored.
public struct ControlRequest: Codable, Equatable, Sendable {
    /// The commands.
    public enum Command: String, Codable, Sendable, CaseIterable {
        case ports
        case appAdd = "app_add"
        case keyAdd = "key_add"
        case keyRevoke = "key_revoke"
        case certificateAdd = "certificate_add"
        case certificateRevoke = "certificate_revoke"
        case tokenIssue = "token_issue"
        case tokenKill = "token_kill"
        case devices
        case deviceCreate = "device_create"
        case deviceOpen = "device_open"
        case deviceTap = "device_tap"
        case deviceDismiss = "device_dismiss"
        case deviceCover = "device_cover"
        case deviceUnlock = "device_unlock"
        case devicePlanRefresh = "device_plan_refresh"
        case deviceBackground = "device_background"
        case deviceSuspend = "device_suspend"
        case deviceForceQuit = "device_force_quit"
        case deviceKill = "device_kill"
        case deviceReboot = "device_reboot"
        case deviceFetch = "device_fetch"
        case deviceCoverage = "device_coverage"
        case deviceLowPower = "device_low_power"
        case deviceRefresh = "device_refresh"
        case deviceAlerts = "device_alerts"
        case deviceRules = "device_rules"
        case deviceStatus = "device_status"
        case deviceScreen = "device_screen"
        case deviceMessages = "device_messages"
        case deviceConversation = "device_conversation"
        case deviceParticipants = "device_participants"
        case deviceSend = "device_send"
        case deviceChange = "device_change"
        case deviceRead = "device_read"
        case deviceDigest = "device_digest"
        case deviceForget = "device_forget"
        case status
        case checks
        case clock
        case options
        case limits
        case log
        case counts
        case events
        case fault
    }

    /// What `fault` may ask for.
    public enum FaultKind: String, Codable, Sendable, CaseIterable {
        case answer, shutdown, silence, slow, reset, goaway, cut
        case halfClose = "half_close"
        case delay, door, refuse, streams
        case headerTable = "header_table"
        case date
        case clear
    }

    /// What `device_change` may ask for.
    public enum Change: String, Codable, Sendable, CaseIterable {
        case remove, edit, delete, metadata, mute, block
        case deleteConversation = "delete_conversation"
    }

    public var cmd: Command
    /// Comes back in the answer.
    public var id: UInt64?
    public var device: String?

    public var topic: String?
    public var team: String?
    public var kid: String?
    public var publicKey: String?
    /// A client certificate, PEM.
    public var certificate: String?
    public var topics: [String]?
    public var family: String?
    public var environment: APNsEnvironment?
    public var token: String?
    public var since: UInt64?
    public var toldFrom: UInt64?
    public var expired: Bool?

    public var deviceId: String?
    public var app: String?
    public var user: String?
    public var host: String?
    public var port: UInt16?
    public var serverName: String?
    public var trust: String?
    public var issuer: String?
    public var issuerKid: String?
    public var issuerKey: String?
    public var identityURL: String?
    public var locale: String?

    public var on: Bool?
    public var rules: DeviceRules?
    public var options: CheckOptions?
    public var limits: SimulatorLimits?
    public var advanceMs: Int64?
    public var offsetMs: Int64?
    public var runMs: UInt64?
    public var conversation: String?
    public var users: [String]?
    public var message: String?
    public var text: String?
    public var title: String?
    public var through: UInt64?
    public var position: UInt64?
    public var identifier: String?
    /// `device_tap`: the button of the notification that is pressed.
    public var action: String?
    public var foreground: Bool?
    public var locked: Bool?
    public var change: Change?
    public var everyone: Bool?

    public var after: UInt64?
    public var limit: Int?
    public var kinds: [SimulatorEvent.Kind]?
    /// `device_kill`: in the middle of what the app does next, at this event.
    public var at: SimulatorEvent.Kind?
    public var lossless: Bool?
    public var compact: Bool?

    public var fault: FaultKind?
    public var count: Int?
    public var status: Int?
    public var reason: String?
    public var code: UInt32?
    public var delivers: Bool?
    public var delayMs: UInt64?
    public var unprocessed: Int?
    public var skip: Int?
    public var connection: UInt64?
    public var door: FaultScript.Door?
    public var streams: UInt32?
    public var bytes: UInt32?
    public var skewMs: Int64?

    public init(_ cmd: Command, device: String? = nil) {
        self.cmd = cmd
        self.device = device
    }
}

/// One device as `device_status` tells it.
public struct DeviceReport: Codable, Equatable, Sendable {
    public var device: String
    public var token: String
    public var topic: String
    public var environment: APNsEnvironment
    public var state: PushEffect.State
    public var coverage: Bool
    public var lowPower: Bool
    public var backgroundRefresh: Bool
    public var alertsAllowed: Bool
    /// Restarted and not unlocked since.
    public var locked: Bool
    /// When the system next thinks of the app's background refresh: milliseconds since 1970.
    public var refreshAt: UInt64?
    public var badge: UInt64
    /// Notifications on the screen.
    public var shown: Int
    /// APNs holds a push for it.
    public var stored: Bool
    /// It keeps a silent push back.
    public var held: Bool
    /// `nil`: no app with a client runs on it.
    public var app: DeviceAppStatus?
}

/// One line from the control socket: an answer, or events if `event` or `applied` is there.
public struct ControlResponse: Codable, Equatable, Sendable {
    public var id: UInt64?
    public var ok = true
    public var error: String?
    public var ports: SimulatorPorts?
    public var token: String?
    public var deviceId: String?
    public var devices: [String]?
    public var status: DeviceReport?
    public var simulator: SimulatorStatus?
    public var checks: [CheckRow]?
    /// Milliseconds since 1970, by the simulator's clock.
    public var now: UInt64?
    public var screen: [ScreenNotification]?
    public var messages: [StoredMessage]?
    public var message: String?
    public var conversation: String?
    public var events: [SimulatorEvent]?
    /// The number to ask after next time.
    public var next: UInt64?
    /// Events that were wanted and are no longer kept.
    public var lost: UInt64?
    /// Events of each kind since the simulator was started, by the kind's name.
    public var counts: [String: UInt64]?
    public var event: SimulatorEvent?
    public var applied: AppliedBatch?

    public init() {}
}
