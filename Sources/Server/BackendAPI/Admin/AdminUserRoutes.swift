import Feed
import HTTP1
import Model

/// Users of an app, as operators look for them.
enum AdminUserRoutes {
    static let all: [Route] = [
        Route("GET", "/apps/{app}/users", query: ["prefix", "cursor", "limit"], .open(list)),
        Route("GET", "/apps/{app}/users/{user}", .open(show)),
    ]

    private static let rowsDefault = 50
    private static let rowsMax = 500

    /// By name, those that begin with `prefix`.
    private static func list(_ call: Call) throws(Problem) -> Step {
        let app = try call.configuration().app.app
        let prefix = try call.namePrefix()
        let query = OperatorQuery.users(
            app, prefix: prefix, after: try call.userCursor(.users),
            limit: try call.limit(default: rowsDefault, max: rowsMax))
        let address = call.address
        return .read(.operators(query)) { reading throws(Problem) in
            guard case .operators(.users(let users, let next)) = reading else {
                throw .unexpected(reading)
            }
            let body = FoundUserListBody(
                users: users.map { FoundUserBody($0) },
                next: next.map { PageCursor(.users, of: address, Array($0.name.utf8)).text })
            return .answer(.json(200, body))
        }
    }

    private static func show(_ call: Call) throws(Problem) -> Step {
        let query = OperatorQuery.user(try call.configuration().app.app, try call.user())
        return .read(.operators(query)) { reading throws(Problem) in
            guard case .operators(.user(let found)) = reading else { throw .unexpected(reading) }
            guard let found else { throw .noSuch("user") }
            return .answer(.json(200, PersonBody(found)))
        }
    }
}

struct FoundUserListBody: Encodable {
    let users: [FoundUserBody]
    let next: String?
}

struct FoundUserBody: Encodable {
    let user: String
    let createdAt: String
    let isSuspended: Bool
    /// Changes in the feed so far.
    let head: UInt64

    init(_ record: UserRecord) {
        user = record.user.name
        createdAt = record.createdAt.text
        isSuspended = record.isSuspended
        head = record.head
    }
}

/// What operators are told of a user beside the devices: nothing that the user wrote.
struct PersonBody: Encodable {
    let user: String
    let createdAt: String
    let isSuspended: Bool
    let deviceCount: Int
    /// Conversations in which the user takes part, and those of them that are muted.
    let conversationCount: Int
    let mutedCount: Int
    /// Users whom this one blocks.
    let blockedCount: Int
    /// There are more conversations, mutes or blocks than were counted.
    let isCut: Bool
    /// The number on the icon.
    let unread: UInt64
    let feed: UserBody.Feed

    init(_ view: PersonView) {
        let user = view.user.user
        self.user = user.user.name
        createdAt = user.createdAt.text
        isSuspended = user.isSuspended
        deviceCount = view.user.devices
        conversationCount = view.conversations
        mutedCount = view.muted
        blockedCount = view.blocked
        isCut = view.isCut
        unread = view.user.unread
        feed = UserBody.Feed(head: user.head, visibleHead: user.visibleHead)
    }
}
