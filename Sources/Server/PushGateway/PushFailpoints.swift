import Failpoints
import Wake

extension Failpoint {
    /// A push of this class was handed to the connection.
    static func sent(_ kind: PushKind) -> Failpoint {
        switch kind {
        case .silent: .silentSent
        case .alert: .alertSent
        case .badge: .badgeSent
        case .campaign: .campaignSent
        }
    }

    /// APNs has answered it.
    static func answered(_ kind: PushKind) -> Failpoint {
        switch kind {
        case .silent: .silentAnswered
        case .alert: .alertAnswered
        case .badge: .badgeAnswered
        case .campaign: .campaignAnswered
        }
    }

    /// The answer is committed.
    static func settled(_ kind: PushKind) -> Failpoint {
        switch kind {
        case .silent: .silentSettled
        case .alert: .alertSettled
        case .badge: .badgeSettled
        case .campaign: .campaignSettled
        }
    }
}
