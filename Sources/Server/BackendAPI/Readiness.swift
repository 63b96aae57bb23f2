import Model
import StoreService

/// Whether the server takes new traffic. `/readyz` and the agent tell the same look, so that a
/// balancer that asks both is never told two things.
struct Readiness: Equatable {
    /// Why the server itself takes none, such as a drain; empty: it does.
    let leaving: [String]
    /// Why the store cannot be written; it tries again by itself, and nobody has to publish for it
    /// to find out.
    let failure: StoreError?
    /// Why the store cannot be read, likewise.
    var readingFailure: StoreError?

    /// All of it; empty: it is ready.
    var reasons: [String] {
        var reasons = leaving
        switch failure {
        case .full?: reasons.append("the store has no space left")
        case _?: reasons.append("the store cannot be written")
        case nil: break
        }
        if readingFailure != nil { reasons.append("the store cannot be read") }
        return reasons
    }

    /// It is of no use to anybody now.
    var isDown: Bool { failure != nil || readingFailure != nil }
}

extension Surroundings {
    /// As it is now.
    var readiness: Readiness {
        Readiness(
            leaving: notReady(), failure: health.failure, readingFailure: health.readingFailure)
    }
}
