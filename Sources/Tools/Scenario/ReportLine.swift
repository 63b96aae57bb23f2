import FoundationEssentials

extension Encodable {
    /// A report as programs read it: one JSON object in one line, names in snake case.
    var reportLine: String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // A rate over no time at all is no JSON number.
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        do {
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        } catch {
            preconditionFailure("a report that is no JSON: \(self): \(error)")
        }
    }
}
