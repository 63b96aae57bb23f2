import APNsSimulator
import Foundation
import Testing

@testable import Scenario

/// A person with a phone and a tablet: one message of three is read on the tablet, another is
/// tapped on the phone.
@Suite(.serialized) struct TapStoryTests {
    private static let room = "0190a1b2-c3d4-7000-8000-0000000000d5"

    @Test("what is read alone goes alone, and a tap leads into the conversation")
    func story() throws { try Story.play("tap", grace: 5, play) }

    private func play(_ story: Story) throws {
        struct Room: Encodable {
            let id = TapStoryTests.room
            let participants = ["anna"]
        }
        try story.ask("POST", "/v1/conversations", Room())
        for device in ["phone", "tablet"] {
            try story.addDevice(device, user: "anna")
            try story.tell(device, .deviceOpen)
            try story.waitServer(device, "online, not behind") {
                $0.reachability == "online" && $0.pushToken.isHeld && !$0.feed.isBehind
            }
        }
        try story.tell("phone", .deviceSuspend)
        try story.waitServer("phone", "asleep") { $0.sessions.isEmpty }
        var messages: [String] = []
        for text in ["one", "two", "three"] {
            messages.append(try story.publish(text, to: Self.room).id)
        }
        func shown() throws -> Set<String> {
            Set(try story.tell("phone", .deviceScreen).screen?.map(\.identifier) ?? [])
        }
        try story.wait("the phone shows all three") { try shown() == Set(messages) }
        try story.waitHolds("tablet", "three", in: Self.room)
        // Only a device without a session is woken for what is read.
        try story.waitServer("phone", "asleep, with all three") {
            $0.sessions.isEmpty && !$0.feed.isBehind
        }
        try story.tell("tablet", .deviceRead) {
            $0.conversation = Self.room
            $0.position = 2
        }
        try story.wait("the second is gone") { try shown() == [messages[0], messages[2]] }
        try story.wait("the icon shows two") { try story.status("phone").badge == 2 }
        try story.wait("the phone sleeps") { "\(try story.status("phone").state)" == "suspended" }
        #expect(try story.status("phone").app?.conversation == nil)
        try story.tell("phone", .deviceTap) { $0.identifier = messages[2] }
        let status = try story.status("phone")
        #expect("\(status.state)" == "foreground")
        #expect(status.app?.conversation == Self.room)
        #expect(try shown() == [messages[0]])
        let log = try story.tell("phone", .log) {
            $0.after = story.logStart
            $0.kinds = [.tapped]
        }
        let tapped = try #require(log.events?.last { $0.device == "tap-phone" })
        #expect(tapped.callback == "didReceiveResponse")
        #expect(tapped.userInfo?.contains(messages[2]) == true)
    }
}
