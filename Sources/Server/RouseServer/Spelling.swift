/// What somebody meant who mistyped a name.
public enum Spelling {
    /// Longer words are nobody's slip of a finger.
    private static let lengthMax = 64

    /// The name that `word` is most like, if it is like one: a letter in three may be wrong, too
    /// many, missing or exchanged with its neighbour, or it is the beginning of that name alone.
    public static func nearest(_ word: String, among names: [String]) -> String? {
        var best: (name: String, mistakes: Int)?
        for name in names {
            guard let mistakes = mistakes(word, for: name) else { continue }
            if mistakes < best?.mistakes ?? .max { best = (name, mistakes) }
        }
        if let best { return best.name }
        let longer = names.filter { word.utf8.count >= 2 && $0.hasPrefix(word) }
        return longer.count == 1 ? longer[0] : nil
    }

    /// How many letters are wrong; `nil`: too many for a slip.
    public static func mistakes(_ word: String, for name: String) -> Int? {
        guard word.utf8.count <= lengthMax else { return nil }
        let count = distance(Array(word.utf8), Array(name.utf8))
        return count <= max(1, max(word.utf8.count, name.utf8.count) / 3) ? count : nil
    }

    /// Damerau's distance, with each place touched once (optimal string alignment).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var before: [Int] = []
        var above = Array(0...right.count)
        for (row, byte) in left.enumerated() {
            var line = [row + 1]
            for (column, other) in right.enumerated() {
                var least = min(
                    above[column] + (byte == other ? 0 : 1), above[column + 1] + 1,
                    line[column] + 1)
                if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
                    least = min(least, before[column - 1] + 1)
                }
                line.append(least)
            }
            (before, above) = (above, line)
        }
        return above[right.count]
    }
}
