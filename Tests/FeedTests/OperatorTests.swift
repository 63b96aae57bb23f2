import Feed
import Model
import Testing
import Wire

/// Console tokens and the audit log.
@Suite struct OperatorTests {
    let world: World

    init() throws { world = try World() }

    private func token(_ id: String, hours: UInt64 = 8) -> ConsoleTokenRecord {
        ConsoleTokenRecord(
            tokenID: id, hash: Array("\(id)".utf8), label: "anna", role: .admin,
            createdAt: world.now, expiresAt: world.now + hours * 3_600_000)
    }

    private func read(_ query: OperatorQuery) throws -> OperatorReading {
        guard case .operators(let reading) = try world.read(.operators(query)) else {
            throw Unexpected(answer: .done)
        }
        return reading
    }

    private func found(_ id: String) throws -> ConsoleTokenRecord? {
        guard case .consoleToken(let token) = try read(.consoleToken(hash: Array(id.utf8))) else {
            throw Unexpected(answer: .done)
        }
        return token
    }

    private func audit(before: UInt64? = nil, limit: Int = 10) throws -> ([UInt64], UInt64?) {
        guard case .audit(let rows, let next) = try read(.audit(before: before, limit: limit))
        else { throw Unexpected(answer: .done) }
        return (rows.map(\.number), next)
    }

    private func note(_ action: String) throws -> UInt64 {
        let answer = try world.ask(
            .administer(.noteAudit(AuditNote(actor: "anna", action: action))))
        guard case .audited(let number) = answer else { throw Unexpected(answer: answer) }
        return number
    }

    @Test("one that was revoked since the backup does not let in after a restore")
    func restored() throws {
        try world.expectDone(.putConsoleToken(token("a")))
        try world.ask(.restore(epochHalf: 1_234))
        #expect(try found("a") == nil)
    }

    @Test("a token is found by its hash until its time is over, or it is revoked")
    func lifetime() throws {
        try world.expectDone(.putConsoleToken(token("a")))
        try world.expectDone(.putConsoleToken(token("b")))
        #expect(try found("a")?.role == .admin)
        #expect(try found("c") == nil)
        try world.expectDone(.removeConsoleToken("b"))
        #expect(try found("b") == nil)
        #expect(try world.ask(.administer(.removeConsoleToken("b"))).refusal == .notFound)
        world.pass(8 * 3_600_000 - 1)
        #expect(try found("a") != nil)
        world.pass(1)
        #expect(try found("a") == nil)
        #expect(try read(.consoleTokens) == .consoleTokens([]))
        #expect(try world.ask(.administer(.removeConsoleToken("a"))).refusal == .notFound)
        try world.ask(.enforceRetention(rows: 10))
        #expect(try world.all(ConsoleTokenRecord.self).isEmpty)
    }

    @Test("a token lives for 30 days at most, and there are 64 at once")
    func limits() throws {
        #expect(
            try world.ask(.administer(.putConsoleToken(token("a", hours: 30 * 24 + 1)))).refusal
                == .malformed)
        #expect(
            try world.ask(.administer(.putConsoleToken(token("a", hours: 0)))).refusal
                == .malformed)
        try world.expectDone(.putConsoleToken(token("early", hours: 1)))
        for number in 1..<ConsoleTokenRecord.countMax {
            try world.expectDone(.putConsoleToken(token("\(number)", hours: 2)))
        }
        #expect(
            try world.ask(.administer(.putConsoleToken(token("late")))).refusal == .limit)
        world.pass(3_600_000)
        try world.expectDone(.putConsoleToken(token("late")))
        #expect(
            try world.ask(.administer(.putConsoleToken(token("1")))).refusal == .limit)
    }

    @Test("a change has its row before it is carried out, and what came of it after")
    func audited() throws {
        let number = try note("PATCH apps shop")
        #expect(try world.all(AuditRecord.self).map(\.status) == [0])
        try world.expectDone(.settleAudit(number, status: 200))
        #expect(try world.all(AuditRecord.self).map(\.status) == [200])
        // One that has gone meanwhile.
        try world.expectDone(.settleAudit(77, status: 200))
        #expect(try world.all(AuditRecord.self).count == 1)
    }

    @Test("the log is read newest first, in pieces")
    func pieces() throws {
        for index in 1...5 { #expect(try note("POST \(index)") == UInt64(index)) }
        #expect(try audit(limit: 2) == ([5, 4], 4))
        #expect(try audit(before: 4, limit: 2) == ([3, 2], 2))
        #expect(try audit(before: 2, limit: 2) == ([1], nil))
        #expect(try audit(before: 1) == ([], nil))
    }

    @Test("90 days are kept, and of more than 10,000 rows the newest")
    func bounds() throws {
        _ = try note("POST old")
        world.pass(90 * 86_400_000 - 1)
        try world.ask(.enforceRetention(rows: 10))
        #expect(try world.all(AuditRecord.self).count == 1)
        world.pass(1)
        try world.ask(.enforceRetention(rows: 10))
        #expect(try world.all(AuditRecord.self).isEmpty)
        for _ in 0..<AuditRecord.countMax + 3 {
            try world.expectDone(.settleAudit(try note("POST"), status: 200))
        }
        let kept = try world.all(AuditRecord.self).map(\.number)
        #expect(kept.count == Int(AuditRecord.countMax))
        #expect(kept.max() == AuditRecord.countMax + 4)
        // Of those that nobody settles the newest, too.
        for _ in 0..<AuditRecord.pendingMax + 3 { _ = try note("DELETE") }
        let open = try world.all(AuditRecord.self).filter { $0.status == 0 }.map(\.number)
        #expect(open.count == Int(AuditRecord.pendingMax))
        #expect(open.max() == AuditRecord.countMax + 4 + AuditRecord.pendingMax + 3)
    }

    @Test("changes that are refused push out each other, and nothing that was carried out")
    func refusedApart() throws {
        func change(_ status: UInt64) throws {
            try world.expectDone(.settleAudit(try note("PATCH"), status: status))
        }
        try change(200)
        // One that is under way, and one that a server noted as refused at once.
        let open = try note("DELETE")
        try world.ask(
            .administer(.noteAudit(AuditNote(actor: "anna", action: "POST", status: 401))))
        for _ in 0..<AuditRecord.countMax + 5 { try change(403) }
        let rows = try world.all(AuditRecord.self)
        #expect(rows.filter { $0.status == 403 }.count == Int(AuditRecord.refusedMax))
        #expect(rows.filter { $0.status == 401 }.isEmpty)
        #expect(rows.map(\.number).contains(1), "what was carried out has gone")
        #expect(rows.map(\.number).contains(open), "what nobody settled has gone")
        for _ in 0..<AuditRecord.countMax { try change(200) }
        let later = try world.all(AuditRecord.self)
        #expect(later.filter { $0.status == 200 }.count == Int(AuditRecord.countMax))
        #expect(later.filter { $0.status == 403 }.count == Int(AuditRecord.refusedMax))
        #expect(!later.map(\.number).contains(1))
    }
}
