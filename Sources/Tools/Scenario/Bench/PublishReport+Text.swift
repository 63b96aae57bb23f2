import FoundationEssentials
import Model

/// The report as people read it.
extension PublishBenchReport {
    private static let heads = [
        "kind", "server", "n", "per s", "answer p50", "p99", "worst", "device p50", "p99", "worst",
        "cpu", "disk", "RSS",
    ]

    public var text: String {
        var lines = [Self.heads]
        for row in rows {
            lines.append(Self.cells(of: row))
            guard let ratio = ratio(of: row) else { continue }
            lines.append(Self.cells(of: ratio))
        }
        let widths = Self.heads.indices.map { column in
            lines.map { $0[column].count }.max() ?? 0
        }
        var text = lines.map { line in
            line.enumerated().map { column, cell in
                let gap = String(repeating: " ", count: widths[column] - cell.count)
                return column < 2 ? cell + gap : gap + cell
            }.joined(separator: "  ")
        }.joined(separator: "\n")
        text += "\n\n" + rows.map { detail(of: $0) }.joined(separator: "\n")
        text += """


            Times are microseconds from the moment a publish was due until its answer, and until
            the device has it; of a login, a storm and devices that were behind, from dialling to
            being in sync. cpu is the server's microseconds of the processor, disk the bytes it
            caused to be written, both of one; of a fan-out, of one delivery; of idle devices, of
            one in a second; of those behind, of one entry, above what connecting costs. RSS is the
            server's memory at the end, in KiB. Figures are medians of the runs.
            """
        if !ratios.isEmpty { text += "\nx floor: the server's figure divided by the floor's." }
        if !isWhole { text += "\n* cut short: not all came to its end in time." }
        if let floorMissing { text += "\nno floor: \(floorMissing)" }
        if !peersMissing.isEmpty {
            text += "\nleft out: \(peersMissing.joined(separator: "; "))"
        }
        if isDebug { text += "\nA debug build: the times say nothing." }
        return text
    }

    private func ratio(of row: PublishRow) -> PublishRatio? {
        ratios.first {
            $0.kind == row.kind && $0.rate == row.rate && $0.target == row.target
        }
    }

    private static func name(_ row: PublishRow) -> String {
        if let entries = row.entries { return "\(row.kind) \(entries)" }
        if let rate = row.rate { return "\(row.kind) \(rate)/s" }
        return (row.group ?? row.inFlight).map { "\(row.kind) \($0)" } ?? row.kind
    }

    private static func short(_ value: Double?) -> String {
        guard let value else { return "-" }
        return value < 100 && value != value.rounded()
            ? value.text(decimals: 1) : value.text(decimals: 0)
    }

    private static func cells(of row: PublishRow) -> [String] {
        let kind = name(row)
        return [
            row.isCut ? "\(kind) *" : kind, row.target, "\(row.count)", short(row.perSecond),
            short(row.answer?.p50), short(row.answer?.p99), short(row.answer?.worst),
            short(row.delivery?.p50), short(row.delivery?.p99), short(row.delivery?.worst),
            short(row.processorMicroseconds), short(row.diskBytes),
            short((row.residentBytes / 1_024).rounded()),
        ]
    }

    private static func cells(of ratio: PublishRatio) -> [String] {
        func times(_ value: Double?) -> String {
            value.map { $0.text(decimals: 2) } ?? "-"
        }
        return [
            "", "x floor", "", times(ratio.perSecond), times(ratio.answerP50),
            times(ratio.answerP99), "", times(ratio.deliveryP50), times(ratio.deliveryP99), "",
            times(ratio.processor), times(ratio.diskBytes), times(ratio.residentBytes),
        ]
    }

    private func detail(of row: PublishRow) -> String {
        let (kind, short) = (Self.name(row), Self.short)
        let threads = row.threads.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .filter { $0.value >= 0.05 }
            .map { "\($0.key) \(short($0.value))" }.joined(separator: ", ")
        var text = "\(kind), \(row.target): cpu by thread \(threads)"
        if let last = row.last {
            text +=
                "; the last device has it after \(short(last.p50)) (p50), "
                + "\(short(last.p99)) (p99)"
        }
        if let above = ratio(of: row)?.processorAbove {
            text += "; \(short(above)) more than the floor"
        }
        if row.kind == "idle", let devices = row.group {
            let share = row.processorMicroseconds * Double(devices) / 10_000
            text += "; all of them \(share.text(decimals: 2)) % of a core"
        }
        text += "; this tool's \(short(row.toolMicroseconds))"
        if let bytes = row.residentBytesPerLogin {
            text += "; RSS grew by \(short(bytes.rounded())) B a login"
        }
        if let commits = row.commits, let read = row.rowsRead, let written = row.rowsWritten {
            text +=
                "; of one \(commits.text(decimals: 2)) commits, "
                + "\(short(read)) rows read, \(short(written)) written"
            if let reads = row.engineReads { text += ", \(short(reads)) reads of the store" }
        }
        if let statements = row.statements, let bytes = row.journalBytes {
            text += ", \(short(statements)) statements, \(short(bytes.rounded())) B of journal"
        }
        if let roundTrips = row.roundTripsPerCommit, let statements = row.statementsPerCommit {
            text +=
                "; of a commit \(short(roundTrips)) round trips, "
                + "\(short(statements)) statements"
        }
        return text
    }
}
