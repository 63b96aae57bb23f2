// swift-format-ignore-file: AlwaysUseLowerCamelCase
// Of Apple's C library as Swift has it: the functions and macros that no header gives Swift as they
// are, with the types that Apple's module `Darwin` has them in.

@_exported import CDarwin

public var errno: Int32 {
    get { fatalError() }
    set { fatalError() }
}

public func open(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { fatalError() }

public func open(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
    fatalError()
}

public func fcntl(_ descriptor: Int32, _ command: Int32, _ value: Int32) -> Int32 { fatalError() }

public func fcntl(
    _ descriptor: Int32, _ command: Int32, _ pointer: UnsafeMutableRawPointer
) -> Int32 { fatalError() }

public var S_IFMT: mode_t { 0o170000 }
public var S_IFSOCK: mode_t { 0o140000 }
public var S_IFLNK: mode_t { 0o120000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFBLK: mode_t { 0o060000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFCHR: mode_t { 0o020000 }
public var S_IFIFO: mode_t { 0o010000 }
public var S_IWGRP: mode_t { 0o000020 }
public var S_IWOTH: mode_t { 0o000002 }

public var CLOCK_REALTIME: clockid_t { _CLOCK_REALTIME }
public var CLOCK_MONOTONIC: clockid_t { _CLOCK_MONOTONIC }
