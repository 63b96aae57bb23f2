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
        /// Tokens of operators that were dropped.
        public var consoleTokens: UInt64

        private enum CodingKeys: String, CodingKey {
            case users, tokens
            case consoleTokens = "console_tokens"
        }
    }

    /// Draws the store's half of every epoch anew, with all that a restore does beside it, in one
    /// transaction. No server has the store open.
    ///
    /// - Parameter upgrades: What is done about an older schema.
    /// - Throws: `StoreCopy.Refusal`: there is no store, or a server may have it open.
    public static func draw(
        in place: StorePlace, upgrades: StoreUpgrades = StoreUpgrades()
    ) throws(StoreCopy.Refusal) -> Drawn {
        if case .file(let path) = place, !FileManager.default.fileExists(atPath: path) {
            throw StoreCopy.Refusal("there is no store at \(path)")
        }
        do throws(StoreError) {
            let store = try place.asItIs.open(isPatient: true, upgrades: upgrades)
            defer { store.close() }
            try StoreCopy.refuseNodes(of: store, place)
            // Written down before it is done, and what came of it after: there is no new epoch
            // without its row, and no row that says more than what was done.
            let note = AuditNote(actor: "command on the store", action: "POST /epoch")
            guard
                case .audited(let number) = try store.commit([.administer(.noteAudit(note))])
                    .first?.get().answer
            else { throw .unavailable("the audit log does not answer") }
            do throws(StoreError) {
                let request = StoreRequest.restore(epochHalf: Server.drawnHalf())
                guard
                    case .restored(let users, let tokens, let consoleTokens) =
                        try store.commit([request]).first?.get().answer
                else { throw .conflict("the store refuses a new epoch") }
                _ = try? store.commit([.administer(.settleAudit(number, status: 200))])
                return Drawn(users: users, tokens: tokens, consoleTokens: consoleTokens)
            } catch {
                // Of a commit whose answer was lost nobody knows what came: its row stays open.
                if case .unavailable = error { throw error }
                _ = try? store.commit([.administer(.settleAudit(number, status: 503))])
                throw error
            }
        } catch {
            throw StoreCopy.Refusal(error.words)
        }
    }
}
