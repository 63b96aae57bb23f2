import Foundation
import Model
import Testing
import Wire

/// Protocol/example.md and exchanges.md: every frame on these pages is one, has the name it is given,
/// and is canonical.
@Suite struct ExampleTests {
    private struct Shown {
        let name: String
        var bytes: [UInt8]
    }

    /// The frames between fences: a line `C NAME header`, then lines of the body.
    private func shown(on page: String = "example.md") throws -> [Shown] {
        let url = Vectors.root.appending(path: "Protocol/" + page)
        var frames: [Shown] = []
        var isInside = false
        for line in try String(contentsOf: url, encoding: .utf8).split(separator: "\n") {
            if line == "```" {
                isInside.toggle()
            } else if isInside {
                var words = line.split(separator: " ")
                if line.first != " " {
                    let side = words.removeFirst()
                    #expect(side == "C" || side == "S")
                    frames.append(Shown(name: String(words.removeFirst()), bytes: []))
                }
                let last = try #require(frames.indices.last)
                frames[last].bytes += try bytes(hex: words.joined())
            }
        }
        return frames
    }

    @Test(arguments: [("example.md", 15), ("exchanges.md", 27)])
    func framesAreWhatThePageSays(_ page: String, _ count: Int) throws {
        let frames = try shown(on: page)
        #expect(frames.count == count)
        for item in frames {
            let decoded = try decode(item.bytes)
            #expect(decoded.count == 1, "\(item.name)")
            #expect(decoded.first?.body.type.name == item.name)
            #expect(decoded.first?.encoded == item.bytes, "\(item.name)")
        }
    }

    @Test func thePagesFollowEachOther() throws {
        var cursor: UInt64 = 0
        for item in try shown() {
            guard case .delta(let delta) = try decode(item.bytes).first?.body else { continue }
            #expect(delta.from?.seq == cursor)
            cursor = try #require(delta.to?.seq)
            #expect(delta.entries.allSatisfy { $0.seq <= cursor })
        }
        #expect(cursor == 4)
    }

    @Test func theDigestShownIsThatOfTheSnapshotShown() throws {
        var expected: [DigestSum] = []
        var compared = 0
        for item in try shown(on: "exchanges.md") {
            switch try decode(item.bytes).first?.body {
            case .snapshotPage(let page) where !page.conversations.isEmpty:
                var sums = [DigestSum(), DigestSum()]
                for entry in page.conversations.flatMap(\.entries) {
                    switch entry.body {
                    case .conversationState:
                        let id = try #require(entry.conversation?.bytes)
                        sums[0].add(.conversation, id: id, version: entry.version)
                    case .message: sums[1].add(.message, id: entry.object, version: entry.version)
                    default: break
                    }
                }
                expected = sums
            case .digest(let digest):
                #expect([digest.conversations, digest.messages] == expected)
                compared += 1
            case .digestResult(let result):
                #expect([result.conversations, result.messages] == expected)
                compared += 1
            default: break
            }
        }
        #expect(compared == 2)
    }
}
