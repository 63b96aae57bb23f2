import Foundation
import Glibc

/// Another program, as a second opinion.
enum Child {
    static let python = "/usr/bin/python3"

    /// Whether Debian's Python has a JWT library (packages python3-jwt, python3-cryptography).
    static let hasJWT: Bool = (try? run(python, ["-c", "import jwt, cryptography"]))?.status == 0
    static let hasOpenSSL: Bool = (try? run("/usr/bin/openssl", ["version"]))?.status == 0

    static func run(
        _ path: String, _ arguments: [String], input: String = ""
    ) throws -> (status: Int32, output: Data) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let toChild = Pipe()
        let fromChild = Pipe()
        process.standardInput = toChild
        process.standardOutput = fromChild
        process.standardError = FileHandle.nullDevice
        try process.run()
        try toChild.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try toChild.fileHandleForWriting.close()
        let output = try fromChild.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, output)
    }
}
