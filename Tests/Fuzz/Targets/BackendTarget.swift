import Feed
import Foundation
import MemoryStore
import Model
import Telemetry
import Wire

@testable import BackendAPI
@testable import HTTP1
@testable import StoreService

/// Requests one after another, each `METHOD target`, a line end, a body, and a zero byte; before
/// the method an `@` for the operator's API. They go through routes and handlers to the rules.
func fuzzBackendAPI(_ bytes: [UInt8]) throws(Violation) {
    let backend = try FuzzedBackend()
    for request in bytes.split(separator: 0).prefix(12) { try backend.take(Array(request)) }
}

private struct FuzzedBackend {
    private static let app = AppID("chess")
    private let store = MemoryStore(
        tables: Schema.tables, lockRanks: Schema.lockRanks,
        clock: Timestamp(milliseconds: 1_700_000_000_000))
    private let apps = AppDirectory()
    private let surroundings: Surroundings

    init() throws(Violation) {
        surroundings = Surroundings(
            apps: apps, health: StoreHealth(), metrics: Metrics(), notReady: { [] })
        let setup: [StoreRequest] = [
            .start(boot: BootID(high: 1, low: 1), epochHalf: 77),
            .administer(.putApp(AppRecord(app: Self.app, createdAt: store.clock))),
        ]
        for request in setup { _ = try commit(request) }
    }

    func take(_ bytes: [UInt8]) throws(Violation) {
        let isOperator = bytes.first == UInt8(ascii: "@")
        let parts = bytes.dropFirst(isOperator ? 1 : 0).split(
            separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
        let words = parts[0].split(separator: UInt8(ascii: " "), maxSplits: 1)
        guard words.count == 2, let target = RequestTarget(Array(words[1])) else { return }
        let request = HTTPRequest(
            method: String(decoding: words[0], as: UTF8.self), path: target.path,
            pathSegments: target.pathSegments, query: target.query,
            headers: HTTPHeaders([("content-type", "application/json")]),
            body: parts.count == 2 ? Array(parts[1]) : [])
        let result: Result<HTTPResponse, Violation>
        do throws(Problem) {
            result = try answer(request, isOperator: isOperator)
        } catch {
            result = .success(error.response)
        }
        let response = try result.get()
        try check(response, to: request)
    }

    private func answer(
        _ request: HTTPRequest, isOperator: Bool
    ) throws(Problem) -> Result<HTTPResponse, Violation> {
        let table = isOperator ? BackendAPI.adminRoutes : BackendAPI.backendRoutes
        let (route, parameters) = try table.find(request)
        let call = Call(
            request: request, parameters: parameters, surroundings: surroundings,
            now: store.clock, caller: isOperator ? Caller(name: "fuzz") : nil)
        try route.checkQuery(of: request)
        if let note = call.auditNote(method: route.method, template: route.template) {
            let noted = Result { () throws(Violation) in
                try commit(.administer(.noteAudit(note)))
            }
            if case .failure(let violation) = noted { return .failure(violation) }
        }
        var step: Step
        switch route.handler {
        case .open(let handler): step = try handler(call)
        case .keyed(let handler): step = try handler(call, Self.app)
        }
        for _ in 0..<20 {
            switch step {
            case .answer(let response): return .success(response)
            case .commit(let request, let then):
                let answer = Result { () throws(Violation) in try commit(request) }
                switch answer {
                case .failure(let violation): return .failure(violation)
                case .success(.refused(let code, let detail)): throw Problem(code, detail)
                case .success(.idempotencyMismatch): throw Problem.idempotencyMismatch
                case .success(let answer): step = try then(answer)
                }
            case .work(let work): return .success(work())
            case .read(let query, let then):
                switch Result(catching: { () throws(Violation) in try read(query) }) {
                case .failure(let violation): return .failure(violation)
                case .success(let reading): step = try then(reading)
                }
            }
        }
        return .failure(Violation("\(request.path) is never answered"))
    }

    private func check(_ response: HTTPResponse, to request: HTTPRequest) throws(Violation) {
        let line = "\(request.method) \(request.path)"
        try hold((200..<600).contains(response.status), "\(line): status \(response.status)")
        try hold(
            response.status != 500, "\(line): 500 \(String(decoding: response.body, as: UTF8.self))"
        )
        let media = response.headers.first { $0.name.lowercased() == "content-type" }?.value ?? ""
        if media.contains("json") {
            let object = try? JSONSerialization.jsonObject(with: Data(response.body))
            try hold(
                object != nil, "\(line): no JSON: \(String(decoding: response.body, as: UTF8.self))"
            )
        }
        for (name, value) in response.headers {
            try hold(
                (name + value).utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F },
                "\(line): the header \(name)")
        }
    }

    private func commit(_ request: StoreRequest) throws(Violation) -> StoreAnswer {
        store.clock = store.clock + 7
        do throws(StoreError) {
            guard case .success(let outcome)? = try store.commit([request]).first else {
                throw .corrupt("no outcome")
            }
            if case .administer = request, case .apps(let all)? = try? read(.apps) {
                apps.replace(all)
            }
            return outcome.answer
        } catch {
            throw Violation("the rules fail: \(error) for \(request)")
        }
    }

    private func read(_ query: StoreQuery) throws(Violation) -> StoreReading {
        var reading = StoreReading.nothing
        do throws(StoreError) {
            try store.read { snapshot throws(StoreError) in
                reading = try Rules.read(
                    query, in: snapshot, now: self.store.clock, limits: RuleLimits())
            }
        } catch {
            throw Violation("the rules cannot read: \(error) for \(query)")
        }
        return reading
    }
}
