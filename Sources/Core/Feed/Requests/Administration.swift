public import Model

/// What `rouse app` and `rouse console` change.
public enum Administration: Equatable, Sendable {
    case putApp(AppRecord)
    case removeApp(AppID)
    case putIssuerKey(IssuerKeyRecord)
    case removeIssuerKey(AppID, keyID: String)
    /// Refused with `.limit` when two keys are live.
    case putAPIKey(APIKeyRecord)
    case removeAPIKey(AppID, keyID: String)
    case putPushCredential(PushCredentialRecord)
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
