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

    /// All of it; empty: it is ready.
    var reasons: [String] {
        guard let failure else { return leaving }
        switch failure {
        case .full(_): return leaving + ["the store has no space left"]
        default: return leaving + ["the store cannot be written"]
        }
    }
}

extension Surroundings {
    /// As it is now.
    var readiness: Readiness { Readiness(leaving: notReady(), failure: health.failure) }
}
