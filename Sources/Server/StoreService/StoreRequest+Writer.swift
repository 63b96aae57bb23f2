import Feed

// What a writer has to know of a request, beside who asks.
extension StoreRequest {
    /// Whether it is carried out with the next request, and alone only if none comes soon. Nobody
    /// waits for an ACK, and one that is lost with the process is told again by the device's
    /// next SYNC: it is not worth a commit of its own.
    var waitsForCompany: Bool {
        if case .acknowledge = self { true } else { false }
    }

    /// Whether it writes down that the process is there.
    var saysAlive: Bool {
        switch self {
        case .keepAlive, .rested: true
        default: false
        }
    }

    /// Whether it is about many, and leaves those of whom another transaction holds something for
    /// a later turn.
    var passesOver: Bool {
        switch self {
        case .claimPushes, .sweepWakes, .coalesceReceipts, .continueFanOut, .continueDeletions,
            .enforceRetention, .campaigns(.advance), .schedules(.publishDue), .beat,
            .administer(.suspendApp), .administer(.removeApp):
            true
        default: false
        }
    }

    /// Whether it may change what the directory of apps shows.
    var changesApps: Bool {
        guard case .administer(let administration) = self else { return false }
        return switch administration {
        case .removeDevice, .revokeSessions, .suspendUser, .resumeUser: false
        default: true
        }
    }
}
