/// Writes answers as JSON: names in snake case and in their order, slashes as they are.
struct JSONWriter: Encoder {
    /// What is written so far of one value; containers share it.
    fileprivate final class Node {
        enum Content {
            case nothing
            /// As it stands in the document.
            case scalar(String)
            case text(String)
            case object([(name: String, node: Node)])
            case list([Node])
        }

        var content = Content.nothing
    }

    private let node: Node
    /// Names are data: they stay as they are.
    private let keepsNames: Bool
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    private init(_ node: Node, keepsNames: Bool = false) {
        self.node = node
        self.keepsNames = keepsNames
    }

    /// - Throws: What the body itself throws, and `EncodingError` of a number that is none.
    static func write(_ body: some Encodable) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try write(body, to: &bytes)
        return bytes
    }

    /// Appends it.
    static func write(_ body: some Encodable, to bytes: inout [UInt8]) throws {
        append(try node(of: body), to: &bytes)
    }

    private static func node(of value: some Encodable) throws -> Node {
        let node = Node()
        switch value {
        // Most values are these; they need no encoder.
        case let text as String: node.content = .text(text)
        case let number as UInt64: node.content = .scalar(String(number))
        case let flag as Bool: node.content = .scalar(flag ? "true" : "false")
        default: try value.encode(to: JSONWriter(node, keepsNames: value is any NamedByData))
        }
        return node
    }

    private static func append(_ node: Node, to bytes: inout [UInt8]) {
        switch node.content {
        case .nothing: bytes += "{}".utf8
        case .scalar(let text): bytes += text.utf8
        case .text(let text): append(text, to: &bytes)
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.sorted(by: { $0.name < $1.name }).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                append(member.node, to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        case .list(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(element, to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        text.utf8.span.withUnsafeBufferPointer { all in
            escapes.withUnsafeBufferPointer { escapes in
                // What is not escaped is appended in runs.
                var start = 0
                for (index, byte) in all.enumerated() where escapes[Int(byte)] != 0 {
                    if start < index {
                        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: all[start..<index]))
                    }
                    append(byte, as: escapes[Int(byte)], to: &bytes)
                    start = index + 1
                }
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: all[start...]))
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func append(_ byte: UInt8, as escape: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(escape)
        guard escape == UInt8(ascii: "u") else { return }
        bytes.append(UInt8(ascii: "0"))
        bytes.append(UInt8(ascii: "0"))
        bytes.append(UInt8(ascii: "0") + byte >> 4)
        let low = byte & 0xF
        bytes.append(low + (low < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10))
    }

    /// For each byte what follows the backslash in its stead; 0: it stays as it is.
    private static let escapes: [UInt8] = {
        var escapes = [UInt8](repeating: 0, count: 256)
        for byte in 0..<0x20 { escapes[byte] = UInt8(ascii: "u") }
        for (byte, escape) in [
            (0x08, "b"), (0x09, "t"), (0x0A, "n"), (0x0C, "f"), (0x0D, "r"), (0x22, "\""),
            (0x5C, "\\"),
        ] as [(Int, Unicode.Scalar)] {
            escapes[byte] = UInt8(ascii: escape)
        }
        return escapes
    }()

    /// `messageId` as `message_id`, `droppedURL` as `dropped_url`.
    private static func snake(_ name: String) -> String {
        var words: [UInt8] = []
        words.reserveCapacity(name.utf8.count + 4)
        let bytes = name.utf8.span
        for index in bytes.indices {
            let byte = bytes[index]
            guard (0x41...0x5A).contains(byte) else {
                words.append(byte)
                continue
            }
            let isAfterUpper = index > 0 && (0x41...0x5A).contains(bytes[index - 1])
            let isBeforeLower = index + 1 < bytes.count && (0x61...0x7A).contains(bytes[index + 1])
            if index > 0, !isAfterUpper || isBeforeLower { words.append(UInt8(ascii: "_")) }
            words.append(byte | 0x20)
        }
        return String(decoding: words, as: UTF8.self)
    }

    // MARK: Encoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Members<Key>(node: node, keepsNames: keepsNames))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Elements(node: node) }
    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let node: Node
        let keepsNames: Bool
        var codingPath: [any CodingKey] { [] }

        init(node: Node, keepsNames: Bool) {
            self.node = node
            self.keepsNames = keepsNames
            if case .object = node.content { return }
            node.content = .object([])
        }

        private func add(_ member: Node, _ key: any CodingKey) {
            guard case .object(var members) = node.content else { return }
            node.content = .nothing
            let name = keepsNames ? key.stringValue : JSONWriter.snake(key.stringValue)
            members.append((name, member))
            node.content = .object(members)
        }

        func encodeNil(forKey key: Key) {
            let null = Node()
            null.content = .scalar("null")
            add(null, key)
        }

        func encode(_ value: some Encodable, forKey key: Key) throws {
            add(try JSONWriter.node(of: value), key)
        }

        func nestedContainer<NestedKey: CodingKey>(
            keyedBy type: NestedKey.Type, forKey key: Key
        ) -> KeyedEncodingContainer<NestedKey> {
            let nested = Node()
            add(nested, key)
            return JSONWriter(nested).container(keyedBy: type)
        }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            let nested = Node()
            add(nested, key)
            return Elements(node: nested)
        }

        func superEncoder() -> any Encoder { JSONWriter(node) }

        func superEncoder(forKey key: Key) -> any Encoder {
            let nested = Node()
            add(nested, key)
            return JSONWriter(nested)
        }
    }

    private struct Elements: UnkeyedEncodingContainer {
        let node: Node
        var codingPath: [any CodingKey] { [] }

        init(node: Node) {
            self.node = node
            if case .list = node.content { return }
            node.content = .list([])
        }

        var count: Int { if case .list(let elements) = node.content { elements.count } else { 0 } }

        private func add(_ element: Node) {
            guard case .list(var elements) = node.content else { return }
            node.content = .nothing
            elements.append(element)
            node.content = .list(elements)
        }

        func encodeNil() {
            let null = Node()
            null.content = .scalar("null")
            add(null)
        }

        func encode(_ value: some Encodable) throws { add(try JSONWriter.node(of: value)) }

        func nestedContainer<NestedKey: CodingKey>(
            keyedBy type: NestedKey.Type
        ) -> KeyedEncodingContainer<NestedKey> {
            let nested = Node()
            add(nested)
            return JSONWriter(nested).container(keyedBy: type)
        }

        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
            let nested = Node()
            add(nested)
            return Elements(node: nested)
        }

        func superEncoder() -> any Encoder {
            let nested = Node()
            add(nested)
            return JSONWriter(nested)
        }
    }
}

