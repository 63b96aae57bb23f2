import CDescription
import HTTP1

/// What this server speaks: the file that clients are made from, and the same for people. They need
/// no key, as the routes they tell of stand in a public repository.
enum DescriptionRoutes {
    static let all: [Route] = [
        Route("GET", "/openapi.yaml", query: nil, .open(file)),
        Route("GET", "/docs", query: nil, .open(page)),
    ]

    static func file(_ call: Call) throws(Problem) -> Step {
        answer("application/yaml", fileBytes)
    }

    static func page(_ call: Call) throws(Problem) -> Step {
        // The page has a style of its own, and nothing else that a browser fetches or runs.
        answer(
            "text/html; charset=utf-8", pageBytes,
            [
                (
                    "content-security-policy",
                    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                        + "form-action 'none'; frame-ancestors 'none'"
                ),
                ("referrer-policy", "no-referrer"),
            ])
    }

    // Answers that are not taken share them.
    private static let fileBytes = bytes(rouse_description)
    private static let pageBytes = bytes(rouse_description_page)

    private static func bytes(
        _ part: (UnsafeMutablePointer<Int>?) -> UnsafePointer<UInt8>?
    ) -> [UInt8] {
        var length = 0
        let start = part(&length)
        return Array(UnsafeBufferPointer(start: start, count: length))
    }

    private static func answer(
        _ type: String, _ bytes: [UInt8], _ headers: [(name: String, value: String)] = []
    ) -> Step {
        .answer(
            HTTPResponse(
                status: 200,
                headers: [
                    // Another version of the server has another file at the same address.
                    ("content-type", type), ("cache-control", "no-cache"),
                    ("x-content-type-options", "nosniff"),
                ] + headers,
                body: bytes))
    }
}
