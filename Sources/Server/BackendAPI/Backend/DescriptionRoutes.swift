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
        answer("application/yaml", rouse_description)
    }

    static func page(_ call: Call) throws(Problem) -> Step {
        // The page has a style of its own, and nothing else that a browser fetches or runs.
        answer(
            "text/html; charset=utf-8", rouse_description_page,
            [
                (
                    "content-security-policy",
                    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                        + "form-action 'none'; frame-ancestors 'none'"
                ),
                ("referrer-policy", "no-referrer"),
            ])
    }

    private static func answer(
        _ type: String, _ bytes: (UnsafeMutablePointer<Int>?) -> UnsafePointer<UInt8>?,
        _ headers: [(name: String, value: String)] = []
    ) -> Step {
        var length = 0
        let start = bytes(&length)
        return .answer(
            HTTPResponse(
                status: 200,
                headers: [
                    // Another version of the server has another file at the same address.
                    ("content-type", type), ("cache-control", "no-cache"),
                    ("x-content-type-options", "nosniff"),
                ] + headers,
                body: Array(UnsafeBufferPointer(start: start, count: length))))
    }
}
