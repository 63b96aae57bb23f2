import APNsSimulator
import FoundationEssentials
import JSONTree
import RouseServer
import Scenario

/// Why a command did not do what it was asked: what is said, and how it ends. Every error that a
/// command lets out becomes one of these.
struct CommandRefusal {
    let words: String
    let status: Int32
    /// Whether `--json` has printed it already: a server's own refusal.
    private(set) var isPrinted = false

    /// Of words that are no command.
    init(_ error: UsageError) { (words, status) = ("\(error)", ExitStatus.usage) }

    init(_ error: any Error, of command: CommandDescription) {
        switch error {
        case let error as UsageError: (words, status) = ("\(error)", ExitStatus.usage)
        case let error as ConfigurationError:
            words = "\(error)"
            // A supervisor tries again after every status but that of a wrong setting.
            status = error.isOfTime ? ExitStatus.unavailable : ExitStatus.configuration
        case let error as AdminRefusal:
            words = command.inWordsOfOptions(error.description)
            (status, isPrinted) = (error.status, error.isPrinted)
        case let error as StoreCopy.Refusal: (words, status) = ("\(error)", ExitStatus.unavailable)
        case let error as UnusableLog: (words, status) = ("\(error)", ExitStatus.badData)
        case let error as SimulatorProgram.CannotWrite:
            (words, status) = ("\(error)", ExitStatus.cannotCreate)
        case let error as ServerError: (words, status) = ("\(error)", ExitStatus.unavailable)
        case let error as BackupError:
            words = "\(error)"
            status =
                switch error.kind {
                case .backup: ExitStatus.badData
                case .store: ExitStatus.unavailable
                case .output: ExitStatus.cannotCreate
                }
        default: (words, status) = (ErrorWords.of(error), ExitStatus.failure)
        }
    }

    /// In the form of the problems that a server answers, with the exit status in place of HTTP's.
    func json() throws -> String {
        let meaning = ExitStatus.meanings.first { $0.status == status }?.meaning ?? ""
        let problem = JSONValue.object([
            "type": .text("urn:rouse:problem:command"), "title": .text(meaning),
            "exit_status": .number(Int64(status)), "detail": .text(words),
        ])
        return String(decoding: try problem.bytes, as: UTF8.self)
    }
}
