import Wire
import XCTest

/// This codec against Google's protobuf.
final class GoogleTests: XCTestCase {
    func testVectorsAreWhatTheScriptWrites() throws {
        try GooglePeer.require()
        let outcome = try GooglePeer.run([GooglePeer.script("generate.py"), "--check"])
        XCTAssertEqual(outcome.status, 0, outcome.errors)
    }

    func testRandomFramesReadByGoogle() throws {
        try GooglePeer.require()
        var random = RandomValues(generator: SeededGenerator(state: seed()))
        let bodies = (0..<4000).map { _ in random.body() }
        let lines = try GooglePeer.ask(
            ["read"],
            input: bodies.map { "\($0.type.name) \(hex($0.message.encoded))\n" }.joined())
        XCTAssertEqual(lines.count, bodies.count)
        for (body, line) in zip(bodies, lines) {
            guard case .read(let canonical, let json) = try GooglePeer.Verdict(line: line) else {
                XCTFail("refused: \(body)")
                continue
            }
            XCTAssertEqual(canonical, body.message.encoded, "\(body)")
            XCTAssertEqual(try JSON(text: json), protobufJSON(body.message))
        }
    }

    func testRandomFramesOfGoogle() throws {
        try GooglePeer.require()
        let lines = try GooglePeer.ask(["random", "\(seed())", "4000"])
        XCTAssertEqual(lines.count, 4000)
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 2)
            let type = try XCTUnwrap(FrameType.allCases.first { $0.name == words[0] })
            let content = try bytes(hex: words[1])
            let frame = try XCTUnwrap(try decode(framed(type, content)).first)
            XCTAssertEqual(frame.body.message.encoded, content, "\(line)")
            XCTAssertEqual(protobufJSON(frame.body.message), try JSON(text: words[2]), "\(line)")
        }
    }

    func testCutBodiesGetGooglesVerdict() throws {
        try GooglePeer.require()
        var bodies: [(FrameType, [UInt8])] = []
        for (type, body) in try Vectors.bodies() {
            for cut in 0..<body.count { bodies.append((type, Array(body[..<cut]))) }
        }
        try compareVerdicts(bodies)
    }

    func testDamagedBodiesGetGooglesVerdict() throws {
        try GooglePeer.require()
        var random = RandomValues(generator: SeededGenerator(state: seed()))
        let vectors = try Vectors.bodies()
        try compareVerdicts(
            (0..<20000).map { step in
                let (type, body) = vectors[step % vectors.count]
                return (type, random.damaged(body))
            })
    }

    private func compareVerdicts(_ bodies: [(FrameType, [UInt8])]) throws {
        let lines = try GooglePeer.ask(
            ["read"], input: bodies.map { "\($0.name) \(hex($1))\n" }.joined())
        XCTAssertEqual(lines.count, bodies.count)
        var taken = 0
        for ((type, body), line) in zip(bodies, lines) {
            let label = "\(type.name) \(hex(body))"
            do throws(WireError) {
                let frame = try decode(framed(type, body)).first
                guard case .read(let canonical, _) = try? GooglePeer.Verdict(line: line) else {
                    XCTFail("taken: \(label), but \(line)")
                    continue
                }
                XCTAssertEqual(frame?.body.message.encoded, canonical, label)
                taken += 1
            } catch {
                XCTAssertEqual(
                    try? GooglePeer.Verdict(line: line), .refused(code: error.code.rawValue),
                    label)
            }
        }
        // Both verdicts must occur, or the comparison says nothing.
        XCTAssertGreaterThan(taken, bodies.count / 50)
        XCTAssertGreaterThan(bodies.count - taken, bodies.count / 50)
    }
}
