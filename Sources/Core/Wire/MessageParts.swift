/// The parts of a message's state: as values, or in the bytes that a store keeps, which become
/// values only when somebody looks at one. A server passes on what it never looks at.
///
/// Invariant: `stored` holds the canonical encoding of field 4 of `MessageState`.
enum MessageParts: Equatable, Sendable {
    case values([Part])
    case stored([UInt8], StoredParts)

    var values: [Part] {
        switch self {
        case .values(let parts): parts
        case .stored(let bytes, _): Self.read(bytes)
        }
    }

    var count: Int {
        switch self {
        case .values(let parts): parts.count
        case .stored(_, let found): found.count
        }
    }

    var approximateBytes: Int {
        switch self {
        case .values(let parts): parts.approximateBytes
        case .stored(_, let found): found.approximateBytes
        }
    }

    /// `nil`: they are values.
    var encoded: [UInt8]? {
        if case .stored(let bytes, _) = self { bytes } else { nil }
    }

    static func == (left: Self, right: Self) -> Bool {
        if case .stored(let left, _) = left, case .stored(let right, _) = right {
            return left == right
        }
        return left.values == right.values
    }

    private static func read(_ bytes: [UInt8]) -> [Part] {
        var message = MessageState()
        var reader = BodyReader(bytes, 0..<bytes.count, elements: bytes.count)
        do throws(WireError) {
            try message.merge(from: &reader)
        } catch {
            preconditionFailure("stored parts were checked and are no parts: \(error)")
        }
        return message.parts
    }
}

extension [Part] {
    /// Encoded size, a little overestimated: tags and lengths count as 16 bytes a part, and the
    /// numbers of a reference as 64.
    public var approximateBytes: Int {
        reduce(0) { sum, part in
            let reference = part.reference.map { 64 + $0.url.utf8.count + $0.digest.count } ?? 0
            return sum + 16 + part.mimeType.utf8.count + part.content.count + reference
        }
    }
}

extension MessageState {
    /// With parts as `MessageState(parts:).encoded` gave them, checked and not decoded. Bytes
    /// that are no canonical encoding of parts are read as any body is: an error tells that they
    /// are none.
    public init(storedParts bytes: [UInt8]) throws(WireError) {
        if let found = StoredParts(bytes) {
            self.init()
            content = .stored(bytes, found)
        } else {
            try self.init(encoded: bytes)
        }
    }

    /// How many parts there are.
    public var partCount: Int { content.count }

    /// Encoded size of the parts, a little overestimated.
    public var partsApproximateBytes: Int { content.approximateBytes }
}

extension MessageState: CustomReflectable {
    /// The fields of the schema, however the parts are held.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "position": position, "sender": sender, "sentMs": sentMs, "parts": parts,
                "push": push as Any, "editedMs": editedMs, "hints": hints as Any,
            ], displayStyle: .struct)
    }
}

/// What a look over encoded parts finds, if they are what this version writes: fields in rising
/// order and none with its default, lengths in the fewest bytes, texts in ASCII.
struct StoredParts: Equatable, Sendable {
    private(set) var count = 0
    private(set) var approximateBytes = 0

    init?(_ bytes: [UInt8]) {
        var scan = Scan(bytes: bytes)
        while scan.position < bytes.count {
            guard scan.tag() == Self.delimited(4), let part = scan.range(bytes.count),
                let size = scan.part(part.upperBound)
            else { return nil }
            count += 1
            approximateBytes += 16 + size
        }
        guard count <= FrameLimits.afterWelcome.elements else { return nil }
    }

    private static func delimited(_ number: UInt8) -> UInt8 { number << 3 | 2 }
    private static func varint(_ number: UInt8) -> UInt8 { number << 3 }

    /// Invariant: `position` is at most the end of the part it is in.
    private struct Scan {
        let bytes: [UInt8]
        var position = 0

        /// All field numbers here take one byte.
        mutating func tag() -> UInt8 {
            defer { position += 1 }
            return bytes[position]
        }

        /// Not zero, in the fewest bytes, and at most 63 bits; otherwise `nil`.
        mutating func number(_ end: Int) -> UInt64? {
            var value: UInt64 = 0
            var shift: UInt64 = 0
            while position < end, shift < 63 {
                let byte = bytes[position]
                position += 1
                value |= UInt64(byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 { return byte == 0 ? nil : value }
            }
            return nil
        }

        /// The content of a delimited field that is not empty; `position` stays before it.
        mutating func range(_ end: Int) -> Range<Int>? {
            guard let count = number(end), count <= UInt64(end - position) else { return nil }
            return position..<position + Int(count)
        }

        mutating func content(_ end: Int) -> Int? {
            guard let range = range(end) else { return nil }
            position = range.upperBound
            return range.count
        }

        mutating func text(_ end: Int) -> Int? {
            guard let range = range(end) else { return nil }
            while position < range.upperBound {
                guard bytes[position] < 0x80 else { return nil }
                position += 1
            }
            return range.count
        }

        /// Up to `end`; how much of its size is content.
        mutating func part(_ end: Int) -> Int? {
            var size = 0
            var last: UInt8 = 0
            while position < end {
                let tag = tag()
                guard tag > last else { return nil }
                last = tag
                switch tag {
                case StoredParts.delimited(1):
                    guard let count = text(end) else { return nil }
                    size += count
                case StoredParts.delimited(2):
                    guard let count = content(end) else { return nil }
                    size += count
                case StoredParts.delimited(3):
                    guard let inner = range(end), let count = reference(inner.upperBound)
                    else { return nil }
                    size += 64 + count
                default: return nil
                }
            }
            return size
        }

        private mutating func reference(_ end: Int) -> Int? {
            var size = 0
            var last: UInt8 = 0
            while position < end {
                let tag = tag()
                guard tag > last else { return nil }
                last = tag
                switch tag {
                case StoredParts.delimited(1):
                    guard let count = text(end) else { return nil }
                    size += count
                case StoredParts.varint(2), StoredParts.varint(4):
                    guard number(end) != nil else { return nil }
                case StoredParts.delimited(3):
                    guard let count = content(end) else { return nil }
                    size += count
                default: return nil
                }
            }
            return size
        }
    }
}
