import EventLoop
import Glibc
import Testing

/// Runs `body` on a loop of this thread, then the loop until stop(), with a deadline that fails the
/// test. Closing the loop traps when a handle is left over, so every test checks that as well.
func withLoop(_ body: (Loop) throws -> Void) throws {
    let loop = try Loop()
    defer { loop.close() }
    var isLate = false
    let deadline = loop.timer { [unowned loop] in
        isLate = true
        loop.stop()
    }
    loop.updateNow()
    deadline.start(afterMilliseconds: 30_000)
    try body(loop)
    loop.run()
    #expect(!isLate, "the loop was not stopped before the deadline")
}

/// A directory of its own, removed with what is in it.
func withTemporaryDirectory(_ body: (String) throws -> Void) throws {
    var template = Array("/tmp/eventloop-XXXXXX".utf8CString)
    let path = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { rmdir(path) }
    try body(path)
}

/// The two places a stream test runs on.
enum Transport: String, CaseIterable, Sendable {
    case tcp, tcp6, unix
}

/// A listener and a way to connect to it.
struct Place {
    let listener: Listener
    let connect: (@escaping (Stream) -> Void) -> Void

    init(_ transport: Transport, loop: Loop, directory: String) throws {
        let failed: (StreamError) -> Void = { error in
            Issue.record("connect: \(error)")
            loop.stop()
        }
        switch transport {
        case .tcp, .tcp6:
            let host = transport == .tcp ? "127.0.0.1" : "::1"
            let listener = try Listener.listen(loop: loop, host: host, port: 0)
            let port = listener.port
            self.listener = listener
            connect = { done in
                Stream.connect(loop: loop, host: host, port: port) { result in
                    switch result {
                    case .success(let stream): done(stream)
                    case .failure(let error): failed(error)
                    }
                }
            }
        case .unix:
            let path = directory + "/socket"
            listener = try Listener.listen(loop: loop, path: path)
            connect = { done in
                Stream.connect(loop: loop, path: path) { result in
                    switch result {
                    case .success(let stream): done(stream)
                    case .failure(let error): failed(error)
                    }
                }
            }
        }
    }
}

/// Both ends of a new connection, given to `body` once both exist.
func withPair(
    _ transport: Transport, _ body: @escaping (Loop, _ client: Stream, _ server: Stream) -> Void
) throws {
    try withTemporaryDirectory { directory in
        try withLoop { loop in
            let place = try Place(transport, loop: loop, directory: directory)
            var client: Stream?
            var server: Stream?
            func check() {
                if let client, let server { body(loop, client, server) }
            }
            place.listener.onConnection = { stream in
                server = stream
                check()
            }
            place.connect { stream in
                client = stream
                check()
            }
        }
    }
}
