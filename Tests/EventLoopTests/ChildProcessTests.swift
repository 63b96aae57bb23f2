import Glibc
import Testing

@testable import EventLoop

/// Other programs as children of this one.
@Suite struct ChildProcessTests {
    @Test("what a child is given it gives back, and how it ended is told")
    func echo() throws {
        let child = try ChildProcess(["cat"], input: .pipe, output: .pipe)
        #expect(child.isRunning)
        #expect(child.write(Array("one\n".utf8)))
        #expect(child.read() == Array("one\n".utf8))
        #expect(child.write(Array("two\n".utf8)))
        child.closeInput()
        #expect(child.readToEnd() == Array("two\n".utf8))
        #expect(child.waitForEnd() == .exit(0))
        #expect(!child.isRunning)
    }

    @Test("more than a pipe holds comes whole")
    func much() throws {
        let child = try ChildProcess(["head", "-c", "1000000", "/dev/zero"], output: .pipe)
        #expect(child.readToEnd() == [UInt8](repeating: 0, count: 1_000_000))
        #expect(child.waitForEnd() == .exit(0))
    }

    @Test("its status, the signal that ended it, and what it is not told")
    func ends() throws {
        #expect(try ChildProcess(["sh", "-c", "exit 7"]).waitForEnd() == .exit(7))
        let sleeper = try ChildProcess(["sleep", "1000"])
        sleeper.signal(SIGTERM)
        #expect(sleeper.waitForEnd() == .signal(SIGTERM))
        // Its number may be another program's by now.
        sleeper.signal(SIGKILL)
        sleeper.kill()
        #expect(sleeper.end == .signal(SIGTERM))
        let words = ["sh", "-c", "echo $NAME; read x || echo none"]
        let told = try ChildProcess(
            words, environment: ["NAME=anna"], input: .nothing, output: .pipe)
        #expect(String(decoding: told.readToEnd(), as: UTF8.self) == "anna\nnone\n")
    }

    @Test("a program that is not there is said with its name")
    func missing() {
        let failure = #expect(throws: ChildProcess.Failure.self) {
            try ChildProcess(["/no/such/program"])
        }
        #expect(failure?.description == "/no/such/program: No such file or directory")
        #expect(throws: ChildProcess.Failure.self) { try ChildProcess([]) }
    }

    @Test("a reader that is gone ends the writing, not the program")
    func brokenPipe() throws {
        Signals.ignoreFailedWrites()
        let child = try ChildProcess(["true"], input: .pipe)
        child.waitForEnd()
        #expect(!child.write([1]))
        // What this program ignores its children do not.
        let yes = try ChildProcess(
            ["sh", "-c", "yes | head -n 1; kill -PIPE $$"], output: .nothing)
        #expect(yes.waitForEnd() == .signal(SIGPIPE))
    }

    @Test("one that nobody asks after is forgotten when it has ended", arguments: ["0", "0.2"])
    func forgotten(_ seconds: String) throws {
        let number = try ChildProcess(["sleep", seconds]).identifier
        // Until then it is there, be it as a dead one.
        var looks = 0
        while kill(number, 0) == 0, looks < 12_000 {
            WorkThread.sleep(milliseconds: 5)
            looks += 1
        }
        #expect(kill(number, 0) != 0 && errno == ESRCH)
    }

    @Test("a child is the leader of a group of its own")
    func group() throws {
        let child = try ChildProcess(["sleep", "1000"])
        #expect(getpgid(child.identifier) == child.identifier)
        child.kill()
    }

    @Test("its errors stand at the end of a file")
    func file() throws {
        let folder = try #require(mkdtemp(strdup("/tmp/child-XXXXXX")))
        defer { free(folder) }
        let path = String(cString: folder) + "/log"
        for word in ["one", "two"] {
            try ChildProcess(["sh", "-c", "echo \(word) >&2"], errors: .file(path)).waitForEnd()
        }
        let read = try ChildProcess(["cat", path], output: .pipe)
        #expect(String(decoding: read.readToEnd(), as: UTF8.self) == "one\ntwo\n")
        unlink(path)
        rmdir(folder)
    }

    @Test("as many threads as asked for run, and all have when it returns")
    func threads() {
        let lock = Lock()
        nonisolated(unsafe) var count = 0
        WorkThread.run(onEachOf: 8, "counts") {
            WorkThread.sleep(milliseconds: 5)
            lock.withLock { count += 1 }
        }
        #expect(count == 8)
    }
}
