import Foundation
import Testing

/// What SIGHUP changes in a running server, seen from outside.
@Suite struct ReloadTests {
    @Test("limits, log level and certificates change; what needs a restart is named")
    func changes() throws {
        let server = try ServedProgram()
        #expect(try server.ask("/v1/users/anna/devices", times: 30).allSatisfy { $0 != 429 })
        let first = try server.certificate()
        #expect(first.contains("="))
        try FileManager.default.removeItem(atPath: server.program.path("tls"))
        #expect(try server.program.rouse("dev", "certificates", "tls").status == 0)
        try server.write(
            """
            limits.app_api_requests = 1/s
            limits.connections = 100
            log.level = debug
            timers.keepalive = 2m
            digest.sample = 3
            """)
        let lines = try #require(server.reload(until: "settings.restart_needed"), "\(server.log)")
        let reloaded = try #require(lines.first { $0.contains("event=settings.reloaded ") })
        for change in ["limits.app_api_requests=1/s", "limits.connections=100", "log.level=debug"] {
            #expect(reloaded.contains(change), "\(reloaded)")
        }
        #expect(!reloaded.contains("keepalive") && !reloaded.contains("user_reads"))
        let waiting = try #require(lines.first { $0.contains("settings.restart_needed") })
        #expect(waiting.contains("keys=\"timers.keepalive, digest.sample\""), "\(waiting)")
        // Ten at once, and then one a second.
        let statuses = try server.ask("/v1/users/anna/devices", times: 30)
        #expect(statuses.count == 30 && statuses.contains(429), "\(statuses)")
        let second = try server.certificate()
        #expect(second.contains("=") && second != first)
        #expect(server.log.contains { $0.contains("level=debug") })
    }

    @Test("a wrong file changes nothing, and the log says why")
    func wrong() throws {
        let server = try ServedProgram("limits.app_api_requests = 1/s")
        try server.write(
            """
            limits.app_api_requests = 0
            limits.user_reads = many
            listen.prot = 1
            """)
        let lines = try #require(server.reload(until: "settings.reload_failed"), "\(server.log)")
        let problems = lines.filter { $0.contains("event=settings.wrong ") }
        #expect(problems.count == 2, "\(lines)")
        #expect(problems.contains { $0.contains("rouse.conf:6: limits.user_reads must be") })
        #expect(problems.contains { $0.contains("did you mean `listen.port`?") })
        #expect(!lines.contains { $0.contains("settings.reloaded") })
        #expect(try server.ask("/v1/users/anna/devices", times: 30).contains(429))
        // Certificates that are gone are such a mistake, too, and the old ones are still shown.
        let shown = try server.certificate()
        try server.write("limits.app_api_requests = 0")
        try FileManager.default.removeItem(atPath: server.program.path("tls"))
        let gone = try #require(server.reload(until: "settings.reload_failed"), "\(server.log)")
        #expect(gone.contains { $0.contains("cannot read tls/server.pem") })
        #expect(try server.certificate() == shown && shown.contains("="))
        #expect(try server.ask("/v1/users/anna/devices", times: 30).contains(429))
    }
}
