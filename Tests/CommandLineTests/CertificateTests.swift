import Foundation
import Testing

/// What an operator and a device see of a certificate that ends, and of one that is renewed.
@Suite struct CertificateTests {
    private static let gauge = "rouse_tls_certificate_expires_seconds"
    private static let day = 86_400.0

    /// A pair for localhost in a folder of its own.
    private func issue(_ program: Program, _ folder: String, days: Int) throws {
        try program.write("", "\(folder)/made")
        let made = try program.run([
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-days", "\(days)", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-out", "\(folder)/server.pem", "-keyout",
            "\(folder)/server.key",
        ])
        #expect(made.status == 0, "\(made.errors)")
    }

    /// The folder's certificate is given another end, which may be over.
    private func end(_ program: Program, _ folder: String, days: Int) throws {
        let file = "\(folder)/server.pem"
        let made = try program.run([
            "/usr/bin/openssl", "x509", "-in", file, "-signkey", "\(folder)/server.key", "-days",
            "\(days)", "-out", file,
        ])
        #expect(made.status == 0, "\(made.errors)")
    }

    /// The folder's certificate is given another beginning, so many seconds from now.
    private func begin(_ program: Program, _ folder: String, seconds: Int) throws {
        let made = try program.run([
            "/bin/sh", "-c",
            """
            cd \(folder) && : > index && cat > ca.conf <<END
            [ca]
            default_ca = own
            [own]
            database = index
            new_certs_dir = .
            default_md = sha256
            policy = any
            rand_serial = yes
            unique_subject = no
            [any]
            commonName = supplied
            END
            /usr/bin/openssl req -new -key server.key -subj /CN=localhost -out request.pem &&
            /usr/bin/openssl ca -batch -selfsign -notext -config ca.conf -in request.pem \
                -keyfile server.key -out server.pem \
                -startdate "$(date -u -d '+\(seconds) seconds' +%Y%m%d%H%M%SZ)" -days 30
            """,
        ])
        #expect(made.status == 0, "\(made.errors)")
    }

    /// Makes `tls` a link to the folder, in one step, as Kubernetes renews a mounted secret.
    private func link(_ program: Program, to folder: String) throws {
        #expect(try program.run(["/bin/ln", "-sfn", folder, "next"]).status == 0)
        #expect(try program.run(["/bin/mv", "-T", "next", "tls"]).status == 0)
    }

    private func lines(_ server: ServedProgram, _ event: String) -> [String] {
        server.log.filter { $0.contains("event=\(event) ") }
    }

    /// Waits until the log has so many lines of an event.
    private func wait(_ server: ServedProgram, _ event: String, _ count: Int = 1) -> Bool {
        let end = Date(timeIntervalSinceNow: 60)
        while Date() < end {
            if lines(server, event).count >= count { return true }
            usleep(50_000)
        }
        return false
    }

