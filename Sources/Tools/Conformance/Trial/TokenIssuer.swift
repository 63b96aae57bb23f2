import Crypto
import EventLoop
import FoundationEssentials

/// Makes identity tokens, good ones and bad ones (SES-9).
struct TokenIssuer {
    let app: String
    let key: PrivateKey?
    let kid: String
    let issuer: String
    let command: [String]?

    init(_ credentials: ConformanceCredentials) throws {
        app = credentials.app
        kid = credentials.tokens.kid ?? ""
        issuer = credentials.tokens.issuer ?? "conformance"
        command = credentials.tokens.command
        if let pem = credentials.tokens.keyPEM {
            key = try PrivateKey(pem: Array(pem.utf8))
        } else {
            key = nil
            guard command != nil else {
                throw ConformanceError("the credentials hold neither a key nor a token command")
            }
        }
    }

    /// A token that lets the user in.
    func token(user: String, nonce: [UInt8]) throws -> String {
        guard key == nil, let command else {
            return try token(TokenDraft(self, user: user, nonce: nonce))
        }
        return try ChildCommand.run(
            command,
            replacing: [
                "user": user, "nonce": Base64URL.encode(nonce), "app": app,
            ])
    }

    /// A token of any content; skips the case if the harness has no key.
    func token(_ draft: TokenDraft) throws -> String {
        guard let key = draft.key ?? key else {
            throw CaseEnd.skipped("tokens come from a command: none can be made wrong")
        }
        let header = Base64URL.encode(Array(draft.headerJSON.utf8))
        let payload = Base64URL.encode(Array(draft.claimsJSON.utf8))
        let input = "\(header).\(payload)"
        let signature = draft.isUnsigned ? [] : key.sign(Array(input.utf8))
        return "\(input).\(Base64URL.encode(signature))"
    }
}

/// A token before it is signed: members in order, values as JSON.
struct TokenDraft {
    var header: [(String, String)]
    var claims: [(String, String)]
    /// Signs instead of the app's key.
    var key: PrivateKey?
    var isUnsigned = false

    init(_ issuer: TokenIssuer, user: String, nonce: [UInt8]) {
        let now = Int(Date().timeIntervalSince1970)
        let algorithm = issuer.key?.kind.algorithm ?? "ES256"
        header = [("alg", "\"\(algorithm)\""), ("kid", Self.quoted(issuer.kid))]
        claims = [
            ("iss", Self.quoted(issuer.issuer)), ("sub", Self.quoted(user)),
            ("aud", Self.quoted(issuer.app)), ("nonce", "\"\(Base64URL.encode(nonce))\""),
            ("exp", "\(now + 300)"), ("iat", "\(now)"),
        ]
    }

    /// Sets a claim to a JSON value; `nil` leaves it out.
    mutating func set(_ name: String, _ value: String?) {
        claims.removeAll { $0.0 == name }
        if let value { claims.append((name, value)) }
    }

    mutating func setHeader(_ name: String, _ value: String?) {
        header.removeAll { $0.0 == name }
        if let value { header.append((name, value)) }
    }

    static func quoted(_ text: String) -> String {
        let data = try? JSONEncoder().encode([text])
        return String(
            String(decoding: data ?? Data("[\"\"]".utf8), as: UTF8.self).dropFirst()
                .dropLast())
    }

    private static func object(_ members: [(String, String)]) -> String {
        "{" + members.map { "\(quoted($0.0)):\($0.1)" }.joined(separator: ",") + "}"
    }

    var headerJSON: String { Self.object(header) }
    var claimsJSON: String { Self.object(claims) }
}

/// A command of the credentials file.
enum ChildCommand {
    /// Runs it and gives the first line of its output. A word `{name}` inside a word is replaced.
    static func run(_ words: [String], replacing values: [String: String]) throws -> String {
        let filled = words.map { word in
            values.reduce(word) { $0.replacing("{\($1.key)}", with: $1.value) }
        }
        guard let program = filled.first else { throw ConformanceError("an empty command") }
        let process = try ChildProcess(filled, input: .nothing, output: .pipe)
        let data = process.readToEnd()
        switch process.waitForEnd() {
        case .exit(0): break
        case .exit(let status):
            throw CaseEnd.inconclusive("`\(program)` ended with status \(status)")
        case .signal(let number):
            throw CaseEnd.inconclusive("`\(program)` was ended by signal \(number)")
        }
        let text = String(decoding: data, as: UTF8.self)
        return String(text.split(separator: "\n").first ?? "")
    }
}
