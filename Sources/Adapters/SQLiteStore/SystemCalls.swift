#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The system's functions whose names functions here have, too.
enum SystemCalls {
    static func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
        #if canImport(Darwin)
            Darwin.open(path, flags, mode)
        #else
            Glibc.open(path, flags, mode)
        #endif
    }

    static func rename(_ path: String, _ name: String) -> Int32 {
        #if canImport(Darwin)
            Darwin.rename(path, name)
        #else
            Glibc.rename(path, name)
        #endif
    }

    static func link(_ path: String, _ name: String) -> Int32 {
        #if canImport(Darwin)
            Darwin.link(path, name)
        #else
            Glibc.link(path, name)
        #endif
    }
}
