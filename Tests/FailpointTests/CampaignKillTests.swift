import APNsSimulator
import Feed
import Foundation
import Model
import SQLiteStore
import Testing
import Wake

@testable import Scenario

/// A campaign through a real server to phones behind the simulator, with kill -9 in its middle.
@Suite(.serialized) struct CampaignKillTests {
    private static let phones = 12
    private static let campaigns = (0..<2).map { "0190a1b2-c3d4-7000-8000-00000000020\($0)" }

    private struct New: Encodable {
        let id: String
        let push = ["body": "sale"]
        let rate: Int
    }

    private struct Facts: Decodable {
        struct Progress: Decodable {
            let audience: UInt64
            let accepted: UInt64
            let refused: UInt64
        }

        let state: String
        let progress: Progress
    }

    private func facts(_ story: Story, _ id: String) throws -> Facts {
        try Story.decoded(Facts.self, try story.ask("GET", "/v1/campaigns/\(id)"))
    }

    private func add(_ story: Story) throws {
        for number in 0..<Self.phones {
            try story.addDevice("phone\(number)", user: "user\(number)")
            try story.tell("phone\(number)", .deviceOpen)
        }
        for number in 0..<Self.phones {
            try story.waitServer("phone\(number)", "online, with a push token") {
                $0.reachability == "online" && $0.pushToken.isHeld
            }
            // Asleep: what it shows then is what the system shows.
            try story.tell("phone\(number)", .deviceBackground)
            try story.tell("phone\(number)", .deviceSuspend)
        }
    }

    @Test("killed in the middle of a campaign: every phone shows its push, and shows it once")
    func inTheMiddle() throws {
        let world = try World()
        defer { world.clear() }
        let story = try Story(world, name: "campaign", point: nil)
        defer { story.end() }
        do {
            try story.start()
            story.use(apiKey: try story.makeApp("story", grace: 10).secret)
            try add(story)
            // The first goes to tokens that APNs has never accepted: one connection, one by one.
            for (id, rate) in zip(Self.campaigns, [500, 3]) {
                try story.ask("POST", "/v1/campaigns", New(id: id, rate: rate), key: id)
                if rate == 3 {
                    try story.wait("some of it have left") {
                        try facts(story, id).progress.accepted >= 3
                    }
                    story.server.kill()
                    let left = try Self.rows(of: id, story.server.storePath)
                    let sent = left.count { $0.phase == .sent }
                    #expect(sent >= 3 && sent < Self.phones, "\(left.map(\.phase))")
                    try story.start()
                }
                try story.wait("the campaign is over") {
                    try facts(story, id).state == "finished"
                }
                let progress = try facts(story, id).progress
                #expect(progress.accepted == UInt64(Self.phones) && progress.refused == 0)
                #expect(progress.audience == UInt64(Self.phones))
            }
            for number in 0..<Self.phones {
                let screen = try story.tell("phone\(number)", .deviceScreen).screen ?? []
                #expect(screen.map(\.identifier).sorted() == Self.campaigns, "phone\(number)")
            }
            story.server.stop()
            for id in Self.campaigns {
                let rows = try Self.rows(of: id, story.server.storePath)
                #expect(rows.count == Self.phones)
                #expect(rows.allSatisfy { $0.phase == .sent && $0.push != nil })
            }
        } catch {
            Issue.record("\(error)\n\(story.server.lastLogLines(12))")
        }
    }

    private static func rows(of id: String, _ path: String) throws -> [CampaignPushRecord] {
        let store = try SQLiteStore(path: path, tables: Schema.tables)
        defer { store.close() }
        var rows: [CampaignPushRecord] = []
        try store.read { snapshot throws(StoreError) in
            rows = try snapshot.records(CampaignPushRecord.self, Scan(limit: .max))
                .filter { $0.campaign.description == id }
        }
        return rows
    }
}
