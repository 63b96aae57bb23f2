import APNsSimulator
import FoundationEssentials
import Glibc
import JSONTree

extension Rouse {
    private static let audienceOptions = [
        CommandOption("tag", "TAG", "devices that have it, or whose user has; again: all of them"),
        CommandOption("any-tag", "TAG", "again for each: one of them is enough"),
        CommandOption("no-tag", "TAG", "devices and users without it"),
        CommandOption("topic", "TOPIC", "the app's name at Apple; again for each"),
        CommandOption("client", "NAME", "what devices say as client_name; again for each"),
        CommandOption("locale", "TAG", "language, such as de (takes de-AT); again for each"),
        CommandOption("time-zone", "ZONE", "Europe/Vienna, or Europe/ for all; again for each"),
        CommandOption("version-min", "VERSION", "client_version, such as 2.10"),
        CommandOption("version-max", "VERSION", "the same, included"),
        CommandOption("seen-within", "TIME", "heard of within 90s, 30m, 12h, 7d"),
        CommandOption("unseen-for", "TIME", "not heard of for so long"),
        CommandOption(
            "reachability", "online|wakeable|waking|unreachable", "how they stand; again for each"),
    ]

    private static let canaryOptions = [
        CommandOption("canary", "PERCENT", "this share first, from 0.01 to 99.99"),
        CommandOption("id", "ID", "the campaign's id; given twice, it is made once"),
    ]

    /// `rouse campaign`.
    static let campaignCommands: [Command] = [
        command(
            "campaign create", "send a text to many devices", ["APP"],
            [
                CommandOption("body", "TEXT", "the text"),
                CommandOption("title", "TEXT", "its title"),
                CommandOption("text", "LOCALE=TEXT", "the text in a language; again for each"),
                CommandOption("push", "FILE", "the whole `push` as JSON, in place of these"),
                CommandOption("name", "NAME", "what it is called, for people"),
                CommandOption("start", "TIME", "like 2026-12-01T09:00:00Z (default: now)"),
                CommandOption("local-start", "TIME", "2026-12-01T09:00:00 on each user's clock"),
                CommandOption("rate", "N", "pushes a second, at most (default 500)"),
                CommandOption("canary-wait", "TIME", "go on by itself then, if few are rejected"),
                CommandOption("stop-percent", "N", "stop at so many rejections (default 25)"),
                CommandOption("expires", "TIME", "how long APNs may keep a push; 0s: not at all"),
            ] + canaryOptions + audienceOptions, createCampaign,
            examples: [
                "rouse campaign create shop --body 'Good day' --text de='Guten Tag'",
                "rouse campaign create shop --body Sale --tag vip --canary 1 --canary-wait 30m",
                "rouse campaign create shop --body 'Hello' --local-start 2026-12-01T08:00:00",
            ],
            notes: """
                The audience is decided when each push is sent, not now; `rouse campaign count`
                takes the options that choose it, and --canary, and tells how many devices there
                would be. Without --canary-wait, or where nobody of the share got it, the campaign
                waits after its canary share until `rouse campaign resume`.
                """),
        command(
            "campaign count", "count the devices a campaign would go to, and send nothing",
            ["APP"], canaryOptions + audienceOptions, countCampaign,
            examples: ["rouse campaign count shop --tag vip --seen-within 30d"]),
        command(
            "campaign list", "list campaigns and how they stand", ["APP"], [], listCampaigns,
            examples: ["rouse campaign list shop"]),
        command(
            "campaign show", "show how far a campaign got", ["APP", "CAMPAIGN"],
            [
                CommandOption("watch", "go on until it is over, or waits for somebody"),
                CommandOption("user", "USER", "why each device of this user got it, or did not"),
            ], showCampaign,
            examples: [
                "rouse campaign show shop CAMPAIGN --watch",
                "rouse campaign show shop CAMPAIGN --user anna",
            ]),
        command(
            "campaign pause", "let nothing more of a campaign leave", ["APP", "CAMPAIGN"], [],
            { try controlCampaign($0, "pause") },
            examples: ["rouse campaign pause shop CAMPAIGN"]),
        command(
            "campaign resume", "let a campaign go on: after a pause, a stop, or its canary share",
            ["APP", "CAMPAIGN"], [], { try controlCampaign($0, "resume") },
            examples: ["rouse campaign resume shop CAMPAIGN"]),
        command(
            "campaign cancel", "end a campaign; what was sent is sent", ["APP", "CAMPAIGN"], [],
            { try controlCampaign($0, "cancel") },
            examples: ["rouse campaign cancel shop CAMPAIGN"]),
    ]

    // MARK: Requests

    private static func path(_ arguments: Arguments) -> [String] {
        ["apps", arguments.operands[0], "campaigns"] + arguments.operands.dropFirst()
    }

