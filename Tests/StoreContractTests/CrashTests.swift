import Foundation
import Model
import SQLiteStore
import Testing

/// A process that writes the store dies, or its disk fails: what was acknowledged is there, what
/// was refused is not, and nothing is there in half.
///
/// Serialized: each test runs other processes and waits for them.
@Suite(.serialized) struct CrashTests {
    @Test(
        "kill -9 in the middle of commits, again and again on one file",
        arguments: [false, true])
    func kill(moves: Bool) throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            var random = SeededRandom(UInt64(Date().timeIntervalSince1970))
            var log = CrashLog()
            for round in 0..<12 {
                let output = try CrashWriter.run(
                    path, count: 1_000_000, moves: moves, killAfter: 1 + random.below(120))
                log.add(output)
                try log.check(path, "round \(round)")
            }
            #expect(log.acknowledged.count >= 12, "the writer was killed before it wrote")
        }
    }

    @Test(
        "a system call fails once, or from then on",
        .enabled(if: Strace.works, "strace cannot trace here"),
        arguments: ["fdatasync:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC"])
    func failingCalls(_ fault: String) throws {
        var refused = 0
        for place in stride(from: 2, through: 50, by: 5) {
            for when in ["\(place)", "\(place)+"] {
                try withFolder { folder throws in
                    let path = "\(folder)/store.db"
                    let output = try CrashWriter.run(
                        path, count: 12, under: Strace.inject("\(fault):when=\(when)"))
                    var log = CrashLog()
                    log.add(output)
                    refused += log.refused.count + log.unknown.count
                    try log.check(path, "\(fault) \(when)")
                    if when == "\(place)", !output.contains(where: { $0.hasPrefix("closed") }) {
                        let failed = output.filter { !$0.hasPrefix("ack") }
                        #expect(
                            output.count == 12 && failed.count <= 1, "\(when): \(output)")
                    }
                    #expect(!output.contains { $0.hasPrefix("other") }, "\(fault) \(when)")
                }
            }
        }
        #expect(refused > 0, "no fault met a transaction")
    }

    @Test(
        "after a failed sync the file is opened anew before it is written again",
        .enabled(if: Strace.works, "strace cannot trace here"))
    func reopensAfterFailedSync() throws {
        var isSeen = false
        for place in [12, 14, 16] {
            try withFolder { folder throws in
                let trace = "\(folder)/trace"
                _ = try CrashWriter.run(
                    "\(folder)/store.db", count: 12,
                    under: Strace.inject("fdatasync:error=EIO:when=\(place)", log: trace))
                let calls = try String(contentsOfFile: trace, encoding: .utf8)
                    .split(separator: "\n")
                guard let failed = calls.firstIndex(where: { $0.contains("(INJECTED)") }) else {
                    return
                }
                let next = calls[(failed + 1)...].first { call in
                    // The word in the lock file is no write to the store.
                    call.contains("openat") && call.contains("store.db\"")
                        || call.contains("pwrite64") && !call.contains("synced")
                }
                isSeen = isSeen || next != nil
                #expect(next?.contains("openat") == true, "\(next ?? "no call")")
            }
        }
        #expect(isSeen)
    }

    @Test(
        "after a sync that failed beside the store nothing is written, and the journal is kept",
        .enabled(if: Strace.works, "strace cannot trace here"))
    func failedMove() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            var log = CrashLog()
            for file in ["\(path)-wal", path] {
                // Each thread counts its own syncs, and the mover has most of the database's.
                let output = try CrashWriter.run(
                    path, count: 600, moves: true,
                    under: Strace.inject("fdatasync:error=EIO:when=5", file: file))
                log.add(output)
                let failed = output.filter { !$0.hasPrefix("ack") }
                if file != path {
                    #expect(output.count == 600 && failed.count < 4, "\(failed)")
                } else {
                    #expect(failed.count > 100, "\(failed)")
                    let journal = try FileManager.default.attributesOfItem(atPath: "\(path)-wal")
                    #expect(journal[.size] as? Int ?? 0 > 64 << 10, "the journal is gone")
                }
                try log.check(path, file)
            }
        }
    }

    @Test(
        "a commit for which a quota has no room is refused; after another error nothing is known",
        .enabled(if: Strace.works, "strace cannot trace here"), arguments: ["EDQUOT", "EIO"])
    func failedWrite(_ error: String) throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            var log = CrashLog()
            log.add(try CrashWriter.run(path, count: 3))
            log.add(
                try CrashWriter.run(
                    path, count: 40,
                    under: Strace.inject("pwrite64:error=\(error):when=20", file: "\(path)-wal")))
            #expect(log.refused.count == (error == "EDQUOT" ? 1 : 0), "\(log)")
            #expect(log.unknown.count == (error == "EDQUOT" ? 0 : 1), "\(log)")
            try log.check(path, error)
        }
    }

    @Test("a limit on the size of files refuses as a full disk does, and ends nothing")
    func fileSizeLimit() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            var log = CrashLog()
            log.add(try CrashWriter.run(path, count: 3))
            // In blocks of 512 bytes: some ten transactions of journal. Whoever runs the tests may
            // have the signal ignored.
            let limited = [
                "/usr/bin/env", "--default-signal=XFSZ", "/bin/sh", "-c",
                "ulimit -f 200; exec \"$@\"", "sh",
            ]
            log.add(try CrashWriter.run(path, count: 40, under: limited))
            #expect(!log.refused.isEmpty && log.unknown.isEmpty, "\(log)")
            #expect(log.acknowledged.count > 3, "\(log)")
            log.add(try CrashWriter.run(path, count: 3))
            try log.check(path, "after the limit")
        }
    }

    @Test(
        "a full disk refuses, shows nothing of it, and is usable again when space returns",
        .enabled(if: SmallDisk.works, "cannot mount a file system here"))
    func fullDisk() throws {
        try withFolder { folder throws in
            let disk = "\(folder)/disk"
            try #require(SmallDisk.mount(disk))
            defer { SmallDisk.unmount(disk) }
            // What is deleted to make space again.
            let ballast = "\(disk)/ballast"
            try Data(count: 200 << 10).write(to: URL(fileURLWithPath: ballast))
            let store = try SQLiteStore(path: "\(disk)/store.db", tables: Sample.tables)
            defer { store.close() }
            let reader = try store.reader()
            defer { reader.close() }
            var count = 0
            var error: StoreError?
            while error == nil, count < 1000 {
                error = caught { () throws(StoreError) in
                    try store.write { transaction throws(StoreError) in
                        for part in UInt8(0)..<4 {
                            let id = [UInt8(count >> 8), UInt8(count & 255), part]
                            let data = [UInt8](repeating: part, count: 1000)
                            try transaction.put(
                                Sample.thing, Sample.row("a", id, due: 1, data: data))
                        }
                    }
                }
                if error == nil { count += 1 }
            }
            guard case .full? = error else {
                Issue.record("\(String(describing: error)) and not full")
                return
            }
            for _ in 0..<3 {
                let again = caught { () throws(StoreError) in
                    let data = [UInt8](repeating: 1, count: 300_000)
                    try store.put(Sample.thing, Sample.row("b", [1], data: data))
                }
                if case .full? = again { continue }
                Issue.record("\(String(describing: again)) and not full")
            }
            #expect(try store.rows(Sample.thing).count == count * 4)
            #expect(try reader.rows(Sample.thing).count == count * 4)
            try FileManager.default.removeItem(atPath: ballast)
            try store.put(Sample.thing, Sample.row("b", [1]))
            #expect(try reader.rows(Sample.thing).count == count * 4 + 1)
        }
    }
}
