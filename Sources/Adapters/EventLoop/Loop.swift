import CUV
import Glibc

/// One event loop (libuv), bound to the thread that creates it: everything made on it is used only
/// there. The door for other threads is a Mailbox. `LoopThread` gives a loop a thread of its own;
/// a tool may also create one on the thread it has, `run` it and `close` it.
public final class Loop {
    /// The size of the one buffer that all streams of a loop read into.
    public static let readBufferSize = 64 * 1024

    let raw: UnsafeMutablePointer<uv_loop_t>
    let readBuffer: UnsafeMutableRawBufferPointer
    /// True from close() on: nothing new can be made.
    private(set) var isClosing = false
    private var isRunning = false
    private var isFreed = false
    private let thread: pthread_t
    private let idle: UnsafeMutablePointer<uv_idle_t>
    private var turns: [() -> Void] = []
    private var resolutions: [ObjectIdentifier: Resolution] = [:]
    private var lookUps: [String: LookUp] = [:]
    /// Questions to the system's resolver, since the loop was made. For tests.
    private(set) var lookUpsBegun = 0

    /// A loop of the calling thread. Fails when the process has no descriptor left. From then on
    /// writes that would end the process are errors (`Signals.ignoreFailedWrites`): a peer that
    /// goes away would end it by SIGPIPE.
    public init() throws(StreamError) {
        Signals.ignoreFailedWrites()
        Resolver.pool
        let memory = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
        let status = uv_loop_init(memory)
        guard status == 0 else {
            memory.deallocate()
            throw StreamError(.open, status)
        }
        raw = memory
        thread = pthread_self()
        readBuffer = .allocate(byteCount: Loop.readBufferSize, alignment: 16)
        idle = .allocate(capacity: 1)
        uv_idle_init(memory, idle)
        // No owner in the idle handle's data: the walk that closes all handles knows it by that.
        idle.pointee.data = nil
        memory.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        precondition(isFreed, "a loop must be closed before it is dropped")
    }

    /// Traps unless called on the loop's own thread: the check at each entry point of everything.
    @inline(__always)
    public func preconditionInside() {
        precondition(pthread_equal(pthread_self(), thread) != 0, "called outside the loop's thread")
    }

    /// Milliseconds of a clock that never goes back (CLOCK_MONOTONIC), read once per turn.
    public var now: UInt64 {
        preconditionInside()
        return uv_now(raw)
    }

    /// Reads the clock again, after long work inside one turn or before the first.
    public func updateNow() {
        preconditionInside()
        uv_update_time(raw)
    }

    /// Runs until stop() or until nothing is left that could wake the loop.
    public func run() {
        preconditionInside()
        precondition(!isRunning && !isClosing, "a loop runs once at a time, before its close")
        isRunning = true
        uv_run(raw, UV_RUN_DEFAULT)
        isRunning = false
    }

    /// Makes run() return after the current turn. Nothing is closed; run() may be called again.
    public func stop() {
        preconditionInside()
        uv_stop(raw)
    }

    /// A timer that is not started yet; it must be closed. `fire` runs on the loop.
    public func timer(_ fire: @escaping () -> Void) -> LoopTimer {
        LoopTimer(loop: self, fire: fire)
    }

    /// Runs `body` once, after the current callback has returned and before the loop waits again.
    /// Dropped without a call when the loop closes first.
    public func nextTurn(_ body: @escaping () -> Void) {
        preconditionInside()
        guard !isClosing else { return }
        if turns.isEmpty { uv_idle_start(idle, loopIsIdle) }
        turns.append(body)
    }

    fileprivate func runTurns() {
        let bodies = turns
        // What a body adds waits for the turn after: a body that re-adds itself starves nobody.
        turns = []
        for body in bodies where !isClosing { body() }
        if turns.isEmpty, !isClosing { uv_idle_stop(idle) }
    }

    /// Closes everything on the loop, calls what has to be called for that (`onClosed`, requests
    /// cancelled), and frees it. Ours to get right, so a handle that survives is a trap.
    ///
    /// A question that the system's resolver works on cannot be taken back and is not waited for:
    /// the memory that it writes to is left to it.
    public func close() {
        preconditionInside()
        precondition(!isRunning, "close a loop after its run() has returned")
        guard !isClosing else { return }
        isClosing = true
        turns = []
        for resolution in resolutions.values { resolution.cancel() }
        var status = UV_EBUSY.status
        // One round is enough unless a handler called loop.stop(): that ends a round early.
        for _ in 0..<1000 where status != 0 {
            uv_walk(raw, closeWalkedHandle, nil)
            uv_run(raw, lookUps.isEmpty ? UV_RUN_DEFAULT : UV_RUN_NOWAIT)
            status = uv_loop_close(raw)
            if status != 0, !lookUps.isEmpty, !hasHandles { break }
        }
        let isAsking = status != 0 && !lookUps.isEmpty && !hasHandles
        precondition(
            status == 0 || isAsking, "handles survived the close of their loop: \(status)")
        resolutions = [:]
        lookUps = [:]
        idle.deallocate()
        if !isAsking { raw.deallocate() }
        readBuffer.deallocate()
        isFreed = true
    }

    private var hasHandles: Bool {
        var hasOne = false
        uv_walk(raw, { _, hasOne in hasOne?.storeBytes(of: true, as: Bool.self) }, &hasOne)
        return hasOne
    }

    func add(_ resolution: Resolution) {
        resolutions[ObjectIdentifier(resolution)] = resolution
    }

    func remove(_ resolution: Resolution) {
        resolutions[ObjectIdentifier(resolution)] = nil
    }

    /// The one that is under way, or a new one.
    func lookUp(_ host: String) throws(StreamError) -> LookUp {
        if let lookUp = lookUps[host] { return lookUp }
        let lookUp = try LookUp(host, on: self)
        lookUps[host] = lookUp
        lookUpsBegun += 1
        return lookUp
    }

    func remove(_ lookUp: LookUp) {
        if lookUps[lookUp.host] === lookUp { lookUps[lookUp.host] = nil }
    }
}

private func loopIsIdle(_ idle: UnsafeMutablePointer<uv_idle_t>?) {
    guard let data = idle?.pointee.loop?.pointee.data else { preconditionFailure("no loop") }
    Unmanaged<Loop>.fromOpaque(data).takeUnretainedValue().runTurns()
}

private func closeWalkedHandle(
    _ handle: UnsafeMutablePointer<uv_handle_t>?, _ argument: UnsafeMutableRawPointer?
) {
    guard let handle, uv_is_closing(handle) == 0 else { return }
    guard let data = handle.pointee.data else {
        uv_close(handle, nil)
        return
    }
    Unmanaged<LoopHandle>.fromOpaque(data).takeUnretainedValue().close()
}
