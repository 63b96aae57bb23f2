import Foundation
import Testing

/// Policies, webhooks and campaigns as an operator sets them on the file alone.
@Suite struct PolicyTests {
    private func shop() throws -> Program {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        return program
    }

    @Test("a policy is set by the name that the fleet has for it, and shown with units")
    func presets() throws {
        let program = try shop()
        let adaptive = try program.rouse("app", "policy", "shop", "--preset", "adaptive")
        #expect(adaptive.status == 0, "\(adaptive.errors)")
        for line in [
            "grace: 1m", "grace-quantile: 85 %", "grace-max: 1m", "budget-min: 1 pushes",
            "budget-max: 8 pushes", "silent-window: 1h", "doubt-retry: 12h",
            "alert-expiration: 30d", "gone-after: 0s",
        ] { #expect(adaptive.output.contains("  \(line)\n"), "\(line)\n\(adaptive.output)") }
        let none = try program.rouse("app", "policy", "shop", "--preset", "alerts-only")
        #expect(none.output.contains("  silent-budget: 0 pushes\n"))
        let back = try program.rouse("app", "policy", "shop", "--preset", "doubt")
        #expect(back.output.contains("  silent-budget: 3 pushes\n"))
        #expect(back.output.contains("  grace: 30s\n"))
        let both = try program.rouse("app", "policy", "shop", "--preset", "doubt", "--classic")
        #expect(both.status == 64 && both.errors.contains("exclude each other"))
    }

    @Test("the kinds of an app's events are set, shown and taken back")
    func eventKinds() throws {
        let program = try Program()
        let made = try program.rouse(
            "app", "create", "shop", "--new-store", "--event-kinds", "order,chat")
        #expect(made.status == 0, "\(made.errors)")
        let shown = try program.rouse("app", "show", "shop")
        #expect(shown.output.contains("  event-kinds: order,chat\n"), "\(shown.output)")
        let odd = try program.rouse("app", "set", "shop", "--event-kinds", "order,,chat")
        #expect(odd.status != 0 && odd.errors.contains("--event-kinds must"), "\(odd.all)")
        let any = try program.rouse("app", "set", "shop", "--event-kinds", "")
        #expect(any.status == 0 && !any.output.contains("event-kinds"), "\(any.all)")
    }

    @Test("what the server refuses is told by the option or operand that gave it")
    func refusedOptions() throws {
        let program = try shop()
        let send = ["campaign", "create", "shop", "--body", "x"]
        for (words, reason) in [
            (send + ["--start", "yesterday"], "--start must be RFC 3339"),
            (send + ["--local-start", "9"], "--local-start must be like 2026"),
            (send + ["--locale", "_"], "--locale: _ is no language tag"),
            (send + ["--seen-within", "0s"], "--seen-within must be a time from 1s to 3650d"),
            (send + ["--expires", "90000d"], "--expires must be a time from 0s to 30d"),
            (send + ["--id", "5"], "--id must be 36 characters"),
            (
                send + ["--canary", "1", "--local-start", "2026-12-01T09:00:00"],
                "--canary: a share that goes first"
            ),
            (["app", "webhook", "add", "shop", "--url", "ftp://x"], "--url must begin with http"),
            (
                ["app", "webhook", "add", "shop", "--url", "http://x", "--event", "foo"],
                "--event must be of message.created"
            ),
            (["app", "webhook", "show", "shop", "5"], "WEBHOOK must be 36 characters"),
            (["app", "user", "suspend", "shop", "a\u{1}"], "USER must be 1 to 128 bytes"),
            (["explain", "--app", "shop", "--message", "5"], "--message must be 36"),
        ] {
            let outcome = try program.rouse(words)
            #expect(outcome.status == 1, "\(words)")
            #expect(outcome.errors.contains(": " + reason), "\(words): \(outcome.errors)")
        }
        // A field of a file is of no option.
        try program.write(#"{"body":"x","sound":7}"#, "push.json")
        let file = try program.rouse("campaign", "create", "shop", "--push", "push.json")
        #expect(file.errors.contains(": push.sound: must be a name or an object"), "\(file.errors)")
    }

    @Test("what is proposed next can be pasted into a shell, whatever the app is called")
    func hint() throws {
        let made = try Program().rouse("app", "create", "Sh op's", "--new-store")
        #expect(made.output.contains(#"rouse app api-key create 'Sh op'\''s' "#), "\(made.output)")
    }

    @Test("times are taken with their units")
    func units() throws {
        let program = try shop()
        let set = try program.rouse(
            "app", "set", "shop", "--grace", "2m", "--session-token", "7d", "--silent-window",
            "1800")
        #expect(set.status == 0, "\(set.errors)")
        #expect(set.output.contains("grace: 2m") && set.output.contains("session-token: 7d"))
        #expect(set.output.contains("silent-window: 30m"))
        let days = try program.rouse("app", "policy", "shop", "--gone-after", "30d")
        #expect(days.output.contains("gone-after: 30d"))
        let odd = try program.rouse("app", "policy", "shop", "--gone-after", "36h")
        #expect(odd.status == 64 && odd.errors.contains("must be a time as 30d"))
    }

    @Test("a webhook that no delivery would reach is added with a warning")
    func webhook() throws {
        let program = try shop()
        func add(_ url: String, _ more: String...) throws -> Program.Outcome {
            try program.rouse(["app", "webhook", "add", "shop", "--url", url] + more)
        }
        let loopback = try add("http://127.0.0.1:9000/hook")
        #expect(loopback.status == 0 && loopback.output.hasPrefix("whs_"), "\(loopback.all)")
        #expect(loopback.errors.contains("unless webhooks.allow_networks names it"))
        #expect(loopback.errors.contains("127.0.0.1/32"))
        #expect(try add("http://localhost/hook").errors.contains("warning: localhost is "))
        #expect(try add("https://[::1]/hook").errors.contains("::1/128"))
        #expect(!(try add("https://93.184.215.14/hook").errors.contains("warning")))
        try program.write("webhooks.allow_networks = 127.0.0.0/8\n", "rouse.conf")
        let allowed = try add("http://127.0.0.1:9000/other", "--config", "rouse.conf")
        #expect(allowed.status == 0 && !allowed.errors.contains("warning"), "\(allowed.errors)")
    }

    @Test("a campaign does not start in the past")
    func start() throws {
        let program = try shop()
        let words = ["campaign", "create", "shop", "--body", "hello", "--start"]
        let past = try program.rouse(words + ["2020-01-01T09:00:00Z"])
        #expect(past.status == 1 && past.errors.contains("start: is in the past"))
        #expect(try program.rouse("campaign", "list", "shop").output == "no campaigns\n")
        let soon = Date(timeIntervalSinceNow: 3_600).formatted(.iso8601)
        #expect(try program.rouse(words + [soon]).status == 0)
    }

    @Test("on a pipe, progress is a line every few seconds and no line is written over")
    func progress() throws {
        let program = try Program()
        let fleet = try program.rouse("fleet", "--devices", "3000", "--days", "1")
        #expect(fleet.status == 0, "\(fleet.errors)")
        #expect(!fleet.errors.contains("\r") && !fleet.errors.contains("\u{1B}"))
        #expect(fleet.errors.contains("of 3000 devices"))
    }
}