extension JSONWriter: SingleValueEncodingContainer {
    func encodeNil() { node.content = .scalar("null") }
    func encode(_ value: Bool) { node.content = .scalar(value ? "true" : "false") }
    func encode(_ value: String) { node.content = .text(value) }

    func encode(_ value: Double) throws {
        guard value.isFinite else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "JSON has no such number"))
        }
        node.content = .scalar(
            value == value.rounded()
                ? "\(Int64(exactly: value).map(String.init) ?? "\(value)")" : "\(value)")
    }

    func encode(_ value: Float) throws { try encode(Double(value)) }
    func encode(_ value: Int) { node.content = .scalar(String(value)) }
    func encode(_ value: Int8) { node.content = .scalar(String(value)) }
    func encode(_ value: Int16) { node.content = .scalar(String(value)) }
    func encode(_ value: Int32) { node.content = .scalar(String(value)) }
    func encode(_ value: Int64) { node.content = .scalar(String(value)) }
    func encode(_ value: UInt) { node.content = .scalar(String(value)) }
    func encode(_ value: UInt8) { node.content = .scalar(String(value)) }
    func encode(_ value: UInt16) { node.content = .scalar(String(value)) }
    func encode(_ value: UInt32) { node.content = .scalar(String(value)) }
    func encode(_ value: UInt64) { node.content = .scalar(String(value)) }

    func encode(_ value: some Encodable) throws { node.content = try Self.node(of: value).content }
}

/// Its keys are data, not names of ours.
private protocol NamedByData {}
extension Dictionary: NamedByData where Key == String, Value: Encodable {}
