import HTTP1
import Model
import StoreService
import Telemetry
import Wire

/// For load balancers, supervisors and Prometheus; they need no key.
enum HealthRoutes {
    static let all: [Route] = [
        Route("GET", "/livez", query: nil, .open(live)),
        Route("GET", "/readyz", query: nil, .open(ready)),
        Route("GET", "/metrics", query: nil, .open(metrics)),
    ]

    static func isOne(_ template: String) -> Bool { all.contains { $0.template == template } }

    private struct Health: Encodable {
        let status: String
        var reasons: [String]?
    }

    /// That this answers is the answer: the loop has its turns.
    static func live(_ call: Call) throws(Problem) -> Step {
        .answer(.json(200, Health(status: "alive")))
    }

    static func ready(_ call: Call) throws(Problem) -> Step {
        let reasons = call.surroundings.readiness.reasons
        guard reasons.isEmpty else {
            var answer = HTTPResponse.json(503, Health(status: "not ready", reasons: reasons))
            answer.headers.append(("retry-after", "1"))
            return .answer(answer)
        }
        return .answer(.json(200, Health(status: "ready")))
    }

    static func metrics(_ call: Call) throws(Problem) -> Step {
        .answer(
            HTTPResponse(
                status: 200,
                headers: [("content-type", "text/plain; version=0.0.4; charset=utf-8")],
                body: Array(call.surroundings.metrics.text.utf8)))
    }
}
