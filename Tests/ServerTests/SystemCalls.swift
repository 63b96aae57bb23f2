import Foundation

/// strace(1) around a server.
enum Strace {
    private static let path = "/usr/bin/strace"

    /// Whether it can trace, and names both ends of a TCP socket (`-yy`).
    static let works: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = ["-f", "-yy", "-o", "/dev/null", "true"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    static func words(trace: String) -> [String] {
        [
            path, "-f", "-qq", "-yy", "-s", "32", "-o", trace, "-e",
            "trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,fdatasync,fsync",
            "-e", "signal=none",
        ]
    }
}

/// The calls of a traced process, in the order they happened.
struct SystemCalls {
    /// The file or socket a call is about, and where in the trace it began and ended.
    struct Call {
        let name: Substring
        /// `TCP:[127.0.0.1:7443->127.0.0.1:40000]`, or a path.
        let target: Substring
        let began: Int
        var ended: Int
        var result: Int
        var line: String
    }

    /// From a request's last byte to the first byte of what was sent next on the same socket.
    struct Exchange {
        /// The journal was synced in between: begun after the request, done before the answer.
        let isSynced: Bool
        /// The call that answered, as strace shows it.
        let answer: String
        let lines: [String]
    }

    private var calls: [Call] = []

    init(_ trace: String) {
        var open: [Substring: Int] = [:]
        for (number, line) in trace.split(separator: "\n").enumerated() {
            let words = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard words.count == 2 else { continue }
            let thread = words[0]
            let text = words[1].drop { $0 == " " }
            let result = text.range(of: ") = ", options: .backwards).flatMap {
                Int(text[$0.upperBound...].prefix { $0.isNumber || $0 == "-" })
            }
            if text.hasPrefix("<... ") {
                guard let call = open.removeValue(forKey: thread) else { continue }
                calls[call].ended = number
                calls[call].result = result ?? -1
                calls[call].line += " … " + text
                continue
            }
            guard let name = text.firstIndex(of: "("), let start = text.firstIndex(of: "<"),
                let end = text.range(of: ">,")?.lowerBound ?? text.range(of: ">)")?.lowerBound
                    ?? text.range(of: "> <unfinished")?.lowerBound,
                start < end
            else { continue }
            let isUnfinished = text.hasSuffix("<unfinished ...>")
            calls.append(
                Call(
                    name: text[..<name], target: text[text.index(after: start)..<end],
                    began: number, ended: isUnfinished ? .max : number, result: result ?? -1,
                    line: String(text)))
            if isUnfinished { open[thread] = calls.count - 1 }
        }
    }

    /// What went over the socket to the peer at `peerPort`: requests of at least `requestBytes`.
    func exchanges(peerPort: Int, requestBytes: Int) -> [Exchange] {
        let reading: Set<Substring> = ["read", "readv", "recvfrom", "recvmsg"]
        let writing: Set<Substring> = ["write", "writev", "sendto", "sendmsg"]
        let own = calls.filter {
            $0.target.hasPrefix("TCP") && $0.target.hasSuffix(":\(peerPort)]")
        }
        let syncs = calls.filter {
            ($0.name == "fdatasync" || $0.name == "fsync") && $0.target.hasSuffix(".db-wal")
                && $0.result == 0
        }
        var exchanges: [Exchange] = []
        var request: [Call] = []
        for call in own {
            if reading.contains(call.name), call.result > 0 {
                request.append(call)
            } else if writing.contains(call.name), let last = request.last {
                if request.reduce(0, { $0 + $1.result }) >= requestBytes {
                    let between = syncs.filter { $0.began > last.ended && $0.ended < call.began }
                    exchanges.append(
                        Exchange(
                            isSynced: !between.isEmpty, answer: call.line,
                            lines: [last.line] + between.map(\.line) + [call.line]))
                }
                request = []
            }
        }
        return exchanges
    }
}
