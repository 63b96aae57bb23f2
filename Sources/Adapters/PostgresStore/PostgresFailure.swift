import Model

/// What an error of the server means for the store (PostgreSQL 15, appendix A: error codes).
struct PostgresFailure {
    /// Five characters; empty: the connection was lost.
    let state: String
    let text: String

    var error: StoreError {
        switch state {
        case "40001", "40P01", "55P03":
            .conflict("another transaction is in the way: \(what)")
        case "23505":
            .conflict("a row is there already: \(what)")
        case "22012":
            .conflict("a row to be changed is not there: \(what)")
        case "2201E":
            PostgresCommitMark.isGone
        case "57014":
            .conflict("a statement took longer than it may: \(what)")
        case "53100":
            .full("no space: \(what)")
        case "25006":
            .unavailable("the server is read-only, is it a standby? \(what)")
        case "42501":
            .unavailable("the role has too few rights, see Deploy/README.md: \(what)")
        case _ where ["22", "23", "54"].contains(state.prefix(2)):
            .corrupt("a row is refused: \(what)")
        default:
            .unavailable(what)
        }
    }

    private var what: String { state.isEmpty ? text : "\(text) (\(state))" }
}
