import APNsSimulator
import FoundationEssentials
import JSONTree

extension Rouse {
    /// `rouse app issuer-key` and `api-key`.
    static let keyCommands: [Command] = [
        command(
            "app issuer-key add", "let a key sign identity tokens of the app's users", ["APP"],
            [
                CommandOption("kid", "KID", "the name its tokens give in `kid`"),
                CommandOption("key", "FILE", "public key, PEM: P-256, Ed25519 or RSA"),
            ], addIssuerKey,
            examples: ["rouse app issuer-key add shop --kid 2026 --key issuer.pub.pem"]),
        command(
            "app issuer-key remove", "take such a key back", ["APP", "KID"], [], removeIssuerKey,
            examples: ["rouse app issuer-key remove shop 2026"]),
        command(
            "app api-key create", "make a key for the app's backend", ["APP"], [], createAPIKey,
            examples: ["KEY=$(rouse app api-key create shop)"],
            notes: "Prints the key, this once: the server keeps a hash. Two may be live."),
        command(
            "app api-key list", "list the app's API keys", ["APP"], [], listAPIKeys,
            examples: ["rouse app api-key list shop"]),
        command(
            "app api-key revoke", "end an API key", ["APP", "KEY-ID"], [], revokeAPIKey,
            examples: ["rouse app api-key revoke shop KEY-ID"],
            notes: "KEY-ID is its id, as the list shows it."),
    ]

    /// `rouse app push` and `push status`.
    static let credentialCommands: [Command] = [
        command(
            "app push set", "set the APNs credential of an environment", ["APP"],
            [
                CommandOption(
                    "environment", "production|development", "whose tokens they are for"),
                CommandOption("name", "NAME", "tells several of one environment apart"),
                CommandOption("key", "FILE", "Apple's .p8 file, or the certificate's key"),
                CommandOption("certificate", "FILE", "a client certificate instead, PEM"),
                CommandOption("key-id", "ID", "the key's id"),
                CommandOption("team", "ID", "the team's id"),
                CommandOption("topic", "BUNDLE-ID", "a bundle id; may be repeated"),
                CommandOption("host", "HOST", "another endpoint than Apple's"),
                CommandOption("port", "PORT", "its port (default 443)"),
                CommandOption("trust", "FILE", "authorities it is trusted by, PEM"),
            ], setPush,
            examples: [
                "rouse app push set shop --environment production --key AuthKey_ABC1234567.p8 "
                    + "--key-id ABC1234567 --team TEAM123456 --topic org.example.shop",
                "rouse app push set shop --environment production --name old "
                    + "--certificate push.pem --key push-key.pem",
            ],
            notes: """
                A certificate names its topics itself. Several credentials may name one topic: the
                first by name that APNs does not refuse is used.
                """),
        command(
            "app push remove", "remove the APNs credential of an environment", ["APP"],
            [
                CommandOption(
                    "environment", "production|development", "whose tokens they are for"),
                CommandOption("name", "NAME", "of several in one environment"),
            ], removePush,
            examples: ["rouse app push remove shop --environment production --name old"]),
        command(
            "push status", "tell how it stands with each push credential", [], [], pushStatus,
            examples: ["rouse push status --config rouse.conf"],
            notes: """
                Of a running server. `unreachable`: pushes of the classes named
                cannot be sent: no connection of theirs comes about, or each ends
                before it has had an answer; the time of the next try stands beside
                it. `tripped`: tokens that APNs accepted before are called wrong all
                at once; the credential is paused and no token is dropped. A topic
                that APNs refuses rests by itself: it is named beside the state, and
                the others are sent.
                """),
    ]

    /// A file named by an option.
    static func file(_ option: String, _ arguments: Arguments) throws -> String? {
        guard let name = arguments.string(option) else { return nil }
        let bytes: Data
        do {
            bytes = try Data(contentsOf: URL(fileURLWithPath: name))
        } catch {
            throw AdminRefusal(description: "--\(option) \(name): \(ErrorWords.reason(error))")
        }
        guard !bytes.isEmpty else {
            throw AdminRefusal(description: "--\(option) \(name): the file is empty")
        }
        guard let text = String(validating: bytes, as: UTF8.self), !text.contains("\0") else {
            throw AdminRefusal(description: "--\(option) \(name): the file is not text")
        }
        return text
    }

    private static func addIssuerKey(_ arguments: Arguments) throws {
        let (app, kid) = (arguments.operands[0], try arguments.required("kid"))
        let name = try arguments.required("key")
        let pem = try file("key", arguments) ?? ""
        guard !pem.contains("PRIVATE KEY") else {
            throw AdminRefusal(
                description: "--key \(name) is a private key, which the server must never see; "
                    + "give its public half (openssl pkey -in \(name) -pubout)")
        }
        let connection = try AdminConnection(arguments)
        let key = try connection.ask(
            "PUT", ["apps", app, "issuer-keys", kid], .object(["public_key_pem": .text(pem)]))
        connection.say("tokens signed with \(kid) (\(key["algorithm"].words)) are taken now")
    }

