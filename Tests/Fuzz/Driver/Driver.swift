import Glibc

/// One target a process: `ROUSE_FUZZ_TARGET`. libFuzzer brings `main`.
private let target: FuzzTarget = {
    let name = getenv("ROUSE_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
        fatalError("ROUSE_FUZZ_TARGET names no target: \(name)")
    }
    return target
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    do throws(Violation) {
        try target.run(bytes)
    } catch {
        fatalError("\(target): \(error)")
    }
    return 0
}
