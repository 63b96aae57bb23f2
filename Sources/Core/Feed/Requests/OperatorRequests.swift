public import Model

/// What operators look at besides apps.
public enum OperatorQuery: Equatable, Sendable {
    case consoleTokens
    case consoleToken(hash: [UInt8])
    /// Newest first, those below `before`.
    case audit(before: UInt64?, limit: Int)
    case nodes
    /// Those of an app whose names begin with `prefix`, by name.
    case users(AppID, prefix: String, after: UserID?, limit: Int)
    case user(AppID, UserID)
}

/// What such a query found.
public enum OperatorReading: Equatable, Sendable {
    /// Those that are over are left out.
    case consoleTokens([ConsoleTokenRecord])
    case consoleToken(ConsoleTokenRecord?)
    /// `next`: the list goes on below it.
    case audit([AuditRecord], next: UInt64?)
    case nodes([NodeView])
    /// `next`: the list goes on after it.
    case users([UserRecord], next: UserID?)
    /// `nil`: the app has no such user.
    case user(PersonView?)
}

/// A node as operators see it.
public struct NodeView: Equatable, Sendable {
    public var node: NodeRecord
    /// Sessions of devices that it has opened, and that have not ended.
    public var sessions: Int
    /// They are more than were counted.
    public var hasMoreSessions: Bool
    /// Why it drains; `nil`: it does not, or the audit log does not know any more.
    public var drain: DrainOrder?
}

/// A user as operators see one: what could explain that nothing comes.
public struct PersonView: Equatable, Sendable {
    public var user: UserView
    /// In which the user takes part, and those among them that are muted now.
    public var conversations: Int
    public var muted: Int
    /// Users whom this one blocks.
    public var blocked: Int
    /// There are more conversations, mutes or blocks than were counted.
    public var isCut: Bool
}

/// Since when a node is to have no devices, and who said so. Its row says only that it is so: the
/// order stands in the audit log, as long as that keeps it.
public struct DrainOrder: Equatable, Sendable {
    public var at: Timestamp
    public var actor: String
}

/// What `rouse app` and `rouse console` change.
public enum Administration: Equatable, Sendable {
    case putApp(AppRecord)
    case removeApp(AppID)
    case putIssuerKey(IssuerKeyRecord)
    case removeIssuerKey(AppID, keyID: String)
    /// Refused with `.limit` when two keys are live.
    case putAPIKey(APIKeyRecord)
    case removeAPIKey(AppID, keyID: String)
    /// With `isNew` it is refused where there is one of its name: none is replaced unasked.
    case putPushCredential(PushCredentialRecord, isNew: Bool = false)
    case removePushCredential(CredentialKey)
    /// Ends its sessions, forgets its tokens, detaches its push token.
    case removeDevice(AppID, UserID, DeviceID)
    /// Ends the sessions of all devices of a user and forgets their tokens, or asks them for an
    /// identity token.
    case revokeSessions(AppID, UserID, reauthenticate: Bool)
    case suspendUser(AppID, UserID)
    case resumeUser(AppID, UserID)
    case suspendApp(AppID)
    case resumeApp(AppID)
    /// Lets an operator into the console; refused with `.limit` when too many are live.
    case putConsoleToken(ConsoleTokenRecord)
    case removeConsoleToken(String)
    /// Answered with the number of its row.
    case noteAudit(AuditNote)
    /// What came of the change with this row.
    case settleAudit(UInt64, status: UInt64)
}
