import CUV
import Glibc
import Synchronization

/// Signals of the process.
public enum Signals {
    /// The signals a server listens to.
    public enum Kind: Hashable, Sendable {
        case hangUp, interrupt, terminate, user1, user2

        var number: Int32 {
            switch self {
            case .hangUp: SIGHUP
            case .interrupt: SIGINT
            case .terminate: SIGTERM
            case .user1: SIGUSR1
            case .user2: SIGUSR2
            }
        }
    }

    /// Makes a write to a closed connection, and one beyond the size that the system lets a file
    /// have, an error instead of the end of the process. Every loop does it; harmless to repeat.
    public static func ignoreFailedWrites() {
        _ = signal(SIGPIPE, SIG_IGN)
        _ = signal(SIGXFSZ, SIG_IGN)
    }

    /// Makes SIGHUP wait for `takeHeldHangUp` instead of ending the process, and SIGUSR1 and
    /// SIGUSR2, which nobody watches, mean nothing. For a server that is told to read its settings
    /// again while it still starts; the first watch of SIGHUP takes its place.
    public static func holdHangUps() {
        // Made before the handler needs it: what makes it may take a lock.
        hangUpCame.store(false, ordering: .relaxed)
        _ = signal(SIGHUP) { _ in hangUpCame.store(true, ordering: .relaxed) }
        _ = signal(SIGUSR1, SIG_IGN)
        _ = signal(SIGUSR2, SIG_IGN)
    }

    /// Whether SIGHUP came while it was held; it counts as taken then.
    public static func takeHeldHangUp() -> Bool {
        hangUpCame.exchange(false, ordering: .relaxed)
    }

    /// Has these files removed where SIGHUP, SIGINT or SIGTERM ends the process, which they do as
    /// ever; none: of those named before, none any more. A signal that is ignored stays so. From
    /// one thread.
    public static func removeAtEnd(_ paths: [String]) {
        // What was named before is not let go of: the handler may be at it.
        guard !paths.isEmpty else { return removedAtEnd.store(0, ordering: .releasing) }
        let names = Names.allocate(capacity: paths.count + 1)
        for (place, path) in paths.enumerated() { names[place] = strdup(path) }
        names[paths.count] = nil
        removedAtEnd.store(UInt(bitPattern: names), ordering: .releasing)
        for kind in [Kind.hangUp, .interrupt, .terminate] {
            var standing = sigaction()
            sigaction(kind.number, nil, &standing)
            let handler = standing.__sigaction_handler.sa_handler
            guard unsafeBitCast(handler, to: Int.self) != unsafeBitCast(SIG_IGN, to: Int.self)
            else { continue }
            _ = signal(kind.number) { number in
                // Only what POSIX lets a handler call.
                var name = Names(bitPattern: removedAtEnd.load(ordering: .acquiring))
                while let path = name?.pointee {
                    unlink(path)
                    name = name?.advanced(by: 1)
                }
                signal(number, SIG_DFL)
                raise(number)
            }
        }
    }

    /// Calls `handler` on the loop for each arrival (several quick ones may become one). While
    /// watched, the signal's default effect is off.
    public static func watch(
        _ kind: Kind, on loop: Loop, _ handler: @escaping () -> Void
    ) throws(StreamError) -> SignalWatch {
        try SignalWatch(loop: loop, kind: kind, handler: handler)
    }
}

/// One watched signal; close() gives the signal its default effect back.
public final class SignalWatch: LoopHandle {
    private var handler: (() -> Void)?

    init(loop: Loop, kind: Signals.Kind, handler: @escaping () -> Void) throws(StreamError) {
        self.handler = handler
        super.init(loop: loop)
        try open(.watch, uv_signal_t.self) { [raw = loop.raw] in uv_signal_init(raw, $0) }
        guard let signal = handle(uv_signal_t.self) else { return }
        let status = uv_signal_start(signal, signalDidArrive, kind.number)
        guard status == 0 else {
            close()
            throw StreamError(.watch, status)
        }
    }

    override func willClose() { handler = nil }

    fileprivate func didArrive() { handler?() }
}

private let hangUpCame = Atomic(false)
/// C strings with a null behind them.
private typealias Names = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
/// Where they stand; 0: nowhere.
private let removedAtEnd = Atomic<UInt>(0)

private func signalDidArrive(_ signal: UnsafeMutablePointer<uv_signal_t>?, _ number: Int32) {
    owner(signal?.pointee.data, SignalWatch.self).didArrive()
}
