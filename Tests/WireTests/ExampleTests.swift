import Foundation
import Model
import Testing
import Wire

/// Protocol/example.md: every frame on the page is one, has the name it is given, and is canonical.
@Suite struct ExampleTests {
    private struct Shown {
        let name: String
        var bytes: [UInt8]
    }

    /// The frames between fences: a line `C NAME header`, then lines of the body.
    private func shown() throws -> [Shown] {
        let url = Vectors.root.appending(path: "Protocol/example.md")
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

    @Test func framesAreWhatThePageSays() throws {
        let frames = try shown()
        #expect(frames.count == 15)
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
}
