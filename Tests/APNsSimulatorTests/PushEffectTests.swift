import APNsSimulator
import Testing

/// The table of what a phone does with a push, written down a second time.
struct PushEffectTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let state: PushEffect.State
        let kind: PushEffect.Kind
        let callback: PushEffect.Callback
        /// S: shows, B: badge, W: wakes.
        let does: String

        init(
            _ state: PushEffect.State, _ kind: PushEffect.Kind, _ callback: PushEffect.Callback,
            _ does: String
        ) {
            self.state = state
            self.kind = kind
            self.callback = callback
            self.does = does
        }

        var testDescription: String { "\(state.rawValue) \(kind.rawValue)" }
    }

    static let rows: [Row] = [
        Row(.foreground, .silent, .didReceiveRemote, ""),
        Row(.foreground, .alert, .willPresent, "B"),
        Row(.foreground, .alertWithContent, .willPresentAndDidReceiveRemote, "B"),
        Row(.foreground, .badge, .willPresent, "B"),
        Row(.foreground, .badgeWithContent, .willPresentAndDidReceiveRemote, "B"),
        Row(.foreground, .nothing, .none, ""),
        Row(.background, .silent, .didReceiveRemote, "W"),
        Row(.background, .alert, .none, "SB"),
        Row(.background, .alertWithContent, .didReceiveRemote, "SBW"),
        Row(.background, .badge, .none, "B"),
        Row(.background, .badgeWithContent, .didReceiveRemote, "BW"),
        Row(.background, .nothing, .none, ""),
        Row(.suspended, .silent, .didReceiveRemote, "W"),
        Row(.suspended, .alert, .none, "SB"),
        Row(.suspended, .alertWithContent, .didReceiveRemote, "SBW"),
        Row(.suspended, .badge, .none, "B"),
        Row(.suspended, .badgeWithContent, .didReceiveRemote, "BW"),
        Row(.suspended, .nothing, .none, ""),
        Row(.forceQuit, .silent, .none, ""),
        Row(.forceQuit, .alert, .none, "SB"),
        Row(.forceQuit, .alertWithContent, .none, "SB"),
        Row(.forceQuit, .badge, .none, "B"),
        Row(.forceQuit, .badgeWithContent, .none, "B"),
        Row(.forceQuit, .nothing, .none, ""),
    ]

    @Test(arguments: rows)
    func eachCell(_ row: Row) {
        let effect = PushEffect.of(row.kind, in: row.state)
        #expect(effect.callback == row.callback)
        #expect(effect.shows == row.does.contains("S"))
        #expect(effect.setsBadge == row.does.contains("B"))
        #expect(effect.wakes == row.does.contains("W"))
    }

    @Test func theTableIsWhole() {
        #expect(
            Self.rows.count == PushEffect.State.allCases.count * PushEffect.Kind.allCases.count)
    }

    @Test func kindsOfPush() {
        func kind(_ type: String, _ content: PushContent) -> PushEffect.Kind {
            PushEffect.kind(
                of: PushDelivery(
                    token: "ab", topic: "t", apnsID: "i", pushType: type, content: content))
        }
        #expect(kind("background", PushContent(contentAvailable: true)) == .silent)
        #expect(kind("background", PushContent(badge: 1)) == .nothing)
        #expect(kind("alert", PushContent(contentAvailable: true)) == .nothing)
        #expect(kind("alert", PushContent(body: "x")) == .alert)
        #expect(kind("alert", PushContent(body: "x", contentAvailable: true)) == .alertWithContent)
        #expect(kind("alert", PushContent(badge: 0)) == .badge)
        #expect(kind("alert", PushContent(badge: 0, contentAvailable: true)) == .badgeWithContent)
    }
}
