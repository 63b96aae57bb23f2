import Model
import Testing
import Wire

@Suite struct FrameTests {
    @Test func bytesOfAKnownFrame() {
        let frame = Frame(.ping(Ping(nextMs: 180_000)), request: 0x1234, more: true)
        #expect(frame.encoded == [0, 0, 4, 0x40, 1, 0, 0x12, 0x34, 0x08, 0xA0, 0xFE, 0x0A])
    }

    @Test func namesOfCodesAndTypes() {
        #expect(Code.internal.name == "internal")
        #expect(Code.storageBusy.name == "storage_busy")
        #expect(FrameType.syncRequest.name == "SYNC_REQUEST")
        #expect(FrameType.hello.name == "HELLO")
    }

    @Test func wholeFrameBothWays() throws {
        let frame = Frame(
            .sync(
                SyncFrame(
                    cursor: Cursor(epoch: Epoch(high: 1, low: 2), seq: 300), applied: 300,
                    mode: .advance,
                    mutations: [
                        Mutation(
                            number: 7,
                            operation: .sendMessage(
                                SendMessage(
                                    conversation: ConversationID(high: 3, low: 4),
                                    message: MessageID(high: 5, low: 6),
                                    parts: [
                                        Part(
                                            mimeType: "text/plain",
                                            content: [UInt8](repeating: 65, count: 300))
                                    ])))
                    ])), request: 1)
        var decoder = FrameDecoder()
        decoder.append(frame.encoded)
        #expect(try decoder.next() == frame)
        #expect(try decoder.next() == nil)
        #expect(decoder.bufferedBytes == 0)
    }
}
