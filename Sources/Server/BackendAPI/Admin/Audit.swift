import Feed
import HTTP1
import Model
import Wake

/// Who asks for a change, as the audit log names them.
struct Caller: Sendable {
    let name: String
    /// From where; empty: from this machine.
    var address = ""
}

extension Call {
    /// Bytes of the path, and of what was sent, that a row holds.
    private static let actionBytesMax = 512
    private static let detailBytesMax = 1_024
    /// Members looked at, and bytes of their place: more of them would be cut away again.
    private static let membersMax = 256
    private static let placeBytesMax = 256

    /// What is written down before the call is carried out; `nil`: it changes nothing, or nobody
    /// keeps a log.
    ///
    /// - Parameter template: of the route: only campaigns can be tried out (`dry_run`).
    func auditNote(method: String, template: String) -> AuditNote? {
        guard let caller, method != "GET" else { return nil }
        let body = try? JSONText.document(request.body)
        if template.hasSuffix("/campaigns"), case .object(let members) = body,
            members[ExactText("dry_run")] == .flag(true)
        {
            return nil
        }
        let path = request.pathSegments.map(Self.visible).joined(separator: "/")
        return AuditNote(
            actor: caller.name, address: caller.address,
            action: "\(method) /\(path)".cut(to: Self.actionBytesMax),
            detail: Self.detail(of: body).cut(to: Self.detailBytesMax))
    }

    /// The members of a body by name, without what opens doors.
    private static func detail(of body: CustomValue?) -> String {
        guard let body else { return "" }
        var lines: [String] = []
        note(body, at: "", in: &lines)
        return lines.joined(separator: ", ")
    }

    private static func note(_ value: CustomValue, at place: String, in lines: inout [String]) {
        guard lines.count < membersMax else { return }
        let place = place.cut(to: placeBytesMax)
        switch value {
        case .object(let members):
            for (name, member) in members.sorted(by: { $0.key.text < $1.key.text }) {
                note(member, at: place.isEmpty ? name.text : "\(place).\(name.text)", in: &lines)
            }
        case .list(let items):
            for (index, item) in items.enumerated() {
                note(item, at: "\(place)[\(index)]", in: &lines)
            }
        case .null: lines.append("\(visible(place))=null")
        case .flag(let flag): lines.append("\(visible(place))=\(flag)")
        case .integer(let number): lines.append("\(visible(place))=\(number)")
        case .number(let digits): lines.append("\(visible(place))=\(digits)")
        case .text(let text):
            let isKept = !isSecret(place) && !isSecret(text: text)
            lines.append("\(visible(place))=\(isKept ? shown(text, place) : "(not kept)")")
        }
    }

    /// Keys, certificates, secrets of webhooks; of a place that was cut nobody knows.
    private static func isSecret(_ place: String) -> Bool {
        place.hasSuffix("\u{2026}")
            || ["pem", "secret", "token", "password"].contains { place.lowercased().contains($0) }
    }

    /// By what it looks like: it may stand where nobody expects it, in a body that is refused.
    private static func isSecret(text: String) -> Bool {
        text.contains("-----") || ["whs_", "rk_", "rct_"].contains { text.hasPrefix($0) }
            || holdsKey(text)
    }

    /// No topic or address has so many letters and digits in a row; each line of a key that was
    /// taken apart has.
    private static let keyRun = 40

    /// Whether it has a long run of what base64 or hexadecimal digits are written in. One that is
    /// of small letters alone, or of capitals, is a name: 30 bytes by chance make no such line.
    private static func holdsKey(_ text: String) -> Bool {
        var (run, hasSmall, hasCapital, hasOther) = (0, false, false, false)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): hasSmall = true
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): hasCapital = true
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                hasOther = true
            default:
                (run, hasSmall, hasCapital, hasOther) = (0, false, false, false)
                continue
            }
            run += 1
            if run >= keyRun, hasOther || (hasSmall && hasCapital) { return true }
        }
        return false
    }

    private static func shown(_ text: String, _ place: String) -> String {
        // The query of an address may hold the receiver's own secret.
        let text = place.hasSuffix("url") ? String(text.prefix { $0 != "?" }) : text
        return visible(text.cut(to: 128))
    }

    /// Control characters would draw lines of their own, and marks of direction turn them round.
    private static func visible(_ text: String) -> String {
        var visible = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: visible.append(" ")
            default: visible.append(scalar)
            }
        }
        return String(visible)
    }
}

extension String {
    /// So many bytes at most, whole characters.
    fileprivate func cut(to bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var text = ""
        var count = 3
        for character in self {
            count += character.utf8.count
            if count > bytes { break }
            text.append(character)
        }
        return text + "\u{2026}"
    }
}
