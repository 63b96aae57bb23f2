import FoundationEssentials

/// What a server's process has used so far, read from outside (proc(5)).
struct ProcessUse {
    /// Nanoseconds of the processor by thread name; threads of one name are added up.
    var threads: [String: UInt64] = [:]
    var residentBytes = 0
    /// What it caused to be written to disk: journal, checkpoints and all. 0 on a file system in
    /// memory.
    var diskBytes: UInt64 = 0

    var nanoseconds: UInt64 { threads.values.reduce(0, +) }

    init() {}

    /// All together; one that has ended meanwhile, as a database's helper may, is not in it.
    init(of processes: [Int32]) {
        for use in processes.compactMap({ ProcessUse(of: $0) }) {
            threads.merge(use.threads) { $0 + $1 }
            residentBytes += use.residentBytes
            diskBytes += use.diskBytes
        }
    }

    /// `nil`: there is no such process.
    init?(of process: Int32) {
        let folder = "/proc/\(process)"
        guard let tasks = try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/task")
        else { return nil }
        for task in tasks {
            guard let name = Self.text("\(folder)/task/\(task)/comm"),
                let used = Self.processor("\(folder)/task/\(task)")
            else { continue }
            threads[name.split(separator: "\n").first.map(String.init) ?? "", default: 0] += used
        }
        residentBytes = ProcessMemory(of: process)?.resident ?? 0
        let line = (Self.text("\(folder)/io") ?? "").split(separator: "\n")
            .first { $0.hasPrefix("write_bytes:") }
        diskBytes = line.flatMap { UInt64($0.dropFirst(13)) } ?? 0
    }

    /// The process that started it; `nil`: there is no such process.
    static func parent(of process: Int32) -> Int32? {
        fields(of: "/proc/\(process)").flatMap { $0.count > 1 ? Int32($0[1]) : nil }
    }

    /// The fields of `stat` from the third on: the name before them may hold blanks and brackets.
    private static func fields(of place: String) -> [Substring]? {
        guard let stat = text("\(place)/stat"), let bracket = stat.lastIndex(of: ")") else {
            return nil
        }
        return stat[stat.index(after: bracket)...].split(separator: " ")
    }

    /// A kernel without scheduling statistics has clock ticks only, 100 a second.
    private static func processor(_ task: String) -> UInt64? {
        if let word = text("\(task)/schedstat")?.split(separator: " ").first,
            let nanoseconds = UInt64(word)
        {
            return nanoseconds
        }
        guard let fields = fields(of: task), fields.count > 12, let user = UInt64(fields[11]),
            let kernel = UInt64(fields[12])
        else { return nil }
        return (user + kernel) * 10_000_000
    }

    private static func text(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }

    /// What came since an earlier look.
    func since(_ earlier: ProcessUse) -> ProcessUse {
        var change = self
        for (name, used) in threads {
            let before = earlier.threads[name] ?? 0
            change.threads[name] = used > before ? used - before : 0
        }
        change.diskBytes = diskBytes > earlier.diskBytes ? diskBytes - earlier.diskBytes : 0
        return change
    }
}

/// What a server tells at `/metrics`, labels added up.
struct ServerMetrics {
    private var values: [String: Double] = [:]

    init() {}

    init(_ text: String) {
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let words = line.split(separator: " ")
            guard words.count >= 2, let value = Double(words[words.count - 1]) else { continue }
            values[String(line.prefix { $0 != "{" && $0 != " " }), default: 0] += value
        }
    }

    /// `nil`: it is not told.
    func change(_ name: String, since earlier: ServerMetrics) -> Double? {
        guard let value = values[name] else { return nil }
        return value - (earlier.values[name] ?? 0)
    }
}
