import Crypto
import Foundation
import Glibc

extension Rouse {
    /// `rouse dev`: keys, certificates and tokens for tests and the quickstart.
    static let developmentCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "dev certificates",
                summary: "make an authority of your own and a server certificate",
                operands: ["DIR"],
                options: [
                    CommandOption(
                        "name", "NAME",
                        "DNS name or address it is for; may be repeated (default localhost)")
                ],
                examples: ["rouse dev certificates certs --name sync.example.org"],
                notes: """
                    Writes ca.pem (what clients trust), server.pem and server.key. Files that are \
                    there are never replaced. For development only: never for real users.
                    """),
            run: makeCertificates),
        Command(
            description: CommandDescription(
                name: "dev key", summary: "make a key pair that signs identity tokens",
                operands: ["FILE"],
                options: [
                    CommandOption("kind", "p256|ed25519|rsa", "of which sort (default p256)")
                ],
                examples: ["rouse dev key keys/issuer"],
                notes: "Writes FILE.pem (private, mode 0600) and FILE.pub.pem."),
            run: makeKey),
        Command(
            description: CommandDescription(
                name: "dev identity-token", summary: "sign an identity token over a nonce",
                options: [
                    CommandOption("key", "FILE", "private key, PEM"),
                    CommandOption("kid", "KID", "its name at the server"),
                    CommandOption("app", "APP", "the app (`aud`)"),
                    CommandOption("user", "USER", "the user (`sub`)"),
                    CommandOption("nonce", "NONCE", "the challenge's nonce, base64url"),
                    CommandOption("issuer", "NAME", "`iss` (default rouse-dev)"),
                    CommandOption("lifetime", "SECONDS", "until it expires (default 300)"),
                ]),
            run: makeToken),
    ]

    private static func makeCertificates(_ arguments: Arguments) throws -> Int32 {
        let directory = URL(fileURLWithPath: arguments.operands[0])
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let given = arguments.strings("name")
        let names = given.isEmpty ? ["localhost", "127.0.0.1", "::1"] : given
        let made: DevelopmentCertificates
        do throws(CertificateError) {
            made = try DevelopmentCertificates(names: names, validityDays: 365)
        } catch {
            switch error {
            case .invalidName(let name):
                throw UsageError("--name \(name): neither a DNS name nor an address")
            case .refused(let reason): throw AdminRefusal(description: reason)
            }
        }
        let paths = ["ca.pem", "server.pem", "server.key"].map {
            directory.appendingPathComponent($0).path
        }
        try refuseToReplace(paths)
        try write(made.authorityPEM, to: paths[0], mode: 0o644)
        try write(made.server.certificatePEM, to: paths[1], mode: 0o644)
        try write(made.server.privateKeyPEM, to: paths[2], mode: 0o600)
        Terminal.print("wrote \(paths.joined(separator: ", "))")
        return ExitStatus.success
    }

    private static func makeKey(_ arguments: Arguments) throws -> Int32 {
        let kinds: [String: PrivateKey.Generated] = [
            "p256": .p256, "ed25519": .ed25519, "rsa": .rsa2048,
        ]
        guard let kind = kinds[arguments.string("kind") ?? "p256"] else {
            throw UsageError("--kind must be p256, ed25519 or rsa")
        }
        let base = arguments.operands[0]
        let paths = [base + ".pem", base + ".pub.pem"]
        try refuseToReplace(paths)
        let directory = URL(fileURLWithPath: base).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let key = PrivateKey.generate(kind)
        try write(key.pem, to: paths[0], mode: 0o600)
        try write(key.publicKeyPEM, to: paths[1], mode: 0o644)
        Terminal.print("wrote \(paths.joined(separator: ", "))")
        return ExitStatus.success
    }

    private static func makeToken(_ arguments: Arguments) throws -> Int32 {
        let name = try arguments.required("key")
        let key: PrivateKey
        do {
            key = try PrivateKey(pem: Array((try file("key", arguments) ?? "").utf8))
        } catch is KeyError {
            throw AdminRefusal(description: "--key \(name): no private key in PEM")
        }
        let lifetime = try arguments.number("lifetime", in: Int64(1)...86_400) ?? 300
        let now = Int64(Date().timeIntervalSince1970)
        let header = JSONValue.object([
            "alg": .text(key.kind.algorithm), "typ": .text("JWT"),
            "kid": .text(try arguments.required("kid")),
        ])
        let claims = JSONValue.object([
            "iss": .text(arguments.string("issuer") ?? "rouse-dev"),
            "sub": .text(try arguments.required("user")),
            "aud": .text(try arguments.required("app")),
            "nonce": .text(try arguments.required("nonce")),
            "iat": .number(now), "exp": .number(now + lifetime),
        ])
        Terminal.print(
            try CompactToken.sign(
                headerJSON: try header.bytes, payloadJSON: try claims.bytes, with: key))
        return ExitStatus.success
    }

    private static func refuseToReplace(_ paths: [String]) throws {
        for path in paths where FileManager.default.fileExists(atPath: path) {
            throw AdminRefusal(description: "\(path) exists; remove it or choose another place")
        }
    }

    /// The mode is set before the first byte is in the file.
    private static func write(_ text: String, to path: String, mode: mode_t) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            throw AdminRefusal(description: "\(path): \(String(cString: strerror(errno)))")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: Data(text.utf8))
        try handle.close()
    }
}
