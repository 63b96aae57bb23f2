#if FAILPOINTS
    import Glibc
    import Synchronization

    extension Failpoint {
        /// Whether this build has failpoints.
        public static let areBuiltIn = true

        private struct Armed {
            let point: Failpoint
            let hit: Int
        }

        /// Set before any other thread of the server exists, read-only from then on.
        private nonisolated(unsafe) static var armed: Armed?
        private static let hits = Atomic<Int>(0)

        /// Arms the point that `text` names: `NAME` or `NAME@HIT`. Before the first thread that
        /// may come by a point.
        ///
        /// - Throws: there is no such point, or the hit is no number from 1.
        public static func arm(_ text: String) throws(FailpointError) {
            let words = text.split(
                separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
            guard let point = all.first(where: { $0.name == words[0] }) else {
                throw FailpointError(description: "there is no failpoint `\(words[0])`")
            }
            guard let hit = words.count > 1 ? Int(words[1]) : 1, hit > 0 else {
                throw FailpointError(description: "`\(text)`: the hit must be a number from 1")
            }
            armed = Armed(point: point, hit: hit)
        }

        /// Whether looking for what to `hit` is worth the while.
        public static var isArmed: Bool { armed != nil }

        /// The process has come to this point: kills it if the point is armed.
        public static func hit(_ point: Failpoint) {
            guard let armed, armed.point == point else { return }
            guard hits.add(1, ordering: .relaxed).newValue == armed.hit else { return }
            let line = Array("failpoint \(point.name): killed\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            kill(getpid(), SIGKILL)
            // The signal may be taken by another thread first.
            while true { pause() }
        }
    }
#else
    extension Failpoint {
        /// Whether this build has failpoints.
        public static let areBuiltIn = false

        /// This build has none to arm.
        public static func arm(_ text: String) throws(FailpointError) {
            throw FailpointError(description: "this build has no failpoints")
        }

        @inlinable public static var isArmed: Bool { false }

        @inlinable public static func hit(_ point: Failpoint) {}
    }
#endif
