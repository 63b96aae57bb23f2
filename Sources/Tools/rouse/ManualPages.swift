import APNsSimulator
import FoundationEssentials
import RouseServer

/// `rouse man`: manual pages from the table of commands and the table of settings.
extension Rouse {
    static let manualCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "man", summary: "print a manual page, or write them all",
                operands: ["[COMMAND...]"],
                options: [
                    CommandOption(
                        "to", "DIR", "write all pages below DIR, as man1/rouse-serve.1"),
                    CommandOption("settings", "the page of the configuration file"),
                ],
                examples: [
                    "rouse man serve | man -l -",
                    "rouse man --to /usr/local/share/man",
                ],
                notes: """
                    The pages are made from the tables by which this program reads its command line
                    and its settings: write them anew after an update.
                    """),
            run: { try manual($0) })
    ]

    private static func manual(_ arguments: Arguments) throws -> Int32 {
        let words = arguments.operands
        if let directory = arguments.string("to") {
            guard words.isEmpty, !arguments.has("settings") else {
                throw UsageError("--to writes all pages: name none")
            }
            do {
                try writeAll(below: URL(fileURLWithPath: directory))
            } catch {
                throw AdminRefusal(
                    description: ErrorWords.of(error), status: ExitStatus.cannotCreate)
            }
            return ExitStatus.success
        }
        if arguments.has("settings") {
            guard words.isEmpty else { throw UsageError("--settings is a page of its own") }
            Terminal.print(ManualPage.settings.text, terminator: "")
            return ExitStatus.success
        }
        if words.isEmpty {
            Terminal.print(ManualPage.overview.text, terminator: "")
            return ExitStatus.success
        }
        guard let command = commands.first(where: { $0.words == words }) else {
            return offer(words)
        }
        Terminal.print(ManualPage(command).text, terminator: "")
        return ExitStatus.success
    }

    private static func writeAll(below directory: URL) throws {
        let pages = [ManualPage.overview, ManualPage.settings] + commands.map { ManualPage($0) }
        let files = FileManager.default
        for page in pages {
            let folder = directory.appendingPathComponent("man\(page.section)")
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appendingPathComponent("\(page.name).\(page.section)")
            try Data(page.text.utf8).write(to: file)
        }
        Terminal.print("\(pages.count) pages below \(directory.relativePath)")
    }
}

/// A manual page in the macros of man(7).
struct ManualPage {
    let name: String
    let section: Int
    private(set) var text: String

    private init(_ name: String, _ section: Int, summary: String) {
        self.name = name
        self.section = section
        text = ""
        let title = Self.escaped(name.uppercased())
        line(".TH \(title) \(section) \"\" \"rouse \(Rouse.version)\" \"Rouse\"")
        // Long words, such as addresses, would tear holes into a line made even.
        line(".ad l")
        line(".nh")
        heading("NAME")
        line("\(Self.escaped(name)) \\- \(Self.escaped(summary))")
    }

    init(_ command: Rouse.Command) {
        let description = command.description
        self.init(
            "rouse-" + description.words.joined(separator: "-"), 1, summary: description.summary)
        heading("SYNOPSIS")
        line(".B rouse \(Self.escaped(description.name))")
        let rest = (description.options.isEmpty ? [] : ["[options]"]) + description.operands
        if !rest.isEmpty { line(Self.guarded(Self.escaped(rest.joined(separator: " ")))) }
        if !description.notes.isEmpty {
            heading("DESCRIPTION")
            prose(description.notes)
        }
        if !description.options.isEmpty {
            heading("OPTIONS")
            for option in description.options {
                line(".TP")
                line(
                    ".B \\-\\-\(Self.escaped(option.name))"
                        + (option.value.map { " \\fI\(Self.escaped($0))\\fR" } ?? ""))
                line(Self.guarded(Self.escaped(option.help)))
            }
        }
        if !description.examples.isEmpty {
            heading("EXAMPLES")
            verbatim(description.examples)
        }
        heading("SEE ALSO")
        line(".BR rouse (1),")
        line(".BR rouse.conf (5)")
    }

    static var overview: ManualPage {
        var page = ManualPage("rouse", 1, summary: "keep every device in sync, and wake it")
        page.heading("SYNOPSIS")
        page.line(".B rouse")
        page.line(".I command")
        page.line("[options]")
        page.heading("DESCRIPTION")
        page.prose(
            """
            Rouse keeps every device of every user in sync, and wakes the ones that sleep. Each
            command has a page of its own: rouse-serve(1) for `rouse serve`.
            """)
        for group in Rouse.groups {
            page.line(".SS \"\(escaped(group.title))\"")
            for command in group.commands {
                page.line(".TP")
                page.line(".B \(escaped(command.description.name))")
                page.line(guarded(escaped(command.description.summary)))
            }
        }
        page.heading("EXIT STATUS")
        for (status, meaning) in ExitStatus.meanings {
            page.line(".TP")
            page.line(".B \(status)")
            page.line(guarded(escaped(meaning)))
        }
        page.heading("SEE ALSO")
        page.line(".BR rouse.conf (5)")
        return page
    }

    static var settings: ManualPage {
        var page = ManualPage("rouse.conf", 5, summary: "settings of a Rouse server")
        page.heading("DESCRIPTION")
        page.prose(Configuration.format)
        page.heading("SETTINGS")
        for setting in Configuration.settings {
            page.line(".TP")
            page.line(
                ".B \(escaped(setting.key))"
                    + (setting.value.isEmpty ? "" : " = \(escaped(setting.value))"))
            let range = setting.range.isEmpty ? "" : " (\(setting.range))"
            page.line(guarded(escaped(setting.help + range)))
        }
        page.heading("SEE ALSO")
        page.line(".BR rouse\\-serve (1)")
        return page
    }

    // MARK: Writing

    private mutating func line(_ line: String) { text += line + "\n" }

    private mutating func heading(_ name: String) { line(".SH \(name)") }

    /// Paragraphs, parted by empty lines. What is set in columns or indented stays as it is.
    private mutating func prose(_ text: String) {
        var paragraphs: [[Substring]] = [[]]
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.allSatisfy({ $0 == " " }) {
                paragraphs.append([])
            } else {
                paragraphs[paragraphs.count - 1].append(line)
            }
        }
        for lines in paragraphs where !lines.isEmpty {
            if lines.contains(where: { $0.contains("  ") }) {
                verbatim(lines.map(String.init))
            } else {
                line(".PP")
                for line in lines { self.line(Self.guarded(Self.escaped(String(line)))) }
            }
        }
    }

    private mutating func verbatim(_ lines: [String]) {
        line(".PP")
        line(".nf")
        for line in lines { self.line(Self.guarded(Self.escaped(line))) }
        line(".fi")
    }

    /// What roff would obey or change stands for itself.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\e"
            case "-": escaped += "\\-"
            case "'": escaped += "\\(aq"
            case "`": escaped += "\\(ga"
            case "^": escaped += "\\(ha"
            case "~": escaped += "\\(ti"
            case "\"": escaped += "\\(dq"
            default:
                if scalar.isASCII {
                    escaped.unicodeScalars.append(scalar)
                } else {
                    let digits = String(scalar.value, radix: 16, uppercase: true)
                    let zeros = String(repeating: "0", count: max(0, 4 - digits.count))
                    escaped += "\\[u\(zeros)\(digits)]"
                }
            }
        }
        return escaped
    }

    /// A line that begins with a dot would be a request.
    private static func guarded(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix(" ") ? "\\&" + line : line
    }
}
