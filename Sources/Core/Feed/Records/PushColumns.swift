import Model
import Wake
import Wire

// What the push options of a row say, and whether an alert could show anything of it.

extension MessageRecord {
    /// Whether it has something an alert could show.
    var hasPushText: Bool {
        !(pushTitle.isEmpty && pushBody.isEmpty)
            || PushOptions(encoded: pushOptions)?.hasKeyText ?? false
    }

    var urgency: Urgency { PushOptions.urgency(of: pushOptions) }
    var trace: TraceContext? { PushOptions.trace(of: pushOptions) }
    var timing: AlertTiming { PushOptions.timing(of: pushOptions) }

    /// Whether an alert may show it: it has a push text and is not passive. A deleted one has none.
    fileprivate var hasAlert: Bool { hasPushText && urgency != .passive }

    /// Whether it may alert the user: somebody else's. Until it is read it is unread (SYN-27).
    func alerts(_ user: UserID) -> Bool { UserID(sender) != user && hasAlert }

    /// Whether it is worth a silent push and no more: somebody else's, passive.
    func isUseful(_ user: UserID) -> Bool {
        UserID(sender) != user && urgency == .passive && deletedAt == nil
    }
}

extension AnnouncementRecord {
    /// Whether it has something an alert could show.
    var hasPushText: Bool {
        !(pushTitle.isEmpty && pushBody.isEmpty)
            || PushOptions(encoded: pushOptions)?.hasKeyText ?? false
    }

    var urgency: Urgency { PushOptions.urgency(of: pushOptions) }
    var timing: AlertTiming { PushOptions.timing(of: pushOptions) }

    /// What is left of the options when it is taken back: whether a phone may be showing it. One
    /// that never alerted is passive then.
    var tracesOfAlert: PushOptions {
        var traces = PushOptions()
        traces.urgency = hasPushText ? urgency : .passive
        return traces
    }

    /// Whether a phone may be showing it until it is read there. Of one that was taken back the
    /// traces tell it.
    var mayBeShown: Bool { urgency != .passive && (deletedAt != nil || hasPushText) }
}
