import Crypto
import EventLoop
import Feed
import HTTP1
import Model
import StoreService
import Telemetry
import Wire

/// Takes requests, runs their handlers' steps against the store, and answers. Loop-confined.
///
/// What waits here is bounded by the connections of the HTTP servers: each has one request at a
/// time.
final class CallDesk: Desk {
    private let table: RouteTable
    private let surroundings: Surroundings
    private let log: Log
    private let requests: CounterFamily
    private let durations: Histogram
    /// Calls take turns: one begins when the one before it was answered. What a call looked at
    /// is then still so when it writes.
    private let isOneAtATime: Bool
    private let appRequests: AppRate
    /// Calls of one app that may be under way: the others' need room too.
    private let appCallsMax: Int
    /// Bytes of what one app asked for and has not taken.
    private let appAnswerBytesMax: Int
    /// Who asks where nobody is named, for the audit log; `nil`: changes are not written down.
    private let operatorName: String?
    private let worker: DeskWorker
    private let debts: AuditDebts
    private var loads: [AppID: Load] = [:]
    private var rates = RateTable<AppID>(holdersMax: 4_096)
    private var client: StoreClient?
    private var waiting: [UInt64: Waiting] = [:]
    private var turns: AnswerTurns<StoreReply>?
    private var queue: [(Call, Route, Ticket)] = []
    private var isBusy = false
    /// Calls that were begun and not answered.
    private(set) var openCalls = 0

    /// What is under way for an app, from the beginning of a call until its answer is taken.
    private struct Load {
        var calls = 0
        /// Of answers, and what is set aside for those that are not made yet.
        var bytes = 0
    }

    /// Where an answer goes, and what is told of it.
    private struct Ticket {
        let method: String
        let template: String
        /// What the answer and the log call the request.
        let request: String
        let started: UInt64
        let trace: TraceContext?
        /// Whose key it came with.
        var app: AppID?
        /// What is set aside for its answer.
        var answerBytes = 0
        /// The change's row in the audit log.
        var audit: UInt64?
        /// The next call of a desk that carries out one at a time waits for the end of this one.
        var hasTurn = true
        let respond: Respond
    }

    private struct Waiting {
        enum Continuation {
            case commit((StoreAnswer) throws(Problem) -> Step)
            case read((StoreReading) throws(Problem) -> Step)
            /// The change is written down: it may begin.
            case noted(Call, @Sendable (Call) throws(Problem) -> Step)
            /// What came of it is written down, too, in the row of this number.
            case settled(HTTPResponse, UInt64)
        }

        let ticket: Ticket
        let then: Continuation
    }

    init(
        loop: Loop, table: RouteTable, store: StoreService, surroundings: Surroundings,
        instruments: Instruments, isOneAtATime: Bool = false,
        appRequests: AppRate = AppRate(.none), appCallsMax: Int = .max,
        appAnswerBytesMax: Int = .max, operatorName: String? = nil
    ) {
        self.table = table
        self.surroundings = surroundings
        self.isOneAtATime = isOneAtATime
        self.appRequests = appRequests
        self.appCallsMax = appCallsMax
        self.appAnswerBytesMax = appAnswerBytesMax
        self.operatorName = operatorName
        worker = DeskWorker(loop: loop)
        debts = AuditDebts(loop: loop, store: store)
        log = instruments.log
        requests = instruments.requests
        durations = instruments.durations
        turns = AnswerTurns(loop: loop) { [unowned self] in carryOut($0) }
        client = store.client(on: loop) { [unowned self] in received($0) }
    }

    /// No answer comes any more for what still waits.
    func close() {
        client?.close()
        client = nil
        turns?.close()
        worker.close()
        debts.close()
    }

    /// Answers through `respond`, once, now or later on this loop.
    func take(_ request: HTTPRequest, respond: @escaping Respond) {
        take(request, from: nil, respond: respond)
    }

    /// - Parameter caller: who asks, where the desk knows more than the way the request came.
    func take(_ request: HTTPRequest, from caller: Caller?, respond: @escaping Respond) {
        let started = SystemClock.monotonicMilliseconds()
        let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        let name = RequestName.of(request, at: now)
        openCalls += 1
        do throws(Problem) {
            let (route, parameters) = try table.find(request)
            let ticket = Ticket(
                method: route.method, template: route.template, request: name, started: started,
                trace: request.trace, respond: respond)
            let call = Call(
                request: request, parameters: parameters, surroundings: surroundings, now: now,
                caller: caller ?? operatorName.map { Caller(name: $0) })
            if isOneAtATime && isBusy {
                queue.append((call, route, ticket))
            } else {
                begin(call, route, ticket)
            }
        } catch {
            // It has no turn: that of another call goes on.
            let ticket = Ticket(
                method: "other", template: "other", request: name, started: started,
                trace: request.trace, hasTurn: false, respond: respond)
            finish(ticket, error.response)
        }
    }

