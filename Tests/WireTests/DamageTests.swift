import Testing
import Wire

/// Whatever comes in: a frame or an error, never a trap, and never a frame that cannot be sent on.
@Suite struct DamageTests {
    @Test func damagedStreams() throws {
        var random = RandomValues(generator: SeededGenerator(state: seed()))
        let streams = try Vectors.bodies().map(framed)
        var taken = 0
        for step in 0..<100_000 {
            let stream = random.damaged(streams[step % streams.count])
            // A decoder that fails keeps failing; what it gave before must hold.
            var decoder = FrameDecoder()
            decoder.append(stream)
            while let frame = try? decoder.next() {
                taken += 1
                #expect(try decode(frame.encoded) == [frame], "\(hex(stream))")
            }
            #expect(decoder.bufferedBytes <= stream.count)
        }
        #expect(taken > 1000)
    }

    @Test func noise() throws {
        var random = RandomValues(generator: SeededGenerator(state: seed()))
        for _ in 0..<20_000 {
            let body = random.bytes()
            _ = try? decode(framed(random.some(), body))
            _ = try? decode(body)
        }
    }
}
