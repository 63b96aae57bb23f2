import Model
import Testing
import Wire

/// An entry that many get is encoded once.
@Suite struct SharedEncodingTests {
    private func entry(_ text: String) -> Entry {
        Entry(
            conversation: ConversationID(high: 1, low: 2), object: MessageID(high: 3, low: 4).bytes,
            version: 5, alerted: true,
            body: .message(
                MessageState(
                    position: 6, sender: "ben", sentMs: 7,
                    parts: [Part(mimeType: "text/plain", content: Array(text.utf8))])))
    }

    @Test("with a seq of its own each is written as if it were alone")
    func sameBytes() {
        for text in ["", "short", String(repeating: "long", count: 5_000)] {
            var shared = entry(text)
            shared.shareEncoding()
            #expect(shared == entry(text))
            for seq in [0, 1, 127, 128, .max] as [UInt64] {
                var own = entry(text)
                own.seq = seq
                shared.seq = seq
                #expect(shared.encoded == own.encoded)
                #expect(
                    Delta(entries: [shared, own]).encoded == Delta(entries: [own, own]).encoded)
            }
        }
    }

    @Test("whatever else is changed is written as it is then")
    func changed() {
        let changes: [(inout Entry) -> Void] = [
            { $0.conversation = nil }, { $0.object = [] }, { $0.version = 9 },
            { $0.alerted = false }, { $0.body = nil },
        ]
        for change in changes {
            var shared = entry("hello")
            shared.shareEncoding()
            var own = entry("hello")
            change(&shared)
            change(&own)
            #expect(shared.encoded == own.encoded)
        }
    }
}