    /// What the HTTP server refused by itself.
    func refused(_ refusal: HTTPRefusal) -> HTTPResponse {
        let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        let name = RequestName.of(refusal.headers, at: now)
        log.limited(
            .debug, "api.refused",
            [
                LogField("request", name), LogField("status", refusal.status),
                LogField("reason", refusal.reason),
            ])
        return Problem(refusal).response.named(name)
    }

    private func begin(_ call: Call, _ route: Route, _ ticket: Ticket) {
        isBusy = true
        do throws(Problem) {
            switch route.handler {
            case .open(let handler):
                try route.checkQuery(of: call.request)
                try route.checkBody(of: call.request)
                guard
                    let note = call.auditNote(
                        method: ticket.method, template: ticket.template)
                else {
                    return perform(try handler(call), ticket)
                }
                ask(.administer(.noteAudit(note)), .noted(call, handler), ticket)
            case .keyed(let handler):
                // Who has no key learns nothing, not even what a request should look like.
                var ticket = ticket
                let app = try app(call.request)
                ticket.app = app
                try checkRate(app)
                try route.checkQuery(of: call.request)
                try route.checkBody(of: call.request)
                try checkShare(app, route)
                var call = call
                call.app = app
                let step = try handler(call, app)
                ticket.answerBytes = route.answerBytes
                loads[app, default: Load()].calls += 1
                loads[app, default: Load()].bytes += route.answerBytes
                perform(step, ticket)
            }
        } catch {
            finish(ticket, error.response)
        }
    }

    /// The app whose API key the request carries.
    private func app(_ request: HTTPRequest) throws(Problem) -> AppID {
        guard let secret = request.bearer else {
            throw Problem(
                .authRequired, "send the app's API key as authorization: Bearer rk_..."
            ).with("www-authenticate", "Bearer")
        }
        guard let key = surroundings.apps.apiKey(hash: Digest.sha256(secret)) else {
            throw .unknownKey
        }
        guard surroundings.apps[key.app]?.app.isSuspended != true else {
            throw Problem(.suspended, "this app is suspended; ask the server's operator")
        }
        return key.app
    }

    /// RFC 6585, 4.
    private func checkRate(_ app: AppID) throws(Problem) {
        let now = Instant(milliseconds: SystemClock.monotonicMilliseconds())
        let limit = appRequests.limit
        guard let wait = rates.take(of: app, limit, now: now) else { return }
        throw Problem(
            .rateLimited, "more than \(limit.perSecond) requests a second"
        ).with("retry-after", String((wait + 999) / 1_000))
    }

    /// No more are under way at once than leave room for other apps: connections are few, and the
    /// one that comes too much is free again at once.
    private func checkShare(_ app: AppID, _ route: Route) throws(Problem) {
        guard let load = loads[app] else { return }
        if load.calls >= appCallsMax {
            throw Self.tooMuch("more than \(appCallsMax) requests of this app are under way")
        }
        // An app of which nothing is held gets any answer.
        if load.bytes > 0, load.bytes + route.answerBytes > appAnswerBytesMax {
            throw Self.tooMuch(
                "answers of more than \(appAnswerBytesMax) bytes for this app are under way")
        }
    }

    private static func tooMuch(_ detail: String) -> Problem {
        Problem(.rateLimited, detail).with("retry-after", "1").with("connection", "close")
    }

    private static let stopping = Problem(.unavailable, "the server is stopping")

    private func ask(_ request: StoreRequest, _ then: Waiting.Continuation, _ ticket: Ticket) {
        guard let client else { return finish(ticket, Self.stopping.response) }
        waiting[client.commit(request)] = Waiting(ticket: ticket, then: then)
    }

    private func perform(_ step: Step, _ ticket: Ticket) {
        guard let client else { return finish(ticket, Self.stopping.response) }
        switch step {
        case .answer(let response): finish(ticket, response)
        case .work(let work):
            // It writes nothing, and may wait for the network: others go on meanwhile.
            var ticket = ticket
            ticket.hasTurn = false
            worker.carryOut(work) { [unowned self, ticket] in finish(ticket, $0) }
            passTurn()
        case .commit(let request, let then):
            waiting[client.commit(request)] = Waiting(ticket: ticket, then: .commit(then))
        case .read(let query, let then):
            waiting[client.read(query)] = Waiting(ticket: ticket, then: .read(then))
        }
    }

