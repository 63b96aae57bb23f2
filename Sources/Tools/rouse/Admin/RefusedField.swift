extension CommandDescription {
    /// Options whose names do not follow from the field's of the admin API.
    private static let optionsOfFields = [
        "expiration_seconds": "expires", "canary.share": "canary",
        "canary.wait_seconds": "canary-wait", "push.title": "title", "push.body": "body",
        "push.texts": "text",
    ]
    /// Units that stand in a field's name, and with an option's value.
    private static let units = ["_seconds", "_ms"]

    /// What the admin API refused, with the option or operand in place of the field that the
    /// command filled with it: `start: must be ...` is `--start must be ...`. As it is where the
    /// field is of neither.
    func inWordsOfOptions(_ refusal: String) -> String {
        guard let colon = refusal.firstIndex(of: ":") else { return refusal }
        let field = String(refusal[..<colon])
        let rest = refusal[colon...].dropFirst().drop { $0 == " " }
        guard field.allSatisfy({ $0.isASCII && $0.isLowercase || $0 == "_" || $0 == "." }),
            let name = option(ofField: field) ?? operand(ofField: field)
        else { return refusal }
        return rest.hasPrefix("must ") ? "\(name) \(rest)" : "\(name): \(rest)"
    }

    private func option(ofField field: String) -> String? {
        let last = String(field.split(separator: ".").last ?? "")
        let bare = Self.units.first { last.hasSuffix($0) }.map { String(last.dropLast($0.count)) }
        let one = last.hasSuffix("s") ? String(last.dropLast()) : nil
        let names = [Self.optionsOfFields[field], last, bare, one].compactMap {
            $0?.split(separator: "_").joined(separator: "-")
        }
        return names.first { name in options.contains { $0.name == name } }.map { "--\($0)" }
    }

    private func operand(ofField field: String) -> String? {
        operands.first { $0 == field.uppercased() }
    }
}
