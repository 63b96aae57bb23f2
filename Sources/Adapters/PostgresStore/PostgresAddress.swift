import CPostgres
import Glibc

/// What libpq makes of an address, before anybody connects.
extension PostgresOptions {
    /// Why libpq cannot read the address; `nil`: it can. The address is not repeated: it may hold a
    /// password.
    public static func problem(in address: String) -> String? {
        switch parsed(address) {
        case .success: return nil
        case .failure(let fault): return fault.text
        }
    }

    /// The address without what libpq calls a secret; as it is if it has none.
    public static func withoutSecrets(_ address: String) -> String {
        guard !address.isEmpty else { return "" }
        guard case .success(let keywords) = parsed(address) else { return "(cannot be read)" }
        guard keywords.contains(where: \.isSecret) else { return address }
        return keywords.map { "\($0.name)=\($0.isSecret ? "***" : quoted($0.value))" }
            .joined(separator: " ")
    }

    private struct Keyword {
        let name: String
        let value: String
        let isSecret: Bool
    }

    private struct Fault: Error {
        let text: String
    }

    private static func parsed(_ address: String) -> Result<[Keyword], Fault> {
        guard !address.utf8.contains(0) else { return .failure(Fault(text: "holds a zero byte")) }
        if let problem = rouse_pg_load() {
            return .failure(Fault(text: "cannot be read: \(String(cString: problem))"))
        }
        var message: UnsafeMutablePointer<CChar>?
        guard let list = PQconninfoParse(address, &message) else {
            let said = message.map { String(cString: $0) } ?? "out of memory"
            PQfreemem(message)
            return .failure(Fault(text: hidden(address, in: said)))
        }
        defer { PQconninfoFree(list) }
        var keywords: [Keyword] = []
        var option = list
        while let name = option.pointee.keyword {
            if let value = option.pointee.val {
                // libpq marks what a form for people would not show with a star.
                let isSecret = option.pointee.dispchar.map { String(cString: $0) == "*" } ?? false
                keywords.append(
                    Keyword(
                        name: String(cString: name), value: String(cString: value),
                        isSecret: isSecret))
            }
            option += 1
        }
        return .success(keywords)
    }

    /// libpq quotes what it cannot read: only its words up to the first quote or colon are kept.
    private static func hidden(_ address: String, in said: String) -> String {
        let words = said.prefix { $0 != "\"" && $0 != ":" && !$0.isNewline }
        let text = words.split(separator: " ").joined(separator: " ")
        return text.isEmpty ? "libpq cannot read it" : "libpq cannot read it (\(text) ...)"
    }

    /// As libpq reads a value behind a keyword.
    private static func quoted(_ value: String) -> String {
        let isBare = !value.isEmpty && !value.contains { " '\\".contains($0) }
        if isBare { return value }
        var text = "'"
        for character in value {
            if character == "'" || character == "\\" { text.append("\\") }
            text.append(character)
        }
        return text + "'"
    }
}
