import Foundation
import Glibc
import Testing

/// Deploy/guide/backend.md, block by block: what a newcomer types is what is run here.
@Suite(.serialized) struct GuideTests {
    static let guide = ChatLog.root.appendingPathComponent("Deploy/guide/backend.md")
    static let hasNode = FileManager.default.isExecutableFile(atPath: "/usr/bin/node")

    /// A fenced block: its language, the word behind it, and its lines.
    struct Block: Equatable {
        var language: String
        var name: String
        var text: String
    }

    static func blocks(in text: String) -> [Block] {
        var all: [Block] = []
        var open: Block?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("```") else {
                open?.text += line + "\n"
                continue
            }
            if let block = open {
                all.append(block)
                open = nil
            } else {
                let words = line.dropFirst(3).split(separator: " ", maxSplits: 1)
                open = Block(
                    language: String(words.first ?? ""),
                    name: words.count == 2 ? String(words[1]) : "", text: "")
            }
        }
        return all
    }

    /// One program of all blocks, with these ports in place of the guide's.
    static func script(
        _ blocks: [Block], ports: [String: Int], hasNode: Bool = hasNode
    ) -> String {
        var script = "set -eu\ntrap 'kill -9 $(jobs -p) 2>/dev/null' EXIT\ntrap 'exit 1' TERM\n"
        for block in blocks {
            switch (block.language, block.name) {
            case ("sh", "node") where !hasNode, ("sh", "python") where hasNode: continue
            case ("sh", _): script += block.text
            default: script += "cat >'\(block.name)' <<'END OF BLOCK'\n\(block.text)END OF BLOCK\n"
            }
        }
        for (guide, free) in ports {
            script = script.replacingOccurrences(of: guide, with: String(free))
        }
        return script
    }

    /// Ports that nothing listens on now.
    static func freePorts(_ count: Int) throws -> [Int] {
        var sockets: [Int32] = []
        defer { for one in sockets { close(one) } }
        return try (0..<count).map { _ in
            let one = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            sockets.append(one)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
                    bind(one, place, size) == 0 ? getsockname(one, place, &size) : -1
                }
            }
            try #require(status == 0, "errno \(errno)")
            return Int(UInt16(bigEndian: address.sin_port))
        }
    }

    private struct Run {
        let output: String
        let status: Int32
        let log: String
    }

    /// Runs all of it in a folder of its own.
    private static func run(_ blocks: [Block], hasNode: Bool = hasNode) throws -> Run {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-guide-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let free = try freePorts(4)
        let ports = Dictionary(uniqueKeysWithValues: zip(["7443", "7480", "8700", "8701"], free))
        let program = folder.appendingPathComponent("guide.sh")
        try script(blocks, ports: ports, hasNode: hasNode)
            .write(to: program, atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
        process.arguments = ["240", "bash", program.path]
        process.currentDirectoryURL = folder
        process.environment = [
            "PATH": URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
                + ":/usr/bin:/bin",
            "HOME": folder.path,
            // In place of the wheel, which PythonClientTests builds and runs.
            "PYTHONPATH": ChatLog.root.appendingPathComponent("Deploy/sdk/python").path,
            "PYTHONDONTWRITEBYTECODE": "1",
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let log = try? String(
            contentsOf: folder.appendingPathComponent("guide/server.log"), encoding: .utf8)
        return Run(
            output: String(decoding: output, as: UTF8.self), status: process.terminationStatus,
            log: log ?? "")
    }

    static let noPeers: Comment = "python3-jwt is not installed: Deploy/install test"

    @Test(
        "what the guide says leads from nothing to messages on the screens of sleeping phones",
        .enabled(if: RealServer.hasPeers, noPeers))
    func guideIsTrue() throws {
        let blocks = Self.blocks(in: try String(contentsOf: Self.guide, encoding: .utf8))
        let named = blocks.filter { $0.language != "sh" }.map(\.name)
        #expect(named == ["rouse.conf", "identity.py", "identity.mjs", "answer.py"])
        let ran = try Self.run(blocks)
        #expect(ran.status == 0, "\(ran.output.suffix(4_000))\n\(ran.log.suffix(2_000))")
        // The screen, the inbox, the explanation, and the answer of the program.
        #expect(ran.output.contains(#""body":"Dinner at eight?""#))
        #expect(ran.output.contains(#""unread":1"#) && ran.output.contains(#""last_message":"#))
        #expect(ran.output.contains("wake-synced"))
        #expect(ran.output.contains("1 unread, answered"))
    }

    @Test(
        "phones get in without Node, and through an endpoint that fails at first",
        .enabled(if: RealServer.hasPeers, noPeers))
    func endpointFails() throws {
        var blocks = Self.blocks(in: try String(contentsOf: Self.guide, encoding: .utf8))
        let place = try #require(blocks.firstIndex { $0.name == "identity.py" })
        let start = "    def do_POST(self):\n"
        // To the phones, which name no program as curl does: a refusal, no token, and no end.
        blocks[place].text = blocks[place].text.replacingOccurrences(
            of: start,
            with: """
                    bad = iter([
                        b"HTTP/1.1 500 No\\r\\n\\r\\n", b"HTTP/1.1 200 OK\\r\\n\\r\\n{}",
                        b"HTTP/1.1 200 OK\\r\\n\\r\\n" + b" " * 100_000])

                    def do_POST(self):
                        if "User-Agent" not in self.headers and (bad := next(self.bad, None)):
                            self.rfile.read(int(self.headers["Content-Length"]))
                            print("a bad answer", flush=True)
                            return self.wfile.write(bad)

                """)
        let ran = try Self.run(blocks, hasNode: false)
        #expect(ran.status == 0, "\(ran.output.suffix(4_000))\n\(ran.log.suffix(2_000))")
        #expect(ran.output.components(separatedBy: "a bad answer\n").count == 1 + 3)
        #expect(ran.output.contains("1 unread, answered"))
    }
}
