import CUV
import Glibc

/// Another program, run as a child of this one by posix_spawn(3). It is the leader of a process
/// group of its own, so that an interrupt typed at this program's terminal does not reach it, and
/// takes signals as if nobody had changed that. Of one thread, but for `kill` and `isRunning`.
public final class ChildProcess: @unchecked Sendable {
    // @unchecked: what changes is guarded by `lock`.
    /// Where one of the child's three streams leads.
    public enum Place: Equatable, Sendable {
        /// To where this program's own stream leads.
        case inherited
        /// To /dev/null.
        case nothing
        /// The end of a file, which is made if it is not there.
        case file(String)
        /// A pipe, whose other end this program holds.
        case pipe
    }

    /// How it ended.
    public enum End: Equatable, Sendable {
        /// By itself, with this status.
        case exit(Int32)
        /// By this signal.
        case signal(Int32)
    }

    /// The program could not be run.
    public struct Failure: Error, CustomStringConvertible, Sendable {
        /// The program, and the system's words.
        public let description: String
    }

    /// The child.
    public let identifier: Int32
    private let lock = Lock()
    private var ended: End?
    private var inputEnd: Int32
    private var outputEnd: Int32

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - words: the program, which is looked for on PATH if its name has no slash, and its
    ///     arguments.
    ///   - environment: its variables, `NAME=value` each; `nil`: those of this program.
    /// - Throws: `Failure`; nothing was started.
    public init(
        _ words: [String], environment: [String]? = nil, input: Place = .inherited,
        output: Place = .inherited, errors: Place = .inherited
    ) throws {
        guard let program = words.first else { throw Failure(description: "no program is named") }
        var streams = ChildStreams()
        defer { streams.close() }
        try streams.add(input, as: STDIN_FILENO)
        try streams.add(output, as: STDOUT_FILENO)
        try streams.add(errors, as: STDERR_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var all = sigset_t()
        sigfillset(&all)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP
        posix_spawnattr_setflags(&attributes, Int16(flags))
        let arguments = CStrings(words)
        let variables = environment.map(CStrings.init)
        var child = pid_t()
        let status = posix_spawnp(
            &child, program, &streams.actions, &attributes, arguments.pointers,
            variables?.pointers ?? environ)
        guard status == 0 else {
            throw Failure(description: "\(program): \(String(cString: strerror(status)))")
        }
        identifier = child
        (inputEnd, outputEnd) = streams.takeOurEnds()
    }

    /// It goes on, if it runs; the system forgets it when it has ended.
    deinit {
        closeInput()
        closeOutput()
        guard reap(waiting: false) == nil else { return }
        let identifier = identifier
        WorkThread.start("reap") { while waitpid(identifier, nil, 0) < 0, errno == EINTR {} }
    }

    /// This program's end of the child's standard input. -1: it is no pipe, or was closed.
    public var input: Int32 { inputEnd }

    /// This program's end of the child's standard output. -1: it is no pipe, or was closed.
    public var output: Int32 { outputEnd }

    /// Ends the child's standard input, if that is a pipe.
    public func closeInput() {
        if inputEnd >= 0 { close(inputEnd) }
        inputEnd = -1
    }

    private func closeOutput() {
        if outputEnd >= 0 { close(outputEnd) }
        outputEnd = -1
    }

    /// What the child has written since it was asked last; waits for something. Empty: it has
    /// closed its output.
    public func read(max: Int = 65_536) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: max) { buffer, filled in
            var count = 0
            repeat {
                count = Glibc.read(outputEnd, buffer.baseAddress, max)
            } while count < 0 && errno == EINTR
            filled = Swift.max(0, count)
        }
    }

    /// All that the child writes until it closes its output.
    public func readToEnd() -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let some = read()
            if some.isEmpty { return all }
            all += some
        }
    }

    /// Writes into the child's standard input. False: it reads no more.
    public func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(inputEnd, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR else { return false }
                continue
            }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Whether it has not ended yet.
    public var isRunning: Bool { reap(waiting: false) == nil }

    /// How it ended. `nil`: it runs.
    public var end: End? { reap(waiting: false) }

    /// Sends a signal, if it runs.
    public func signal(_ number: Int32) {
        // An identifier is not given to another process before its end was taken notice of, which
        // happens under the same lock.
        lock.withLock {
            if ended == nil { _ = Glibc.kill(identifier, number) }
        }
    }

    /// Ends it at once, and waits for the end.
    public func kill() {
        signal(SIGKILL)
        waitForEnd()
    }

    /// Waits for its end.
    @discardableResult
    public func waitForEnd() -> End {
        // Once that was taken notice of, the number may be another child's.
        if let end { return end }
        // Not under the lock: others may ask, and may send a signal, meanwhile.
        var information = siginfo_t()
        var status: Int32 = 0
        repeat {
            status = waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT)
        } while status < 0 && errno == EINTR
        return reap(waiting: true) ?? .exit(0)
    }

    private func reap(waiting: Bool) -> End? {
        lock.withLock {
            if let ended { return ended }
            var status: Int32 = 0
            var found: pid_t = 0
            repeat {
                found = waitpid(identifier, &status, waiting ? 0 : WNOHANG)
            } while found < 0 && errno == EINTR
            guard found != 0 else { return nil }
            // <0: somebody else has taken notice of the end, and knows the status.
            let signal = status & 0x7f
            ended = found < 0 || signal == 0 ? .exit((status >> 8) & 0xff) : .signal(signal)
            return ended
        }
    }
}

/// The streams of a child, before it is started.
private struct ChildStreams {
    var actions = posix_spawn_file_actions_t()
    private var theirEnds: [Int32] = []
    private var ourInput: Int32 = -1
    private var ourOutput: Int32 = -1

    init() { posix_spawn_file_actions_init(&actions) }

    mutating func add(_ place: ChildProcess.Place, as stream: Int32) throws {
        let reads = stream == STDIN_FILENO
        switch place {
        case .inherited: return
        case .nothing:
            posix_spawn_file_actions_addopen(
                &actions, stream, "/dev/null", reads ? O_RDONLY : O_WRONLY, 0)
        case .file(let path):
            let flags = reads ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND
            posix_spawn_file_actions_addopen(&actions, stream, path, flags, 0o644)
        case .pipe:
            var ends: [Int32] = [0, 0]
            // Closed in every child but for the copy that is its stream.
            let status = uv_pipe(&ends, 0, 0)
            guard status == 0 else {
                throw ChildProcess.Failure(
                    description: "no pipe: \(String(cString: uv_strerror(status)))")
            }
            let theirs = reads ? ends[0] : ends[1]
            if reads { ourInput = ends[1] } else { ourOutput = ends[0] }
            theirEnds.append(theirs)
            posix_spawn_file_actions_adddup2(&actions, theirs, stream)
        }
    }

    mutating func takeOurEnds() -> (input: Int32, output: Int32) {
        defer { (ourInput, ourOutput) = (-1, -1) }
        return (ourInput, ourOutput)
    }

    mutating func close() {
        for end in theirEnds + [ourInput, ourOutput] where end >= 0 { Glibc.close(end) }
        posix_spawn_file_actions_destroy(&actions)
    }
}

/// Texts as C takes them, with a null pointer at their end.
private final class CStrings {
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ texts: [String]) {
        count = texts.count
        pointers = .allocate(capacity: count + 1)
        for (index, text) in texts.enumerated() { (pointers + index).initialize(to: strdup(text)) }
        (pointers + count).initialize(to: nil)
    }

    deinit {
        for index in 0..<count { free(pointers[index]) }
        pointers.deinitialize(count: count + 1)
        pointers.deallocate()
    }
}
