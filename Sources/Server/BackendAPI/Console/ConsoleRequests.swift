import Crypto
import FoundationEssentials
import HTTP1
import Model
import Wire

// What the console looks at in a request before it takes it.
extension HTTPRequest {
    func check(_ methods: [String], takesBody: Bool = false) throws(Problem) {
        if methods.contains(method) {
            guard takesBody || body.isEmpty else { throw .noBody(method) }
            return
        }
        let list = methods.joined(separator: ", ")
        throw Problem(
            .malformed, "this address takes \(list)", name: "method_not_allowed", status: 405
        ).with("allow", list)
    }

    /// A page looks by itself: it keeps no session alive whose operator has gone.
    var isWatching: Bool { method == "GET" && headers[ConsoleDesk.watchingHeader] != nil }

    /// JSON in UTF-8, as it stands: nothing here undoes a coding or reads another charset.
    var isJSON: Bool {
        let codings = headers.values("content-encoding")
        guard codings.allSatisfy({ equalWithoutCase($0.withoutSpaces, "identity") }) else {
            return false
        }
        guard let type = headers["content-type"] else { return false }
        if type == "application/json" { return true }
        let pieces = type.split(separator: ";")
        guard let media = pieces.first, equalWithoutCase(media.withoutSpaces, "application/json")
        else { return false }
        return pieces.dropFirst().allSatisfy { parameter in
            let pair = parameter.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, equalWithoutCase(pair[0].withoutSpaces, "charset") else {
                return true
            }
            let name = pair[1].withoutSpaces.filter { $0 != "\"" }.lowercased()
            return name == "utf-8" || name == "utf8"
        }
    }

    /// RFC 6265, 4.2.1. Of several of the name the first.
    func cookie(_ name: String) -> String? {
        for line in headers.values("cookie") {
            for pair in line.split(separator: ";") {
                let parts = pair.split(separator: "=", maxSplits: 1)
                guard parts.count == 2 else { continue }
                if parts[0].withoutSpaces == name {
                    return parts[1].withoutSpaces
                }
            }
        }
        return nil
    }

    /// The name of the session's cookie. Browsers send a cookie to every port of a host: two
    /// consoles on one host, such as two tunnels, must not take each other's.
    var consoleCookie: String {
        let port = headers["host"]?.split(separator: ":").last.flatMap { UInt16($0) }
        return ConsoleDesk.cookieName + (port.map { "_\($0)" } ?? "")
    }

    /// What hands the session's cookie over, for this console's pages only.
    func cookieLine(_ value: String, maxAge: Int? = nil) -> String {
        var line = "\(consoleCookie)=\(value); Path=/console; HttpOnly; SameSite=Strict"
        if let maxAge { line += "; Max-Age=\(maxAge)" }
        // A proxy in front of it speaks TLS.
        if headers["x-forwarded-proto"]?.lowercased() == "https" { line += "; Secure" }
        return line
    }

    /// A page of another site sent it: browsers say so.
    func checkOrigin() throws(Problem) {
        if let site = headers["sec-fetch-site"], !["same-origin", "none"].contains(site) {
            throw .foreignSite
        }
        guard let origin = headers["origin"] else { return }
        guard let host = headers["host"],
            origin.lowercased() == "http://\(host.lowercased())"
                || origin.lowercased() == "https://\(host.lowercased())"
        else { throw .foreignSite }
    }

    /// Only the console's own page knows the session's second secret.
    func checkChange(of session: ConsoleSession) throws(Problem) {
        try checkOrigin()
        guard headers[ConsoleDesk.csrfHeader] != nil else { throw .foreignSite }
        try checkPage(of: session)
    }

    /// All pages of a browser share one cookie: the page may be of a login before this session.
    func checkPage(of session: ConsoleSession) throws(Problem) {
        guard let given = headers[ConsoleDesk.csrfHeader] else { return }
        guard constantTimeEqual(Array(given.utf8), Array(session.csrf.utf8)) else {
            throw .otherSession
        }
    }

    /// Browsers take the segments `.` and `..` out of an address, percent-encoded ones, too: the
    /// console's pages write a `~` before them, and before what looks so then.
    mutating func readDots() {
        for place in pathSegments.indices {
            let segment = pathSegments[place]
            let rest = segment.utf8.drop { $0 == UInt8(ascii: "~") }
            guard rest.count < segment.utf8.count, [".", ".."].contains(String(rest)) else {
                continue
            }
            pathSegments[place] = String(segment.dropFirst())
        }
    }
}

extension HTTPResponse {
    /// With what keeps other pages out of the console's, and its pages from anything else.
    func guarded() -> HTTPResponse {
        var response = self
        response.headers += [
            (
                "content-security-policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                    + "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                    + "frame-ancestors 'none'"
            ),
            ("x-frame-options", "DENY"), ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"), ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ]
        return response
    }
}

extension Problem {
    static let loggedOut = Problem(.authRequired, "log in with a console token")

    static let otherSession = Problem(
        .forbidden,
        "this page is of an earlier login: somebody has logged in anew in this browser since then",
        name: "other_session")

    static let foreignSite = Problem(
        .forbidden, "the request was not sent by the console's own page", name: "foreign_site")
}
