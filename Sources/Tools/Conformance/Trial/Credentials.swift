public import FoundationEssentials

/// What the harness needs to know of the server under test; the credentials file is its JSON
/// (Protocol/conformance.md).
public struct ConformanceCredentials: Codable, Sendable {
    /// How identity tokens are made: by a key, or by a command.
    public struct Tokens: Codable, Sendable {
        /// The issuer's private key, PEM.
        public var keyPEM: String?
        /// A file that holds it, from the credentials file's folder.
        public var keyFile: String?
        /// `kid` of the tokens.
        public var kid: String?
        /// `iss` of the tokens.
        public var issuer: String?
        /// Prints a token; `{user}`, `{nonce}` (base64url) and `{app}` are replaced.
        public var command: [String]?

        enum CodingKeys: String, CodingKey {
            case keyPEM = "key_pem"
            case keyFile = "key_file"
            case kid, issuer, command
        }

        public init() {}
    }

    /// How the app's backend publishes: by the backend API, or by a command.
    public struct Publish: Codable, Sendable {
        /// Host and port of the backend API, such as `127.0.0.1:7480`.
        public var api: String?
        /// A key of the backend API.
        public var key: String?
        /// Publishes; `{conversation}`, `{sender}` and `{text}` are replaced.
        public var command: [String]?

        public init() {}
    }

    /// A topic that pushes are configured for.
    public struct Push: Codable, Sendable {
        /// `production` or `development`.
        public var environment: String
        public var topic: String

        public init(environment: String, topic: String) {
            self.environment = environment
            self.topic = topic
        }
    }

    public var app: String
    public var tokens: Tokens
    /// `nil`: cases that publish are skipped.
    public var publish: Publish?
    /// `nil`: cases that register for pushes are skipped.
    public var push: Push?
    /// Tells the server to drain and end, and returns at once; `nil`: its case is skipped.
    public var drain: [String]?
    /// The name in the server's certificate; `nil`: the host connected to.
    public var serverName: String?
    /// What the server does not do: a case, a section or a clause, and why. Their cases are
    /// skipped.
    public var without: [String: String]?

    enum CodingKeys: String, CodingKey {
        case app, tokens, publish, push, drain, without
        case serverName = "server_name"
    }

    public init(app: String, tokens: Tokens) {
        self.app = app
        self.tokens = tokens
    }

    /// Reads the file; a key file is read as well.
    public init(file: URL) throws {
        self = try JSONDecoder().decode(Self.self, from: try Data(contentsOf: file))
        if let name = tokens.keyFile, tokens.keyPEM == nil {
            let place = URL(
                fileURLWithPath: name, relativeTo: file.deletingLastPathComponent())
            tokens.keyPEM = try String(contentsOf: place, encoding: .utf8)
        }
    }
}

/// The harness cannot do its work: a wrong file, a missing vector.
public struct ConformanceError: Error, CustomStringConvertible {
    public let description: String

    /// - Parameter description: what is wrong, for people.
    public init(_ description: String) { self.description = description }
}
