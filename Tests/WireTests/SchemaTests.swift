import Foundation
import Testing

@testable import Wire

/// Protocol/sync.proto and the code's declarations say the same.
@Suite struct SchemaTests {
    private func text() throws -> String {
        try String(
            contentsOf: Vectors.root.appending(path: "Protocol/sync.proto"), encoding: .utf8)
    }

    /// Of every frame, with all that is in it.
    private func declared() throws -> Schema {
        var schema = Schema()
        for type in FrameType.allCases { _ = schema.add(try message(of: type)) }
        schema.enumerations["Code"] =
            [Schema.Value(name: "CODE_DONE", number: 0)]
            + Code.allCases.map {
                Schema.Value(name: "CODE_" + $0.name.uppercased(), number: $0.rawValue)
            }
        return schema
    }

    /// The message in a frame's body.
    private func message(of type: FrameType) throws -> any WireMessage.Type {
        var reader = BodyReader([], 0..<0, elements: 0)
        return Swift.type(of: try FrameBody.read(type, from: &reader).message)
    }

    @Test("every field and every value of the schema is in the code, and no other")
    func sameSchema() throws {
        var proto = ProtoText(try text())
        let written = try proto.schema()
        for difference in try declared().differences(from: written) {
            Issue.record("\(difference)")
        }
        #expect(written.messages.count > 50)
        #expect(written.enumerations.count > 10)
    }

    @Test("numbers rise in each declaration, so that what is written is canonical")
    func rising() throws {
        for (name, fields) in try declared().messages {
            for (field, next) in zip(fields, fields.dropFirst()) {
                #expect(field.number < next.number, "\(name): \(next)")
            }
        }
    }

    @Test("the registry names the message of each frame")
    func messagesOfFrames() throws {
        let registry = try String(
            contentsOf: Vectors.root.appending(path: "Protocol/registry.md"), encoding: .utf8)
        let rows = registry.matches(of: #/\| 0x[0-9A-F]{2} \| ([A-Z_]+) \| `(\w+)` \|/#)
        var schema = Schema()
        let declared = try FrameType.allCases.map {
            "\($0.name) \(schema.add(try message(of: $0)))"
        }
        #expect(rows.map { "\($0.1) \($0.2)" } == declared)
    }

    /// What may happen to a schema alone, and what is told of it.
    private static let drifts: [(String, from: String, to: String, told: String)] = [
        (
            "a field more", "uint64 above = 2;", "uint64 above = 2; bool wide = 9;",
            "message Fetch: bool wide = 9: not in the code"
        ),
        (
            "a field less", "  bool ascending = 4;\n", "",
            "message Fetch: bool ascending = 4: not in the schema"
        ),
        (
            "a number", "uint64 above = 2;", "uint64 above = 12;",
            "message Fetch: uint64 above = 2: the schema says uint64 above = 12"
        ),
        (
            "a type", "uint64 above = 2;", "uint32 above = 2;",
            "message Fetch: uint64 above = 2: the schema says uint32 above = 2"
        ),
        (
            "repeated", "repeated string features = 8;", "string features = 8;",
            "message Hello: repeated string features = 8: the schema says string features = 8"
        ),
        (
            "optional", "optional uint32 unread = 5;", "uint32 unread = 5;",
            "message SnapshotPage: optional uint32 unread = 5: the schema says uint32 unread = 5"
        ),
        (
            "another message", "PushText push = 5;", "PushSound push = 5;",
            "message Message: PushText push = 5: the schema says PushSound push = 5"
        ),
        (
            "another enumeration", "Setting low_power = 5;", "AppPhase low_power = 5;",
            "message AppState: Setting low_power = 5: the schema says AppPhase low_power = 5"
        ),
        (
            "another name", "string after = 8;", "string behind = 8;",
            "message Fetch: string after = 8: not in the schema"
        ),
        (
            "another oneof", "oneof operation {", "oneof change {",
            "message Mutation: BlockUser block_user = 20 of oneof operation: "
                + "the schema says BlockUser block_user = 20 of oneof change"
        ),
        (
            "outside of the oneof", "  bool alerted = 5;", "  bool alerted = 5; Block block = 19;",
            "message Entry: Block block = 19 of oneof body: the schema says Block block = 19"
        ),
        (
            "a message more", "message ForgetDevice {}", "message ForgetDevice {} message Nap {}",
            "message Nap: not in the code"
        ),
        (
            "a message less", "message ForgetDevice {}", "",
            "message ForgetDevice: not in the schema"
        ),
        (
            "a value more", "SYNC_MODE_PEEK = 2;", "SYNC_MODE_PEEK = 2; SYNC_MODE_NAP = 3;",
            "enum SyncMode: SYNC_MODE_NAP = 3: not in the code"
        ),
        (
            "a value less", "  SYNC_MODE_PEEK = 2;\n", "",
            "enum SyncMode: SYNC_MODE_PEEK = 2: not in the schema"
        ),
        (
            "a value's number", "SYNC_MODE_PEEK = 2;", "SYNC_MODE_PEEK = 3;",
            "enum SyncMode: SYNC_MODE_PEEK = 2: the schema says SYNC_MODE_PEEK = 3"
        ),
        (
            "a value's name", "ROLE_EXTENSION = 2;", "ROLE_SERVICE = 2;",
            "enum Role: ROLE_EXTENSION = 2: not in the schema"
        ),
        (
            "a code", "CODE_SLOW = 5009;", "CODE_SLOW = 5010;",
            "enum Code: CODE_SLOW = 5009: the schema says CODE_SLOW = 5010"
        ),
    ]

    @Test("whatever differs is told by its name", arguments: drifts.indices)
    func drift(index: Int) throws {
        let drift = Self.drifts[index]
        let whole = try text()
        let changed = whole.replacing(drift.from, with: drift.to, maxReplacements: 1)
        #expect(changed != whole, "\(drift.0)")
        var before = ProtoText(whole)
        var after = ProtoText(changed)
        let differences = try before.schema().differences(from: after.schema())
        #expect(differences.contains(drift.told), "\(drift.0): \(differences)")
    }
}
