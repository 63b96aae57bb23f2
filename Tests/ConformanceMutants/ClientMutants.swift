import Conformance
import Foundation

/// Clients with one defect each: the driver in Python of Tests/peers, changed in one place.
extension ConformanceMutants {
    static func runClients(_ options: Options) throws -> Int32 {
        guard let vectors = options.protocolFolder else {
            throw MutantError("--vectors is needed: Tests/peers lies in the same checkout")
        }
        let program = URL(fileURLWithPath: vectors)
            .appendingPathComponent("../../Tests/peers/mutant.py").standardizedFileURL.path
        guard FileManager.default.fileExists(atPath: program) else {
            throw MutantError("\(program) is not there")
        }
        let mutants = ClientExpectations.mutants.filter { mutant in
            options.only.isEmpty || options.only.contains { mutant.name.contains($0) }
        }
        guard !mutants.isEmpty else { throw MutantError("no mutant of that name") }
        // Without a defect everything passes: else nothing below means anything.
        let sound = try judged(program, "none", timers: false, options)
        guard sound.failed.isEmpty, sound.unclear.isEmpty else {
            throw MutantError(
                "without a defect these fail: \(sound.failed.sorted()), "
                    + "and nothing is known of \(sound.unclear)")
        }
        var wrong = 0
        for mutant in mutants {
            let caught = try judged(program, mutant.name, timers: mutant.needsTimers, options)
                .failed
            if options.printsData {
                let names = caught.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
                say("\(mutant.name): [\(names)]")
                continue
            }
            if !judge("\(mutant.name): \(mutant.what)", caught, mutant.catches) { wrong += 1 }
        }
        if options.printsData { return 0 }
        say(
            "\(mutants.count) mutants, \(mutants.count - wrong) caught as they must be, "
                + "\(wrong) not")
        return wrong == 0 ? 0 : 1
    }

    /// The cases that fail against a client with that defect, and those that could not be carried
    /// through.
    private static func judged(
        _ program: String, _ defect: String, timers: Bool, _ options: Options
    ) throws -> (failed: Set<String>, unclear: [String]) {
        let whole = try report(program, defect, timers: timers, options)
        var failed = Set(whole.results.filter { $0.verdict == .fail }.map(\.name))
        let names = whole.results.filter { $0.verdict == .inconclusive }.map(\.name)
        guard !names.isEmpty else { return (failed, []) }
        // On a busy machine a step may take longer than it has: once more, with less beside it.
        var calm = options
        calm.jobs = 4
        let again = try report(program, defect, timers: timers, calm, only: names)
        var unclear: [String] = []
        // A part of a name may mean other cases, too.
        for result in again.results where names.contains(result.name) {
            if result.verdict == .fail { failed.insert(result.name) }
            guard result.verdict == .inconclusive else { continue }
            unclear.append("\(result.name): \(result.reason ?? "")")
        }
        return (failed, unclear)
    }

    private static func report(
        _ program: String, _ defect: String, timers: Bool, _ options: Options,
        only: [String] = []
    ) throws -> ConformanceReport {
        var words = ["/usr/bin/python3", program, "--defect", defect]
        for name in ["host", "port", "name", "ca", "app", "user", "key", "kid", "dir"] {
            words += ["--\(name)", "{\(name)}"]
        }
        var conform = ClientConformanceOptions(client: words)
        conform.only = only
        conform.skipsTimers = !timers
        // Each case is a process of its own.
        conform.jobs = min(options.jobs, 8)
        return try ClientConformance.run(conform)
    }
}
