import Crypto
import Foundation
import PushPool
import Wake

@testable import PushGateway
@testable import RouseServer

/// What is accepted is written as text that is accepted as the same.
func fuzzConfiguration(_ bytes: [UInt8]) throws(Violation) {
    let text = String(decoding: bytes, as: UTF8.self)
    let read = try? Configuration(text: text, name: "f", environment: [:])
    _ = try? Configuration(text: "", name: "f", environment: ["ROUSE_STORE_PATH": text])
    _ = try? Configuration(text: "", name: "f", environment: [:], overrides: [text])
    guard var read else { return }
    for line in [read.storePath, read.listenHost, read.nodeName] {
        try hold(!line.utf8.contains(0x0A), "a value of two lines: \(line)")
    }
    // Passwords are not shown, so an address may be shown as another one.
    read.postgres = ""
    let again = try? Configuration(text: read.text, name: "f", environment: [:])
    try hold(again == read, "shown as\n\(read.text)")
}

/// The first byte: whether the rest is a token or the JSON inside one.
func fuzzToken(_ bytes: [UInt8]) throws(Violation) {
    guard let first = bytes.first else { return }
    let rest = Array(bytes.dropFirst())
    if first & 1 == 0 {
        guard let token = try? CompactToken(rest, maximumBytes: 1_024) else { return }
        try hold(rest.count <= 1_024, "a long token was taken")
        // Two texts of one token would be two names of one thing.
        let text = [token.headerJSON, token.payloadJSON, token.signature].map(encode)
            .joined(separator: ".")
        try hold(Array(text.utf8) == rest, "another text for \(text)")
        try checkMembers(token.payloadJSON)
    } else {
        try checkMembers(rest)
    }
}

private func encode(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
        .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
}

/// Foundation, where it reads the same object, finds the same strings in it.
private func checkMembers(_ json: [UInt8]) throws(Violation) {
    guard let members = try? TokenMembers(json: json) else { return }
    _ = [members.integer("exp"), members.integer("nbf"), members.integer("iat")]
    _ = members.strings("aud")
    guard json.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "\\") }),
        let object = try? JSONSerialization.jsonObject(with: Data(json)),
        let dictionary = object as? [String: Any]
    else { return }
    for (name, value) in dictionary {
        try hold(members[name] != nil, "no member \(name)")
        guard let text = value as? String else { continue }
        try hold(members.string(name) == text, "\(name) is \(text), not \(members[name] as Any)")
    }
}

/// A status, and a body or the debug data of a GOAWAY.
func fuzzPushAnswer(_ bytes: [UInt8]) throws(Violation) {
    guard bytes.count >= 2 else { return }
    let status = Int(bytes[0]) << 2 | Int(bytes[1] & 3)
    let body = Array(bytes.dropFirst(2))
    let response = PushResponse(status: status, body: body)
    let goAway = PushResponse.reason(goAway: body)
    for reason in [response.reason, goAway] {
        try hold(
            reason.utf8.count <= 64
                && reason.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) },
            "a reason for the log: \(reason.debugDescription)")
    }
    for failures in [0, 1, UInt64(bytes[1]), .max] {
        let answer = PushAnswer(
            status: response.status, reason: response.reason, timestamp: response.timestamp,
            failures: RefusalCount(faults: failures, unknown: failures))
        if case .retryLater(let after, _) = answer {
            try hold((1...15 * 60_000).contains(after), "a retry after \(after)")
        }
        try hold((answer == .accepted) == (status == 200), "\(status) is \(answer)")
    }
    _ = PushResponse.label(response.reason)
}