    private static func removeIssuerKey(_ arguments: Arguments) throws {
        let (app, kid) = (arguments.operands[0], arguments.operands[1])
        let connection = try AdminConnection(arguments)
        try connection.ask("DELETE", ["apps", app, "issuer-keys", kid])
        connection.say("tokens signed with \(kid) are refused now; open sessions go on")
    }

    private static func createAPIKey(_ arguments: Arguments) throws {
        let app = arguments.operands[0]
        let connection = try AdminConnection(arguments)
        let key = try connection.ask("POST", ["apps", app, "api-keys"]) { key in
            let id = key["id"].words
            let words = Terminal.line([app, id], storeOptions(arguments))
            return "API key \(id) is live, and its secret is lost: revoke it by "
                + "`rouse app api-key revoke\(words)`"
        }
        connection.remark("API key \(key["id"].words) of \(app), shown this once:")
        connection.say(key["secret"].words)
    }

    private static func listAPIKeys(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
        let keys = try connection.ask("GET", ["apps", arguments.operands[0], "api-keys"])
        let rows = keys["api_keys"].items.map { [$0["id"].words, $0["created_at"].words] }
        connection.say(rows.isEmpty ? "no API keys" : textTable(["KEY-ID", "CREATED"], rows))
    }

    private static func revokeAPIKey(_ arguments: Arguments) throws {
        let (app, key) = (arguments.operands[0], arguments.operands[1])
        let connection = try AdminConnection(arguments)
        try connection.ask("DELETE", ["apps", app, "api-keys", key])
        connection.say("API key \(key) is refused from now on")
    }

    private static func setPush(_ arguments: Arguments) throws {
        let app = arguments.operands[0]
        let environment = try arguments.required("environment")
        _ = try arguments.required("key")
        var fields: [String: JSONValue] = [
            "private_key_pem": .text(try file("key", arguments) ?? "")
        ]
        let topics = arguments.strings("topic")
        if let certificate = try file("certificate", arguments) {
            fields["certificate_pem"] = .text(certificate)
        } else {
            fields["key_id"] = .text(try arguments.required("key-id"))
            fields["team"] = .text(try arguments.required("team"))
            guard !topics.isEmpty else {
                throw UsageError("--topic is needed: the app's bundle id")
            }
        }
        if !topics.isEmpty { fields["topics"] = .list(topics.map { .text($0) }) }
        if let host = arguments.string("host") { fields["host"] = .text(host) }
        if let port = try arguments.number("port", in: Int64(1)...65_535) {
            fields["port"] = .number(port)
        }
        if let trust = try file("trust", arguments) {
            fields["trusted_certificates_pem"] = .text(trust)
        }
        let connection = try AdminConnection(arguments)
        let path = ["apps", app, "push", environment] + name(arguments)
        let push = try connection.ask("PUT", path, .object(fields))
        connection.say(
            "pushes of \(app) in \(environment) for \(push["topics"].words) go to "
                + "\(push["host"].words):\(push["port"].words)")
    }

    private static func name(_ arguments: Arguments) -> [String] {
        arguments.string("name").map { [$0] } ?? []
    }

    private static func pushStatus(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
        guard connection.isServed else {
            throw AdminRefusal(
                description: "no server is running, and only that knows how it stands with push "
                    + "credentials; `rouse push check` tries them without one",
                status: ExitStatus.unavailable)
        }
        let all = try connection.ask("GET", ["push"])["credentials"].items
        let rows = all.map { credential in
            [
                credential["app"].words, credential["environment"].words,
                credential["name"].words, credential["kind"].words, credential["state"].words,
                reason(credential),
            ]
        }
        let head = ["APP", "ENVIRONMENT", "NAME", "KIND", "STATE", "REASON"]
        connection.say(rows.isEmpty ? "no push credentials in use" : textTable(head, rows))
    }

    /// Why a credential does not send, or which of its topics rest while it sends the others.
    private static func reason(_ credential: JSONValue) -> String {
        let isUnreachable = credential["state"].words == "unreachable"
        var reasons = isUnreachable ? [] : [refusal(credential, after: "")]
        if isUnreachable {
            for lane in credential["lanes"].items where lane["state"].words == "unreachable" {
                let (name, failure) = (lane["name"].words, lane["reason"].words)
                reasons.append(
                    "\(name): \(failure), tried again in \(lane["retry_seconds"].words) s")
            }
        }
        for topic in credential["topics_paused"].items {
            reasons.append(refusal(topic, after: "\(topic["name"].words) rests: "))
        }
        return reasons.filter { !$0.isEmpty }.joined(separator: "; ")
    }

    /// In words, with the time of the next try if there is one.
    private static func refusal(_ paused: JSONValue, after name: String) -> String {
        let reason = paused["reason"].words
        let seconds = paused["paused_seconds"].words
        if reason.isEmpty { return "" }
        return name + reason + (seconds.isEmpty ? "" : ", tried again in \(seconds) s")
    }

    private static func removePush(_ arguments: Arguments) throws {
        let app = arguments.operands[0]
        let environment = try arguments.required("environment")
        let connection = try AdminConnection(arguments)
        let name = name(arguments)
        try connection.ask("DELETE", ["apps", app, "push", environment] + name)
        connection.say(
            "the push credential \(name.first ?? "default") of \(app) in \(environment) is gone")
    }
}
