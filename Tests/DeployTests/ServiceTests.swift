import Foundation
import Testing

/// What wrong settings do to the service. It needs no systemd.
@Suite struct WrongSettingsTests {
    @Test("nothing but the server itself can fail with the status after which it is left alone")
    func wrongSettings() throws {
        let unit = try Deployed.text("Deploy/systemd/rouse.service").split(separator: "\n")
        #expect(unit.contains("RestartPreventExitStatus=78"))
        // systemd.service(5): it is about the main process alone.
        #expect(!unit.contains { $0.hasPrefix("ExecStartPre=") || $0.hasPrefix("ExecCondition=") })
        let start = unit.first { $0.hasPrefix("ExecStart=") } ?? ""
        let words = start.split(separator: " ").dropFirst().map(String.init)
        let folder = try Folder()
        try folder.write("listen.port = nonsense\n", "rouse.conf")
        let file = folder.url.appendingPathComponent("rouse.conf").path
        let ended = try Deployed.run(
            [Deployed.rouse] + words.map { $0 == "/etc/rouse/rouse.conf" ? file : $0 })
        #expect(ended.status == 78, "\(ended.output)")
    }
}

/// The units of systemd. There is no systemd that could start them where tests run: it checks them,
/// and what they confine is compared with what the server does.
@Suite(
    .enabled(
        if: Deployed.isInstalled("/usr/bin/systemd-analyze"), "systemd-analyze is not installed"))
struct ServiceTests {
    private static let units = ["rouse.service", "rouse-devices.socket", "rouse-api.socket"]

    /// The units, with the program where it is here.
    private func folder() throws -> Folder {
        let folder = try Folder()
        for unit in Self.units {
            let text = try Deployed.text("Deploy/systemd/\(unit)")
            try folder.write(
                text.replacingOccurrences(of: "/usr/local/bin/rouse", with: Deployed.rouse), unit)
        }
        return folder
    }

    private func analyze(_ words: [String], in folder: Folder) throws -> Deployed.Outcome {
        try Deployed.run(["/usr/bin/systemd-analyze"] + words, in: folder.url)
    }

    @Test("systemd finds nothing wrong with the units, and a key that it does not know is found")
    func verified() throws {
        let folder = try folder()
        let units = Self.units.map { "./\($0)" }
        let verified = try analyze(["verify", "--man=no"] + units, in: folder)
        #expect(verified.status == 0 && verified.output.isEmpty, "\(verified.output)")
        let text = try Deployed.text("Deploy/systemd/rouse-api.socket")
        try folder.write(
            text.replacingOccurrences(of: "Backlog=", with: "Backlock="), "rouse-api.socket")
        let other = try analyze(["verify", "--man=no"] + units, in: folder)
        #expect(other.output.contains("Backlock"))
    }

    @Test("the service is exposed by no more than 2 of 10")
    func exposure() throws {
        let words = ["security", "--offline=true", "--no-pager", "./rouse.service"]
        let secure = try analyze(words + ["--threshold=20"], in: try folder())
        #expect(secure.status == 0, "\(secure.output)")
        let stricter = try analyze(words + ["--threshold=1"], in: try folder())
        #expect(stricter.status != 0)
    }

    @Test("the sockets have the names by which the server knows them")
    func sockets() throws {
        let service = try Deployed.text("Deploy/systemd/rouse.service")
        #expect(service.contains("\nType=notify\n") && service.contains("\nNotifyAccess=main\n"))
        // sysexits(3): EX_CONFIG.
        #expect(service.contains("\nRestartPreventExitStatus=78\n"))
        for name in ["devices", "api"] {
            let socket = try Deployed.text("Deploy/systemd/rouse-\(name).socket")
            #expect(socket.contains("\nFileDescriptorName=\(name)\n"))
            #expect(socket.contains("\nService=rouse.service\n"))
        }
    }

    @Test("the program takes the service's settings")
    func settings() throws {
        let file = Deployed.path("Deploy/systemd/rouse.conf")
        let shown = try Deployed.run([Deployed.rouse, "serve", "--print-config", "--config", file])
        #expect(shown.status == 0, "\(shown.output)")
        #expect(shown.output.contains("/var/lib/rouse/rouse.db"))
    }

    @Test(
        "what the server asks of the system with traffic of every kind is what the unit allows",
        .enabled(if: Deployed.isInstalled("/usr/bin/strace"), "strace is not installed"))
    func confined() throws {
        let folder = try Folder()
        let outcome = try Deployed.run([
            "/usr/bin/python3", Deployed.path("Tests/peers/confined.py"), "--rouse",
            Deployed.rouse, "--unit", Deployed.path("Deploy/systemd/rouse.service"), "--folder",
            folder.url.path,
        ])
        #expect(outcome.status == 0 && outcome.output.contains("confined: ok"), "\(outcome.output)")
    }
}
