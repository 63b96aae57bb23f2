import Testing

@testable import Wire

/// Parts of a message that a store keeps encoded are passed on as they are, and nobody sees a
/// difference to parts that were read and written again.
@Suite struct StoredPartsTests {
    private func parts(_ random: inout RandomValues, isPlain: Bool) -> [Part] {
        random.list { random in
            var part = Part(
                mimeType: isPlain ? "text/plain" : random.text(), content: random.bytes())
            if random.chance(3) {
                part.reference = PartReference(
                    url: isPlain ? "https://example.com/x" : random.text(), size: random.u64(),
                    digest: random.bytes(), expiresMs: random.u64())
            }
            return part
        }
    }

    /// What a page shows of the bytes, the old way: read, and written again.
    private func read(_ bytes: [UInt8]) -> Result<MessageState, WireError> {
        Result { () throws(WireError) in try MessageState(encoded: bytes) }
    }

    private func keep(_ bytes: [UInt8]) -> Result<MessageState, WireError> {
        Result { () throws(WireError) in try MessageState(storedParts: bytes) }
    }

    private func isKept(_ state: MessageState) -> Bool {
        if case .stored = state.content { true } else { false }
    }

    @Test("kept parts are the same message, in the same bytes", arguments: 0..<300 as Range<UInt64>)
    func same(seed: UInt64) throws {
        var random = RandomValues(generator: SeededGenerator(state: seed))
        let isPlain = seed % 3 != 0
        let parts = parts(&random, isPlain: isPlain)
        var kept = try MessageState(storedParts: MessageState(parts: parts).encoded)
        let isWhole = parts.allSatisfy { $0 != Part() && $0.reference != PartReference() }
        if isPlain, isWhole, parts.allSatisfy({ ($0.reference?.expiresMs ?? 0) >> 63 == 0 }),
            parts.allSatisfy({ ($0.reference?.size ?? 0) >> 63 == 0 })
        {
            #expect(isKept(kept), "\(parts)")
        }
        var plain = MessageState(parts: parts)
        #expect(kept.partCount == parts.count)
        #expect(kept.partsApproximateBytes == parts.approximateBytes)
        for number in [0, 7] as [UInt64] {
            kept.position = number
            plain.position = number
            kept.editedMs = number
            plain.editedMs = number
            #expect(kept == plain && plain == kept)
            #expect(kept.encoded == plain.encoded)
        }
        kept.parts.append(Part(mimeType: "a"))
        plain.parts.append(Part(mimeType: "a"))
        #expect(kept == plain && kept.encoded == plain.encoded)
    }

    @Test("damaged parts are told as before, byte by byte", arguments: 0..<60 as Range<UInt64>)
    func damaged(seed: UInt64) throws {
        var random = RandomValues(generator: SeededGenerator(state: 1_000 + seed))
        let whole = MessageState(parts: parts(&random, isPlain: true)).encoded
        for place in whole.indices {
            let cut = Array(whole[..<place])
            var flipped = whole
            flipped[place] ^= 1 << UInt8(truncatingIfNeeded: random.u64() % 8)
            var other = whole
            other[place] = UInt8(truncatingIfNeeded: random.u64())
            for bytes in [cut, flipped, other] {
                switch (read(bytes), keep(bytes)) {
                case (.success(let read), .success(let kept)):
                    #expect(read == kept, "\(bytes)")
                    #expect(read.encoded == kept.encoded, "\(bytes)")
                    #expect(kept.partCount == read.parts.count)
                case (.failure(let read), .failure(let kept)): #expect(read == kept)
                case (let read, let kept): Issue.record("\(bytes): \(read), but \(kept)")
                }
            }
        }
    }

    @Test("what this version does not write itself is read and written again")
    func notCanonical() throws {
        let odd: [[UInt8]] = [
            // A length in two bytes, an empty type, fields out of order, one twice, one unknown.
            [0x22, 0x83, 0x00, 0x12, 0x01, 0x41], [0x22, 0x02, 0x0A, 0x00],
            [0x22, 0x06, 0x12, 0x01, 0x41, 0x0A, 0x01, 0x61],
            [0x22, 0x06, 0x12, 0x01, 0x41, 0x12, 0x01, 0x42], [0x22, 0x02, 0x20, 0x01],
            // A field of the message beside its parts, an empty part, a type beyond ASCII.
            [0x08, 0x05], [0x22, 0x00], [0x22, 0x04, 0x0A, 0x02, 0xC3, 0xA9],
        ]
        for bytes in odd {
            let kept = try MessageState(storedParts: bytes)
            #expect(!isKept(kept), "\(bytes)")
            #expect(try kept == MessageState(encoded: bytes))
        }
        // No UTF-8; the second is as long as what is decoded in its place.
        for type in [[0xFF], [0xF0, 0x9F, 0x98]] as [[UInt8]] {
            let count = UInt8(type.count)
            #expect(throws: WireError.malformed) {
                try MessageState(storedParts: [0x22, count + 2, 0x0A, count] + type)
            }
        }
        let many = [UInt8]((0..<8_193).flatMap { _ in [0x22, 0x03, 0x12, 0x01, 0x41] as [UInt8] })
        #expect(throws: WireError.tooManyElements(limit: 8_192)) {
            try MessageState(storedParts: many)
        }
    }
}
