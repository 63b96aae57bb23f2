import Foundation
import Testing
import Wire

/// Protocol/registry.md is the one list; the code must say the same.
@Suite struct RegistryTests {
    /// The cells of all table rows whose first cell is a number.
    private func rows() throws -> [[String]] {
        let url = Vectors.root.appending(path: "Protocol/registry.md")
        return try String(contentsOf: url, encoding: .utf8).split(separator: "\n").filter {
            $0.hasPrefix("| ") && ($0.dropFirst(2).first?.isNumber ?? false)
        }.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test func frameTypes() throws {
        let listed = try rows().filter { $0[0].hasPrefix("0x") }.map { "\($0[0]) \($0[1])" }
        #expect(
            listed
                == FrameType.allCases.map {
                    "0x" + ($0.rawValue < 16 ? "0" : "")
                        + String($0.rawValue, radix: 16, uppercase: true) + " " + $0.name
                })
    }

    @Test func codes() throws {
        let listed = try rows().filter { $0[0].count == 4 && !$0[0].hasPrefix("0x") }
        #expect(
            listed.map { "\($0[0]) \($0[1]) \($0[2])" }
                == Code.allCases.map { "\($0.rawValue) \($0.name) \(name($0.retryClass))" })
    }

    @Test func retryClasses() throws {
        let listed = try rows().filter { $0[0].count == 1 }
        #expect(
            listed.map { "\($0[0]) \($0[1])" }
                == RetryClass.allCases.map { "\($0.rawValue) \(name($0))" })
    }

    /// A class that says "not before the time given" and one that asks for a login must not be
    /// mixed up by a new code: groups bound what is sensible.
    @Test func classesFitTheirGroups() {
        for code in Code.allCases {
            switch code.rawValue / 1000 {
            case 1: #expect([.retry, .retryAfter].contains(code.retryClass), "\(code.name)")
            case 2: #expect([.reauthenticate, .none].contains(code.retryClass), "\(code.name)")
            case 3: #expect([.resync, .none].contains(code.retryClass), "\(code.name)")
            case 4: #expect(code.retryClass == .none, "\(code.name)")
            case 5: #expect(code.retryClass != .resync, "\(code.name)")
            default: Issue.record("\(code) is in no group")
            }
        }
    }

    private func name(_ retryClass: RetryClass) -> String {
        retryClass == .retryAfter ? "retry_after" : "\(retryClass)"
    }
}
