import APNsSimulator
import Feed
import Foundation
import Model
import Wake

@testable import Scenario

/// A campaign, to Clara's phone and tablet alone: her user has the tag.
extension Story {
    static let campaign = "0190a1b2-c3d4-7000-8000-000000000100"

    private struct Facts: Decodable {
        struct Progress: Decodable {
            let accepted: UInt64
        }

        let state: String
        let progress: Progress?
    }

    func campaign() throws {
        struct New: Encodable {
            let id = Story.campaign
            let name = "spring"
            let push = ["body": "sale"]
            let audience = ["tags": ["vip"]]
            // All but everybody: it waits for a resume, so that each request finds it going on.
            let canary = ["share": 9_999]
        }
        let key = "campaign-"
        try ask("POST", "/v1/users/clara/tags", ["add": ["vip"]], key: key + "tags")
        try ask("POST", "/v1/campaigns", New(), key: key + "make")
        let one = "/v1/campaigns/\(Self.campaign)"
        func reach(_ state: String) throws {
            try wait("the campaign is \(state)") {
                try Self.decoded(Facts.self, try ask("GET", one)).state == state
            }
        }
        for control in ["pause", "resume"] {
            try ask("POST", "\(one)/\(control)", key: key + control)
        }
        try reach("review")
        try ask("POST", one + "/resume", key: key + "go-on")
        try reach("finished")
        // The tablet's app is open: what comes there is the app's to show.
        try wait("clara's phone shows the campaign") {
            let screen = try tell("clara", .deviceScreen).screen ?? []
            let shown = screen.filter { $0.identifier == Self.campaign }
            guard shown.count <= 1 else {
                throw StoryError("clara's phone shows the campaign \(shown.count) times")
            }
            return shown.count == 1
        }
    }

    /// One push a device, taken by APNs, and nothing of it waits.
    func campaignLeftovers(in snapshot: any StoreSnapshot) throws(StoreError) -> [String] {
        let rows = try snapshot.records(CampaignPushRecord.self, Scan(limit: .max))
        var problems: [String] = []
        if rows.count != 2 || rows.contains(where: { $0.phase != .sent }) {
            problems.append("pushes of the campaign: \(rows.map { "\($0.user) \($0.phase)" })")
        }
        let progress = try snapshot.records(CampaignProgressRecord.self, Scan(limit: .max))
        if progress.count != 1 || progress.first?.counts.accepted != 2 {
            problems.append("the campaign counts \(progress.map(\.counts))")
        }
        return problems
    }
}
