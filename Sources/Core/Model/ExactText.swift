/// A text that names something. Two are the same only if their UTF-8 bytes are, and they sort by
/// these: as every engine of the store compares texts.
///
/// `String` compares by canonical equivalence: "é" of one code point and "é" of two are equal to
/// it. Peers choose names, so a `String` as a key would make two users one in memory who are two
/// on disk.
public struct ExactText: Hashable, Comparable, Sendable, CustomStringConvertible,
    ExpressibleByStringLiteral
{
    public let text: String

    @inlinable
    public init(_ text: String) { self.text = text }

    @inlinable
    public init(stringLiteral text: String) { self.init(text) }

    public var description: String { text }

    @inlinable
    public static func == (left: Self, right: Self) -> Bool { left.text.isExactly(right.text) }

    /// The bytes, not `String`'s hash: equivalent names all share that one, and there are so many
    /// of them that a peer could fill one bucket of a table.
    public func hash(into hasher: inout Hasher) {
        text.withBytes { bytes in
            var position = 0
            while position + 8 <= bytes.count {
                hasher.combine(bytes.word(at: position))
                position += 8
            }
            var word: UInt64 = 0
            for offset in position..<bytes.count { word = word << 8 | UInt64(bytes[offset]) }
            hasher.combine(word)
            hasher.combine(bytes.count)
        }
    }

    @inlinable
    public static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }
}

extension StringProtocol {
    /// Whether both are made of the same UTF-8 bytes; `==` takes equivalents for equal.
    @inlinable
    public func isExactly(_ other: some StringProtocol) -> Bool {
        // What has the same bytes is equivalent, and `==` finds out quickly what is not.
        self == other && utf8.elementsEqual(other.utf8)
    }
}

extension String {
    /// The same where both are whole strings, as names in rows are.
    public func isExactly(_ other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        return withBytes { one in other.withBytes { two in one.isSame(two) } }
    }

    /// The UTF-8 bytes side by side, for as long as `body` runs.
    @inline(__always)
    func withBytes<Answer>(_ body: (Span<UInt8>) -> Answer) -> Answer {
        // `utf8.span` is the same, and is only there from iOS 26 on.
        let answer = unsafe utf8.withContiguousStorageIfAvailable { unsafe body($0.span) }
        // On Apple's systems a text may be another's, kept in another form.
        return answer ?? Array(utf8).withBytes(body)
    }
}

extension [UInt8] {
    /// The bytes, for as long as `body` runs. An array's `span` is only there from iOS 26 on, a
    /// slice's from the beginning.
    @inline(__always)
    func withBytes<Answer>(_ body: (Span<UInt8>) -> Answer) -> Answer {
        let all = self[...]
        return body(all.span)
    }
}

extension Span<UInt8> {
    /// Whether the other has the same bytes; it has as many.
    @inline(__always)
    fileprivate func isSame(_ other: Self) -> Bool {
        var position = 0
        while position + 8 <= count {
            if word(at: position) != other.word(at: position) { return false }
            position += 8
        }
        for offset in position..<count where self[offset] != other[offset] { return false }
        return true
    }

    /// Eight bytes at once, the first of them highest; a position from which there are fewer stops
    /// the process. Put together byte by byte, they cost ten times as much.
    @inline(__always)
    func word(at position: Int) -> UInt64 {
        // Any eight bytes are a number, wherever they begin.
        UInt64(
            bigEndian: unsafe bytes.unsafeLoadUnaligned(
                fromByteOffset: position, as: UInt64.self))
    }
}

extension Sequence<String> {
    /// Whether one of the texts has exactly these bytes.
    @inlinable
    public func containsExactly(_ text: String) -> Bool { contains { $0.isExactly(text) } }
}

extension StringProtocol {
    /// Without the spaces and tabs at its ends.
    public var withoutSpaces: String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        let text = drop(while: isSpace)
        guard let last = text.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(text[...last])
    }
}
