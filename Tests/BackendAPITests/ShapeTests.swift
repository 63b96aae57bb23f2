import HTTP1
import Model
import Testing
import Wire

@testable import BackendAPI

/// The small pure pieces.
@Suite struct ShapeTests {
    @Test("times are RFC 3339 with all their milliseconds")
    func times() {
        #expect(Timestamp(milliseconds: 0).text == "1970-01-01T00:00:00.000Z")
        #expect(Timestamp(milliseconds: 1_795_270_800_123).text == "2026-11-21T14:20:00.123Z")
        #expect(Timestamp(milliseconds: 951_782_400_009).text == "2000-02-29T00:00:00.009Z")
        #expect(Timestamp(milliseconds: .max).text == "9999-12-31T23:59:59.999Z")
    }

    @Test("new identifiers are UUIDs of version 7 that rise with time")
    func identifiers() {
        let early = MessageID.fresh(at: Timestamp(milliseconds: 1_795_270_800_123))
        let late = MessageID.fresh(at: Timestamp(milliseconds: 1_795_270_800_124))
        #expect(early < late)
        #expect(early.high >> 16 == 1_795_270_800_123)
        #expect(early.high >> 12 & 0xF == 7)
        #expect(early.low >> 62 == 2)
        #expect(early != MessageID.fresh(at: Timestamp(milliseconds: 1_795_270_800_123)))
    }

    @Test("paths find their route, and wrong methods are told the right ones")
    func routing() throws {
        let table = BackendAPI.backendRoutes
        func find(_ method: String, _ segments: [String]) throws(Problem) -> String {
            let request = HTTPRequest(method: method, path: "", pathSegments: segments)
            return try table.find(request).route.template
        }
        #expect(try find("GET", ["v1", "devices", "x"]) == "/v1/devices/{device}")
        #expect(try find("HEAD", ["livez"]) == "/livez")
        for segments in [[], ["v1"], ["v1", "devices"], ["v1", "devices", ""], ["livez", ""]] {
            #expect(throws: Problem.self) { try find("GET", segments) }
        }
        do {
            _ = try find("PUT", ["v1", "devices", "x"])
            Issue.record("PUT was taken")
        } catch {
            #expect(error.status == 405)
            #expect(error.headers["allow"] == "DELETE, GET, HEAD")
        }
    }

    @Test("no two routes of a table take the same path")
    func routesAreApart() {
        for table in [BackendAPI.backendRoutes, BackendAPI.adminRoutes] {
            for route in table.routes {
                let path = route.template.split(separator: "/").map(String.init)
                let fitting = table.routes.filter {
                    $0.method == route.method && $0.parameters(in: path) != nil
                }
                #expect(fitting.map(\.template) == [route.template])
            }
        }
    }

    @Test("every code of the registry has an error's status", arguments: Code.allCases)
    func codes(_ code: Code) {
        #expect((400..<600).contains(code.httpStatus))
        #expect(
            (code.httpStatus == 429 || code.httpStatus >= 500)
                == (code.rawValue < 2000 || code.rawValue >= 5000 && code.httpStatus == 503))
    }
}
