import CUV

/// One timer of a loop. Made by `Loop.timer`; closed by its owner. Many deadlines belong behind one
/// timer (a C handle each costs 150 bytes): this is for the few.
public final class LoopTimer: LoopHandle {
    private var fire: (() -> Void)?

    init(loop: Loop, fire: @escaping () -> Void) {
        self.fire = fire
        super.init(loop: loop)
        // uv_timer_init cannot fail; a closing loop makes a timer that is closed already.
        try? open(.open, uv_timer_t.self) { [raw = loop.raw] in uv_timer_init(raw, $0) }
    }

    /// Fires after so many milliseconds from the loop's `now` (not before; later if the loop is
    /// busy), then every `repeatingMilliseconds` unless 0. Starting again replaces the old start.
    /// Timers with the same deadline fire in the order of their starts. Nothing once closed.
    public func start(afterMilliseconds: UInt64, repeatingMilliseconds: UInt64 = 0) {
        loop.preconditionInside()
        guard let timer = handle(uv_timer_t.self) else { return }
        uv_timer_start(timer, timerDidFire, afterMilliseconds, repeatingMilliseconds)
    }

    /// Takes the start back; start() may follow.
    public func stop() {
        loop.preconditionInside()
        guard let timer = handle(uv_timer_t.self) else { return }
        uv_timer_stop(timer)
    }

    /// Whether a start waits to fire.
    public var isStarted: Bool {
        loop.preconditionInside()
        guard let handle = handle(uv_handle_t.self) else { return false }
        return uv_is_active(handle) != 0
    }

    override func willClose() { fire = nil }

    fileprivate func didFire() { fire?() }
}

private func timerDidFire(_ timer: UnsafeMutablePointer<uv_timer_t>?) {
    owner(timer?.pointee.data, LoopTimer.self).didFire()
}
