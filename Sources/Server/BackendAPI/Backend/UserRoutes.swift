import Feed
import HTTP1
import Model

/// What a backend does with a user as a whole.
enum UserRoutes {
    static let all: [Route] = [
        Route("DELETE", "/v1/users/{user}", .keyed(delete))
    ]

    private struct Body: Encodable {
        let user: String
        let state: String
    }

    /// It is decided when this is answered; carrying it out takes as long as there is to delete.
    static func delete(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let user = try call.user()
        let idempotency = try call.idempotency()
        return .commit(.deleteUser(app: app, user, idempotency: idempotency)) {
            answer throws(Problem) in
            guard case .done = answer else { throw .unexpected(answer) }
            return .answer(.json(202, Body(user: user.name, state: "deleting")))
        }
    }
}