    private static func createCampaign(_ arguments: Arguments) throws {
        var fields = try campaignFields(arguments)
        fields["push"] = try push(arguments)
        for (option, field) in [
            ("name", "name"), ("start", "start"), ("local-start", "local_start"),
        ] {
            if let text = arguments.string(option) { fields[field] = .text(text) }
        }
        if let rate = try arguments.number("rate", in: Int64(1)...100_000) {
            fields["rate"] = .number(rate)
        }
        if let percent = try arguments.number("stop-percent", in: Int64(0)...100) {
            fields["stop_percent"] = .number(percent)
        }
        if let seconds = try seconds(arguments, "expires") {
            fields["expiration_seconds"] = .number(seconds)
        }
        if let wait = try seconds(arguments, "canary-wait") {
            guard case .object(var canary) = fields["canary"] ?? .null else {
                throw UsageError("--canary-wait needs --canary")
            }
            canary["wait_seconds"] = .number(wait)
            fields["canary"] = .object(canary)
        }
        let connection = try AdminConnection(arguments)
        let made = try connection.ask("POST", path(arguments), .object(fields))
        connection.remark("campaign made; `rouse campaign show` tells how far it got:")
        connection.say(made["id"].words)
    }

    private static func countCampaign(_ arguments: Arguments) throws {
        var fields = try campaignFields(arguments)
        fields["push"] = .object(["body": .text("-")])
        fields["dry_run"] = .flag(true)
        let connection = try AdminConnection(arguments, reads: true)
        let tally = try connection.ask("POST", path(arguments), .object(fields))
        var lines = ["\(tally["devices"].words) devices"]
        if arguments.has("canary") { lines.append("  \(tally["canary"].words) of them first") }
        lines += leftOut(tally["left_out"])
        lines.append("  \(tally["seen"].words) devices of the app were looked at")
        connection.say(lines.joined(separator: "\n"))
    }

    /// What campaign and dry run have in common.
    private static func campaignFields(_ arguments: Arguments) throws -> [String: JSONValue] {
        var audience: [String: JSONValue] = [:]
        for (option, field) in [
            ("tag", "tags"), ("any-tag", "any_tags"), ("no-tag", "no_tags"),
            ("topic", "topics"), ("client", "clients"), ("locale", "locales"),
            ("time-zone", "time_zones"), ("reachability", "reachability"),
        ] where arguments.has(option) {
            audience[field] = .list(arguments.strings(option).map { .text($0) })
        }
        for (option, field) in [("version-min", "version_min"), ("version-max", "version_max")] {
            if let text = arguments.string(option) { audience[field] = .text(text) }
        }
        for (option, field) in [
            ("seen-within", "seen_within_seconds"), ("unseen-for", "unseen_for_seconds"),
        ] {
            if let seconds = try seconds(arguments, option) { audience[field] = .number(seconds) }
        }
        var fields: [String: JSONValue] = [:]
        if !audience.isEmpty { fields["audience"] = .object(audience) }
        if let id = arguments.string("id") { fields["id"] = .text(id) }
        if let text = arguments.string("canary") {
            guard let percent = Double(text), (0.01...99.99).contains(percent) else {
                throw UsageError("--canary must be from 0.01 to 99.99, not `\(text)`")
            }
            fields["canary"] = .object(["share": .number(Int64((percent * 100).rounded()))])
        }
        return fields
    }

