import Wire

/// The first byte says how the stream is cut: cut anywhere it gives the same frames and the same
/// error, and holds no more than one body and a chunk.
func fuzzFrames(_ bytes: [UInt8]) throws(Violation) {
    guard let first = bytes.first else { return }
    let stream = Array(bytes.dropFirst())
    let limits = FrameLimits(bodyBytes: 600, elements: 40)
    var whole = FrameDecoder(limits: limits)
    whole.append(stream)
    let expected = try read(&whole)

    var pieces = FrameDecoder(limits: limits)
    var found: ([Frame], WireError?) = ([], nil)
    var start = 0
    var state = UInt32(first) | 1
    while start < stream.count {
        state = state &* 1_664_525 &+ 1_013_904_223
        let count = min(1 + Int(state >> 24) % (Int(first) / 4 + 1), stream.count - start)
        pieces.append(stream[start..<start + count])
        start += count
        let more = try read(&pieces)
        found.0 += more.0
        found.1 = more.1
        // Arrays grow by doubling.
        let bound = 2 * (Frame.headerBytes + limits.bodyBytes + count) + 64
        try hold(pieces.heldBytes <= bound, "\(pieces.heldBytes) bytes held, not \(bound)")
    }
    try hold(found.0 == expected.0, "cut in pieces: \(found.0.count) frames")
    try hold(found.1 == expected.1, "cut in pieces: \(String(describing: found.1))")
}

private func read(
    _ decoder: inout FrameDecoder
) throws(Violation) -> ([Frame], WireError?) {
    var frames: [Frame] = []
    do throws(WireError) {
        while let frame = try decoder.next() { frames.append(frame) }
        return (frames, nil)
    } catch {
        return (frames, error)
    }
}

/// A type byte and a body: what can be read is written and read again as the same.
func fuzzBodies(_ bytes: [UInt8]) throws(Violation) {
    guard let first = bytes.first else { return }
    let types = FrameType.allCases
    let type = types[Int(first) % types.count]
    let count = bytes.count - 1
    var decoder = FrameDecoder(limits: .afterWelcome)
    decoder.append([
        UInt8(truncatingIfNeeded: count >> 16), UInt8(truncatingIfNeeded: count >> 8),
        UInt8(truncatingIfNeeded: count), type.rawValue, 0, 0, 0, 7,
    ])
    decoder.append(bytes.dropFirst())
    let (frames, _) = try read(&decoder)
    for frame in frames { try checkRoundTrip(frame) }
}

/// The frame's bytes read as the same frame, and that frame's bytes are the same.
func checkRoundTrip(_ frame: Frame) throws(Violation) {
    let bytes = frame.encoded
    var decoder = FrameDecoder(
        limits: FrameLimits(bodyBytes: Frame.bodyBytesMax, elements: 1 << 20))
    decoder.append(bytes)
    let (frames, error) = try read(&decoder)
    try hold(error == nil, "\(frame.body.type): written and not read: \(String(describing: error))")
    try hold(frames == [frame], "\(frame.body.type): read as something else: \(frame) \(frames)")
    try hold(frames.first?.encoded == bytes, "\(frame.body.type): written in two ways")
}
