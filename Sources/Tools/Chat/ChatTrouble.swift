import RouseClient
import SyncClient

/// What keeps the app from its store and from its server, until it is over.
public struct ChatTrouble: Equatable, Sendable {
    /// In words; empty: nothing does.
    var store = ""
    var server = ""

    /// What a record makes of it; `nil`: nothing, it tells of no trouble and of no end of one.
    func after(_ record: RouseRecord) -> ChatTrouble? {
        var trouble = self
        switch record {
        case .storeFailed(let why): trouble.store = "the store: \(why)"
        case .lost(let why): trouble.server = "no connection to the server: \(why)"
        case .event(.loginRefused(let code)):
            trouble.server = "the server refused the login: \(Refusal(code: code))"
        case .event(.otherUser(let user)):
            trouble.server = "the identity token names \(user)"
        case .event(.upgradeRequired): trouble.server = "the server wants a newer app"
        case .event(.opened): trouble.server = ""
        // What came is stored.
        case .event(.synced): (trouble.store, trouble.server) = ("", "")
        default: return nil
        }
        return trouble
    }
}
