import Feed
import FoundationEssentials
import Model

/// Tells a store that its history has lost its end, after somebody else than `rouse restore` took
/// it back: `rouse epoch new`.
public enum NewEpoch {
    /// What was done.
    public struct Drawn: Codable, Equatable, Sendable {
        /// Whose devices take a reset.
        public var users: UInt64
        /// Session tokens that were dropped.
        public var tokens: UInt64
    }

    /// Draws the store's half of every epoch anew, with all that a restore does beside it, in one
    /// transaction. No server has the store open.
    ///
    /// - Throws: `StoreCopy.Refusal`: there is no store, or a server may have it open.
    public static func draw(in place: StorePlace) throws(StoreCopy.Refusal) -> Drawn {
        if case .file(let path) = place, !FileManager.default.fileExists(atPath: path) {
            throw StoreCopy.Refusal("there is no store at \(path)")
        }
        do throws(StoreError) {
            let store = try place.asItIs.open(isPatient: true)
            defer { store.close() }
            try StoreCopy.refuseNodes(of: store, place)
            let note = AuditNote(actor: "command on the store", action: "POST /epoch", status: 200)
            var drawn = Drawn(users: 0, tokens: 0)
            for outcome in try store.commit([
                .restore(epochHalf: Server.drawnHalf()), .administer(.noteAudit(note)),
            ]) {
                if case .restored(let users, let tokens) = try outcome.get().answer {
                    drawn = Drawn(users: users, tokens: tokens)
                }
            }
            return drawn
        } catch {
            throw StoreCopy.Refusal(error.words)
        }
    }
}
