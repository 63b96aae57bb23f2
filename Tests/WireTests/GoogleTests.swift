import Testing
import Wire

/// This codec against Google's protobuf.
@Suite(.enabled(if: GooglePeer.isThere, GooglePeer.needs)) struct GoogleTests {
    @Test func vectorsAreWhatTheScriptWrites() throws {
        let outcome = try GooglePeer.run([GooglePeer.script("generate.py"), "--check"])
        #expect(outcome.status == 0, "\(outcome.errors)")
    }

    @Test func exchangesAreWhatTheScriptWrites() throws {
        let outcome = try GooglePeer.run([GooglePeer.script("exchanges.py"), "--check"])
        #expect(outcome.status == 0, "\(outcome.errors)")
    }

    @Test func randomFramesReadByGoogle() throws {
        var random = RandomValues(generator: SeededGenerator(state: seed()))
        let bodies = (0..<4000).map { _ in random.body() }
        let lines = try GooglePeer.ask(
            ["read"],
            input: bodies.map { "\($0.type.name) \(hex($0.message.encoded))\n" }.joined())
        #expect(lines.count == bodies.count)
        for (body, line) in zip(bodies, lines) {
            guard case .read(let canonical, let json) = try GooglePeer.Verdict(line: line) else {
                Issue.record("refused: \(body)")
                continue
            }
            #expect(canonical == body.message.encoded, "\(body)")
            #expect(try JSON(text: json) == protobufJSON(body.message))
        }
    }

    @Test func randomFramesOfGoogle() throws {
        let lines = try GooglePeer.ask(["random", "\(seed())", "4000"])
        #expect(lines.count == 4000)
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 2)
            let type = try #require(FrameType.allCases.first { $0.name == words[0] })
            let content = try bytes(hex: words[1])
            let frame = try #require(try decode(framed(type, content)).first)
            #expect(frame.body.message.encoded == content, "\(line)")
            #expect(try protobufJSON(frame.body.message) == JSON(text: words[2]), "\(line)")
        }
    }

    @Test func cutBodiesGetGooglesVerdict() throws {
        var bodies: [(FrameType, [UInt8])] = []
        for (type, body) in try Vectors.bodies() {
            for cut in 0..<body.count { bodies.append((type, Array(body[..<cut]))) }
        }
        try compareVerdicts(bodies)
    }

    @Test func damagedBodiesGetGooglesVerdict() throws {
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
        #expect(lines.count == bodies.count)
        var taken = 0
        for ((type, body), line) in zip(bodies, lines) {
            let label = "\(type.name) \(hex(body))"
            do throws(WireError) {
                let frame = try decode(framed(type, body)).first
                guard case .read(let canonical, _) = try? GooglePeer.Verdict(line: line) else {
                    Issue.record("taken: \(label), but \(line)")
                    continue
                }
                #expect(frame?.body.message.encoded == canonical, "\(label)")
                taken += 1
            } catch {
                #expect(
                    (try? GooglePeer.Verdict(line: line)) == .refused(code: error.code.rawValue),
                    "\(label)")
            }
        }
        // Both verdicts must occur, or the comparison says nothing.
        #expect(taken > bodies.count / 50)
        #expect(bodies.count - taken > bodies.count / 50)
    }
}
