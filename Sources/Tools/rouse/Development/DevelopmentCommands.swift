import APNsSimulator
import Crypto
import FoundationEssentials
import Glibc
import JSONTree

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
                ],
                examples: [
                    "rouse dev identity-token --key keys/issuer.pem --kid 2026 --app shop "
                        + "--user anna --nonce NONCE"
                ]),
            run: makeToken),
    ]

    private static func makeCertificates(_ arguments: Arguments) throws -> Int32 {
        let directory = URL(fileURLWithPath: arguments.operands[0])
        try makeDirectory(directory)
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
        try makeDirectory(directory)
        let key = PrivateKey.generate(kind)
        try write(key.pem, to: paths[0], mode: 0o600)
        try write(key.publicKeyPEM, to: paths[1], mode: 0o644)
        Terminal.print("wrote \(paths.joined(separator: ", "))")
        return ExitStatus.success
    }

    private static func makeToken(_ arguments: Arguments) throws -> Int32 {
        let signer = try TokenSigner(
            arguments, kid: try arguments.required("kid"),
            lifetime: try arguments.number("lifetime", in: Int64(1)...86_400) ?? 300)
        Terminal.print(try signer.token(nonce: try arguments.required("nonce")))
        return ExitStatus.success
    }

    private static func makeDirectory(_ directory: URL) throws {
        do {
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true)
        } catch {
            throw AdminRefusal(description: ErrorWords.of(error), status: ExitStatus.cannotCreate)
        }
    }

    private static func refuseToReplace(_ paths: [String]) throws {
        for path in paths where FileManager.default.fileExists(atPath: path) {
            throw AdminRefusal(
                description: "\(path) exists; remove it or choose another place",
                status: ExitStatus.cannotCreate)
        }
    }

    /// The mode is set before the first byte is in the file.
    private static func write(_ text: String, to path: String, mode: mode_t) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            throw AdminRefusal(
                description: "\(path): \(String(cString: strerror(errno)))",
                status: ExitStatus.cannotCreate)
        }
        defer { close(descriptor) }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else {
                throw AdminRefusal(
                    description: "\(path): \(String(cString: strerror(errno)))",
                    status: ExitStatus.cannotCreate)
            }
            rest = rest.dropFirst(count)
        }
    }
}

/// Signs identity tokens as an app's backend does, with a key of development.
struct TokenSigner: Sendable {
    private let key: PrivateKey
    private let kid: String
    private let claims: [String: JSONValue]
    private let lifetime: Int64

    /// Of `--key`, `--issuer`, `--app` and `--user`.
    init(_ arguments: Arguments, kid: String? = nil, lifetime: Int64 = 300) throws {
        let name = try arguments.required("key")
        do {
            key = try PrivateKey(pem: Array((try Rouse.file("key", arguments) ?? "").utf8))
        } catch is KeyError {
            throw AdminRefusal(description: "--key \(name): no private key in PEM")
        }
        self.kid = kid ?? arguments.string("kid") ?? "dev"
        self.lifetime = lifetime
        claims = [
            "iss": .text(arguments.string("issuer") ?? "rouse-dev"),
            "sub": .text(try arguments.required("user")),
            "aud": .text(try arguments.required("app")),
        ]
    }

    /// - Parameter nonce: of the server's challenge, base64url.
    func token(nonce: String) throws -> String {
        let header = JSONValue.object([
            "alg": .text(key.kind.algorithm), "typ": .text("JWT"), "kid": .text(kid),
        ])
        let now = Int64(Date().timeIntervalSince1970)
        var claims = claims
        claims["nonce"] = .text(nonce)
        (claims["iat"], claims["exp"]) = (.number(now), .number(now + lifetime))
        return try CompactToken.sign(
            headerJSON: try header.bytes, payloadJSON: try JSONValue.object(claims).bytes,
            with: key)
    }
}