    private static func push(_ arguments: Arguments) throws -> JSONValue {
        let options = ["body", "title", "text"]
        if let file = arguments.string("push") {
            if let other = options.first(where: { arguments.has($0) }) {
                throw UsageError("--push has the whole text: leave --\(other) out")
            }
            let data: Data
            do {
                data = try Data(contentsOf: URL(fileURLWithPath: file))
            } catch {
                throw UsageError("--push \(file): cannot be read: \(ErrorWords.reason(error))")
            }
            do {
                return try JSONValue(bytes: Array(data))
            } catch {
                throw UsageError("--push \(file): is not JSON")
            }
        }
        var push: [String: JSONValue] = ["body": .text(try arguments.required("body"))]
        if let title = arguments.string("title") { push["title"] = .text(title) }
        var texts: [String: JSONValue] = [:]
        for word in arguments.strings("text") {
            let parts = word.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw UsageError("--text must be like de='Hallo', not `\(word)`")
            }
            texts[String(parts[0])] = .object(["body": .text(String(parts[1]))])
        }
        if !texts.isEmpty { push["texts"] = .object(texts) }
        return .object(push)
    }

    /// `90s`, `30m`, `12h`, `7d`.
    private static func seconds(_ arguments: Arguments, _ name: String) throws -> Int64? {
        guard let text = arguments.string(name) else { return nil }
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let last = text.last, let unit = units[last], let count = Int64(text.dropLast()),
            (0...1_000_000).contains(count)
        else { throw UsageError("--\(name) must be like 90s, 30m, 12h or 7d, not `\(text)`") }
        return count * unit
    }

    private static func controlCampaign(_ arguments: Arguments, _ control: String) throws {
        let connection = try AdminConnection(arguments)
        let answer = try connection.ask("POST", path(arguments) + [control])
        connection.say("campaign \(answer["id"].words) is \(answer["state"].words)")
    }

    // MARK: Showing

    private static func listCampaigns(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
        let campaigns = try connection.ask("GET", path(arguments))["campaigns"].items
        let rows = campaigns.map { campaign in
            let progress = campaign["progress"]
            return [
                campaign["id"].words, campaign["state"].words, progress["audience"].words,
                progress["accepted"].words, progress["refused"].words, campaign["name"].words,
            ]
        }
        connection.say(
            rows.isEmpty
                ? "no campaigns"
                : textTable(
                    ["CAMPAIGN", "STATE", "DEVICES", "SENT", "REFUSED", "NAME"], rows))
    }

    private static func showCampaign(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
        if let user = arguments.string("user") {
            if arguments.has("watch") { throw UsageError("--watch shows no single user") }
            let fates = try connection.ask("GET", path(arguments) + ["users", user])
            return connection.say(text(of: fates["devices"].items))
        }
        guard arguments.has("watch") else {
            let campaign = try connection.ask("GET", path(arguments))
            return connection.say(text(of: campaign))
        }
        while true {
            let campaign = try connection.ask("GET", path(arguments))
            let state = campaign["state"].words
            let isHeld = ["review", "paused", "stopped", "cancelled", "finished"].contains(state)
            if Terminal.isTerminal, !arguments.has("json") {
                Terminal.print("\r\u{1B}[K" + bar(of: campaign), terminator: "")
                if isHeld { Terminal.print("") }
            }
            // Of a review that goes on by itself the rest is still to come.
            if isHeld, campaign["continues_at"] == .null {
                return connection.say(text(of: campaign))
            }
            sleep(1)
        }
    }

    /// One line for a terminal.
    static func bar(of campaign: JSONValue, width: Int = 30) -> String {
        let progress = campaign["progress"]
        func number(_ name: String) -> Int64 {
            if case .number(let number) = progress[name] { number } else { 0 }
        }
        let audience = number("audience")
        let done = number("accepted") + number("refused") + number("cancelled")
        let filled = audience > 0 ? Int(min(done, audience) * Int64(width) / audience) : 0
        let sign = progress["is_complete"] == .flag(true) ? "" : "+"
        return "[" + String(repeating: "#", count: filled)
            + String(repeating: ".", count: width - filled)
            + "] \(done)/\(audience)\(sign) \(campaign["state"].words)"
            + (number("refused") > 0 ? ", \(number("refused")) refused" : "")
    }

    private static func leftOut(_ counts: JSONValue) -> [String] {
        guard case .object(let members) = counts else { return [] }
        return members.sorted { $0.key < $1.key }.compactMap { name, count in
            count == .number(0) ? nil : "  left out, \(name): \(count.words)"
        }
    }

    private static func text(of campaign: JSONValue) -> String {
        var lines = [
            "campaign \(campaign["id"].words) \(campaign["name"].words)",
            "  \(campaign["state"].words) since \(campaign["since"].words)",
        ]
        if campaign["reason"] != .null { lines.append("  \(campaign["reason"].words)") }
        if campaign["state"] == .text("review") {
            let until = campaign["continues_at"].words
            if !until.isEmpty {
                lines.append("  it goes on by itself at \(until) if few are rejected")
            } else if campaign["reason"] == .null {
                lines.append("  its canary share has it: look, then resume or cancel it")
            }
        }
        for field in ["start", "local_start", "started_at", "finished_at", "rate", "audience"]
        where campaign[field] != .null {
            lines.append("  \(field): \(campaign[field].words)")
        }
        let progress = campaign["progress"]
        lines.append("  " + bar(of: campaign))
        for field in ["accepted", "refused", "waiting", "sending", "cancelled", "seen"] {
            lines.append("  \(field): \(progress[field].words)")
        }
        lines += leftOut(progress["left_out"])
        if progress["last_rejection"] != .null {
            lines.append("  last rejection: \(progress["last_rejection"].words)")
        }
        return lines.joined(separator: "\n")
    }

    private static func text(of fates: [JSONValue]) -> String {
        let lines = fates.map { fate in
            var line = "device \(fate["device"].words): \(fate["push"].words)"
            if fate["at"] != .null { line += " at \(fate["at"].words)" }
            let reason = fate["reason"].words
            if !reason.isEmpty { line += ", \(reason)" }
            if fate["status"] != .null { line += " (APNs: \(fate["status"].words))" }
            if fate["due"] != .null { line += ", due \(fate["due"].words)" }
            return line
        }
        return lines.isEmpty ? "the user has no device" : lines.joined(separator: "\n")
    }
}
