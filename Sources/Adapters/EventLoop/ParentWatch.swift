import Glibc

/// Notices the end of the process that holds the other end of standard input, however it ends:
/// a child that was started for one purpose does not outlive it.
public final class ParentWatch {
    private var watch: DescriptorWatch?

    /// Calls `ended` once on the loop when standard input is at its end.
    public init(loop: Loop, ended: @escaping () -> Void) {
        watch = try? DescriptorWatch(
            loop: loop, descriptor: 0,
            onReady: { [unowned self] _ in
                var byte: UInt8 = 0
                // Nothing is said on it; only its end counts.
                guard read(0, &byte, 1) == 0 else { return }
                self.watch?.stop()
                ended()
            }, onFailure: { _ in ended() })
        watch?.start(.readable)
    }
}