    private func received(_ reply: StoreReply) {
        guard let waited = waiting[reply.ticket] else { return }
        turns?.add(reply, of: waited.ticket.app)
    }

    private func carryOut(_ reply: StoreReply) {
        guard let waited = waiting.removeValue(forKey: reply.ticket) else { return }
        var ticket = waited.ticket
        do throws(Problem) {
            switch (waited.then, reply.result) {
            case (.noted(let call, let handler), .committed(let outcome)):
                guard case .audited(let number) = outcome.answer else {
                    throw .unexpected(outcome.answer)
                }
                ticket.audit = number
                perform(try handler(call), ticket)
            case (.settled(let response, let number), let result):
                // What came of the change stands whether or not this was written.
                if case .failed = result { debts.add(number, status: UInt64(response.status)) }
                finish(ticket, response)
            default: perform(try next(reply.result, waited), ticket)
            }
        } catch {
            finish(ticket, error.response)
        }
    }

    private func next(_ result: StoreResult, _ waited: Waiting) throws(Problem) -> Step {
        switch (result, waited.then) {
        case (.committed(let outcome), .commit(let then)):
            switch outcome.answer {
            case .refused(let code, let detail):
                // The app was removed after its key was looked up.
                if let app = waited.ticket.app, surroundings.apps[app] == nil {
                    throw .unknownKey
                }
                throw Problem(code, detail)
            case .idempotencyMismatch: throw .idempotencyMismatch
            default: return try then(outcome.answer)
            }
        case (.read(let reading), .read(let then)): return try then(reading)
        case (.failed(let error), _):
            log.limited(
                .warning, "api.store_failed",
                [
                    LogField("request", waited.ticket.request),
                    LogField("route", waited.ticket.template), LogField("error", "\(error)"),
                ])
            throw Problem(error)
        case (.committed, _), (.read, _):
            preconditionFailure("a reply of the other kind than the question")
        }
    }

    private func finish(_ ticket: Ticket, _ response: HTTPResponse) {
        if let number = ticket.audit, client != nil {
            var ticket = ticket
            ticket.audit = nil
            let status = UInt64(response.status)
            return ask(
                .administer(.settleAudit(number, status: status)), .settled(response, number),
                ticket)
        }
        openCalls -= 1
        let bytes = response.body.count
        turns?.note(bytes: bytes)
        // A ticket has an app from when its call counted.
        if let app = ticket.app { loads[app]?.bytes += bytes - ticket.answerBytes }
        let elapsed = SystemClock.monotonicMilliseconds() - ticket.started
        requests[ticket.method, ticket.template, String(response.status)].add()
        durations.observe(milliseconds: elapsed)
        // Templates, not paths: these hold names of users.
        log.access(
            "api.answered",
            isRoutine: response.status < 400 && HealthRoutes.isOne(ticket.template),
            [LogField("request", ticket.request)]
                + (ticket.app.map { [LogField("app", $0.name)] } ?? []) + [
                    LogField("method", ticket.method), LogField("route", ticket.template),
                    LogField("status", response.status),
                    LogField("bytes", bytes), LogField("ms", elapsed),
                ] + (ticket.trace.map { [LogField("trace", $0.id)] } ?? []))
        ticket.respond(response.named(ticket.request)) { [weak self] in
            if let app = ticket.app { self?.lighten(app, bytes) }
        }
        if ticket.hasTurn { passTurn() }
    }

    /// An answer was taken: the call does not count any more.
    private func lighten(_ app: AppID, _ bytes: Int) {
        guard var load = loads[app] else { return }
        load.calls -= 1
        load.bytes -= bytes
        loads[app] = load.calls > 0 ? load : nil
    }

    /// The next call of a desk that carries out one at a time may begin.
    private func passTurn() {
        isBusy = false
        if isOneAtATime, !queue.isEmpty {
            let (call, route, next) = queue.removeFirst()
            begin(call, route, next)
        }
    }
}

/// What the desks count and tell.
struct Instruments: Sendable {
    let log: Log
    let requests: CounterFamily
    let durations: Histogram

    init(_ metrics: Metrics, _ log: Log) {
        self.log = log
        requests = metrics.counters(
            "rouse_http_requests_total", "Requests answered by the backend and admin API.",
            labels: ["method", "route", "status"])
        durations = metrics.histogram(
            "rouse_http_request_seconds", "From a whole request to its answer.")
    }
}
