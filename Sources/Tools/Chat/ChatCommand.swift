/// What a person asks for with a line.
public enum ChatCommand: Equatable, Sendable {
    case say(String)
    case help
    case list
    /// By its number in the list, by its title or by the name of who is in it.
    case open(String)
    case new(users: [String], title: String?)
    case edit(String)
    case delete
    case older
    case sleep, wake, kill, start, lock
    /// A notification, the newest one being 1.
    case tap(Int)
    case quit
    /// What was wrong, in words.
    case mistake(String)

    /// The words, and what each does: help is made from it.
    public static let table: [(form: String, does: String)] = [
        ("/new USER.. [: TITLE]", "begin a conversation"),
        ("/open N|NAME", "open one"),
        ("/list", "leave it, show all"),
        ("/edit TEXT", "change your last message"),
        ("/delete", "delete it for everyone"),
        ("/older", "fetch older messages"),
        ("PageUp, PageDown", "see what is above, and below"),
        ("/lock", "lock the phone: the app has 30 s"),
        ("/sleep", "the system suspends the app"),
        ("/kill", "the system ends the app"),
        ("/wake", "wake it as a silent push does"),
        ("/start", "unlock, and open the app"),
        ("/tap [N]", "tap a notification"),
        ("/help", "these lines"),
        ("/quit", "leave"),
    ]

    public init(_ line: String) {
        guard line.hasPrefix("/") else {
            self = .say(line)
            return
        }
        // Two slashes begin a text with one.
        guard !line.hasPrefix("//") else {
            self = .say(String(line.dropFirst()))
            return
        }
        guard !line.contains(where: \.isNewline) || line.hasPrefix("/edit ") else {
            self = .mistake("a command is one line; // begins a text with /")
            return
        }
        let words = line.dropFirst().split(separator: " ", maxSplits: 1)
        let rest = words.count > 1 ? words[1].drop { $0 == " " } : ""
        let name = words.first.map(String.init) ?? ""
        self = Self.command(name, String(rest))
    }

    private static func command(_ name: String, _ rest: String) -> ChatCommand {
        switch name {
        case "help", "h", "?": return .help
        case "list", "l": return .list
        case "open", "o":
            return rest.isEmpty ? .mistake("/open which? /list shows them") : .open(rest)
        case "new": return new(rest)
        case "edit": return rest.isEmpty ? .mistake("/edit TEXT: what shall it say?") : .edit(rest)
        case "delete": return .delete
        case "older": return .older
        case "sleep": return .sleep
        case "wake": return .wake
        case "kill": return .kill
        case "start", "unlock": return .start
        case "lock": return .lock
        case "tap":
            if rest.isEmpty { return .tap(1) }
            guard let number = Int(rest), number > 0 else {
                return .mistake("/tap N: a number as beside the notification")
            }
            return .tap(number)
        case "quit", "q", "exit": return .quit
        default: return .mistake("there is no /\(name); /help shows what there is")
        }
    }

    private static func new(_ rest: String) -> ChatCommand {
        let halves = rest.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let users = (halves.first ?? "").split(separator: " ").map(String.init)
        guard !users.isEmpty else { return .mistake("/new USER.. [: TITLE]: with whom?") }
        let title = halves.count > 1 ? String(halves[1].drop { $0 == " " }) : ""
        return .new(users: users, title: title.isEmpty ? nil : title)
    }
}