    @Test("--check-config warns of a certificate that ends within 14 days, and of no other")
    func checked() throws {
        let program = try Program()
        try program.write(ServedProgram.base, "rouse.conf")
        let check = ["serve", "--config", "rouse.conf", "--check-config"]
        for (days, warns) in [(13, true), (16, false)] {
            try issue(program, "tls", days: days)
            let checked = try program.rouse(check)
            #expect(checked.status == 0 && checked.output.contains("sound"), "\(checked.errors)")
            let warned = checked.errors.contains("warning: tls.certificate_file: the certificate")
            #expect(warned == warns, "\(checked.errors)")
            if warns { #expect(checked.errors.contains("ends in 12 days, at 20")) }
        }
    }

    @Test("a renewed certificate is shown to devices without a signal; a broken one never is")
    func renewed() throws {
        let server = try ServedProgram()
        let program = server.program
        let first = try server.certificate()
        #expect(first.contains("="))
        let left = try #require(try server.metrics([Self.gauge])[Self.gauge])
        #expect(left > 300 * Self.day && left < 366 * Self.day, "\(left)")
        #expect(lines(server, "tls.certificate_ends").isEmpty)

        // The pair that is served is moved away, and a link to another stands in its place.
        #expect(try program.run(["/bin/mv", "tls", "old"]).status == 0)
        try issue(program, "soon", days: 3)
        try link(program, to: "soon")
        #expect(wait(server, "tls.certificate_reloaded"), "\(server.log)")
        let second = try server.certificate()
        #expect(second.contains("=") && second != first)
        let fewer = try #require(try server.metrics([Self.gauge])[Self.gauge])
        #expect(fewer > 2 * Self.day && fewer < 3 * Self.day, "\(fewer)")
        // It ends soon, and that is said once.
        #expect(wait(server, "tls.certificate_ends"), "\(server.log)")
        let told = try #require(lines(server, "tls.certificate_ends").first)
        #expect(told.contains("level=warning") && told.contains("end=20"), "\(told)")

        // A key that is not the certificate's: what is served stays, and that is said once.
        try issue(program, "broken", days: 60)
        _ = try program.rouse("dev", "key", "broken/other")
        #expect(try program.run(["/bin/mv", "broken/other.pem", "broken/server.key"]).status == 0)
        try link(program, to: "broken")
        #expect(wait(server, "tls.certificate_refused"), "\(server.log)")
        #expect(try server.certificate() == second)

        try issue(program, "right", days: 60)
        try link(program, to: "right")
        #expect(wait(server, "tls.certificate_reloaded", 2), "\(server.log)")
        let third = try server.certificate()
        #expect(third.contains("=") && third != second && third != first)
        #expect(lines(server, "tls.certificate_refused").count == 1)
        #expect(lines(server, "tls.certificate_ends").count == 1)
        let refused = try #require(lines(server, "tls.certificate_refused").first)
        #expect(refused.contains("the private key is not the certificate's"), "\(refused)")
    }

    @Test("a reload says that the certificate ends soon")
    func told() throws {
        let server = try ServedProgram()
        try issue(server.program, "tls", days: 3)
        #expect(server.reload(until: "tls.certificate_ends") != nil, "\(server.log)")
    }

    @Test("a start says so, too")
    func toldAtStart() throws {
        let server = try ServedProgram { try issue($0, "tls", days: 3) }
        #expect(wait(server, "tls.certificate_ends"), "\(server.log)")
    }

    @Test("what may pass with time ends a start with another status than a wrong setting")
    func overAtStart() throws {
        let program = try Program()
        try program.write(ServedProgram.base, "rouse.conf")
        try issue(program, "tls", days: 3)
        try end(program, "tls", days: -1)
        let start = ["serve", "--config", "rouse.conf"]
        let over = try program.rouse(start)
        #expect(
            over.status == 69 && over.errors.contains("the certificate has expired"), "\(over.all)")
        let both = try program.rouse(start + ["--set", "api.port=nonsense"])
        #expect(both.status == 78 && both.errors.contains("2 mistakes"), "\(both.all)")
    }

    @Test("a renewed certificate that is not good yet is taken once it is")
    func untimely() throws {
        let server = try ServedProgram {
            #expect(try $0.run(["/bin/mv", "tls", "old"]).status == 0)
            try link($0, to: "old")
        }
        let first = try server.certificate()
        try issue(server.program, "early", days: 30)
        try begin(server.program, "early", seconds: 20)
        try link(server.program, to: "early")
        #expect(wait(server, "tls.certificate_refused"), "\(server.log)")
        #expect(try server.certificate() == first)
        #expect(wait(server, "tls.certificate_reloaded"), "\(server.log)")
        #expect(try server.certificate() != first)
        // Looked at every few seconds, told of once.
        let refused = lines(server, "tls.certificate_refused")
        #expect(refused.count == 1 && refused[0].contains("not valid yet"), "\(refused)")
    }
}
