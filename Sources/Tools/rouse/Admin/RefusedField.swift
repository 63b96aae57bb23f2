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
        if let time = time(rest, ofField: field, as: name) { return "\(name) \(time)" }
        return rest.hasPrefix("must ") ? "\(name) \(rest)" : "\(name): \(rest)"
    }

    /// The numbers of a field that an option takes as a time, with their unit, as they are given.
    private func time(_ rest: Substring, ofField field: String, as name: String) -> String? {
        guard let size = Self.timeUnits.first(where: { field.hasSuffix($0.suffix) })?.size,
            options.contains(where: { "--\($0.name)" == name && $0.value == "TIME" }),
            let range = rest.wholeMatch(of: /must be a whole number from ([0-9]+) to ([0-9]+)/),
            let least = Int(range.1), let most = Int(range.2), most <= Int.max / size
        else { return nil }
        return "must be a time from \(Self.shown(least * size)) to \(Self.shown(most * size))"
    }

    /// Seconds in the largest unit of which they are a whole number.
    private static func shown(_ seconds: Int) -> String {
        let units = [(86_400, "d"), (3_600, "h"), (60, "m")]
        let unit = units.first { seconds > 0 && seconds % $0.0 == 0 } ?? (1, "s")
        return "\(seconds / unit.0)\(unit.1)"
    }

    private static let timeUnits = [
        (suffix: "_seconds", size: 1), (suffix: "_hours", size: 3_600),
        (suffix: "_days", size: 86_400),
    ]

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
