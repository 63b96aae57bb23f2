import Foundation
import Glibc
import Testing

/// The container image, and the files that start it.
@Suite struct ContainerTests {
    /// As Deploy/test makes it.
    private static let base = Deployed.path(".build/container/base.tar")
    private static let hasBase = FileManager.default.fileExists(atPath: base)
    private static let schemas = Deployed.path(
        ".build/peers/lib/python3.11/site-packages/kubernetes_validate/kubernetes-json-schema/"
            + "v1.37.0-local-strict")

    @Test(
        "with the packages of the image the program serves, as the image's user",
        .enabled(if: hasBase && geteuid() == 0, "no .build/container/base.tar, or not root"))
    func contained() throws {
        let folder = try Folder()
        let outcome = try Deployed.run([
            "/usr/bin/python3", Deployed.path("Tests/peers/contained.py"), "--rouse",
            Deployed.rouse, "--deploy", Deployed.path("Deploy"), "--base", Self.base, "--folder",
            folder.url.path,
        ])
        #expect(
            outcome.status == 0 && outcome.output.contains("contained: ok"), "\(outcome.output)")
    }

    /// Kubernetes gives each container variables of the Services beside it: ROUSE_API_PORT is one
    /// of rouse-api.
    @Test("what Kubernetes says of Services is kept from the program, which takes it for settings")
    func serviceLinks() throws {
        let named = ["ROUSE_API_PORT": "tcp://10.96.0.12:7480"]
        let refused = try Deployed.run(
            [Deployed.rouse, "serve", "--check-config"], settings: named)
        #expect(refused.status == 78 && refused.output.contains("api.port"), "\(refused.output)")
        for file in ["rouse.yaml", "migrate.yaml"] {
            let lines = try Deployed.text("Deploy/kubernetes/\(file)").split(separator: "\n")
            let pods = lines.count { $0.hasSuffix("containers:") }
            #expect(pods == 1 && lines.count { $0 == "      enableServiceLinks: false" } == pods)
        }
    }

    /// Every command that reads a configuration takes ROUSE_... for a setting, and refuses one that
    /// names none: whoever exports a variable of these files runs the commands in the same shell.
    @Test("what the files of a deployment call their own does not begin as settings do")
    func variables() throws {
        let settings = Set(
            try Deployed.text("Deploy/rouse.conf.example").split(separator: "\n").compactMap {
                $0.firstMatch(of: /^#? ?([a-z_]+)\.([a-z_]+) =/)
            }.map { "ROUSE_\($0.1)_\($0.2)".uppercased() })
        #expect(settings.contains("ROUSE_STORE_PATH") && settings.count > 30)
        for file in [
            "haproxy.cfg", "container/haproxy.cfg", "container/compose.yaml",
            "container/prometheus.yml", "kubernetes/rouse.yaml", "kubernetes/migrate.yaml",
            "systemd/rouse.service", "sdk/python/README.md",
        ] {
            let text = try Deployed.text("Deploy/\(file)")
            for match in text.matches(of: /ROUSE_[A-Z0-9_]*[A-Z0-9]/) {
                #expect(settings.contains(String(match.output)), "\(file): \(match.output)")
            }
        }
    }

    @Test(
        "the script makes an image that starts the server as its user",
        .enabled(
            if: hasBase && Deployed.isInstalled("/usr/bin/buildah") && geteuid() == 0,
            "no .build/container/base.tar, no buildah, or not root"))
    func image() throws {
        let folder = try Folder()
        let place = folder.url.path
        try folder.write(
            """
            [storage]
            driver = "vfs"
            graphroot = "\(place)/store"
            runroot = "\(place)/run"
            """, "storage.conf")
        let built = try Deployed.run(
            [
                Deployed.path("Deploy/container/build"), "--binary", Deployed.rouse, "--base",
                Self.base, "--tag", "rouse:test", "--output", "\(place)/image.tar",
            ], settings: ["CONTAINERS_STORAGE_CONF": "\(place)/storage.conf"])
        #expect(built.status == 0 && built.output.contains("image: rouse:test"), "\(built.output)")
        let shown = try Deployed.run(
            ["/usr/bin/buildah", "inspect", "--type", "image", "rouse:test"],
            settings: ["CONTAINERS_STORAGE_CONF": "\(place)/storage.conf"])
        let image = try JSONSerialization.jsonObject(with: Data(shown.output.utf8))
        let whole = image as? [String: Any]
        let description = whole?["OCIv1"] as? [String: Any]
        let found = try #require(description?["config"] as? [String: Any])
        #expect(found["User"] as? String == "10001:10001")
        #expect(found["StopSignal"] as? String == "SIGTERM")
        #expect(found["Entrypoint"] as? [String] == ["/usr/local/bin/rouse"])
        #expect(found["Cmd"] as? [String] == ["serve", "--config", "/etc/rouse/rouse.conf"])
        let ports = found["ExposedPorts"] as? [String: Any] ?? [:]
        #expect(Set(ports.keys) == ["7443/tcp", "7480/tcp"])
        #expect(FileManager.default.fileExists(atPath: "\(place)/image.tar"))
    }

    @Test(
        "manifests for Kubernetes keep its schema, and compose and they fit the program",
        .enabled(
            if: FileManager.default.fileExists(atPath: schemas), "Deploy/peers was not run"))
    func manifests() throws {
        let folder = try Folder()
        let outcome = try Deployed.run([
            "/usr/bin/python3", Deployed.path("Tests/peers/manifests.py"), "--rouse",
            Deployed.rouse, "--deploy", Deployed.path("Deploy"), "--schemas", Self.schemas,
            "--folder", folder.url.path,
        ])
        #expect(
            outcome.status == 0 && outcome.output.contains("manifests: ok"), "\(outcome.output)")
    }

    @Test(
        "HAProxy takes the settings of compose",
        .enabled(if: Deployed.isInstalled("/usr/sbin/haproxy"), "haproxy is not installed"))
    func balancer() throws {
        let checked = try Deployed.run([
            "/usr/sbin/haproxy", "-c", "-f", Deployed.path("Deploy/container/haproxy.cfg"),
        ])
        #expect(checked.status == 0, "\(checked.output)")
    }

    @Test(
        "Prometheus takes the settings of compose",
        .enabled(if: Deployed.isInstalled("/usr/bin/promtool"), "prometheus is not installed"))
    func watching() throws {
        let folder = try Folder()
        try folder.write(try Deployed.text("Deploy/container/prometheus.yml"), "prometheus.yml")
        try folder.write(
            try Deployed.text("Deploy/prometheus/rouse.rules.yml"), "rouse.rules.yml")
        let checked = try Deployed.run(
            ["/usr/bin/promtool", "check", "config", "prometheus.yml"], in: folder.url)
        #expect(checked.status == 0, "\(checked.output)")
    }
}
