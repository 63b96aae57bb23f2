/// The request target of RFC 9112 3.2, taken apart.
struct RequestTarget {
    var path: String
    var pathSegments: [String]
    var query: [(name: String, value: String)]

    /// Nil when the target is no origin-form or absolute-form, has a byte outside visible ASCII, a
    /// wrong percent-encoding, or decodes to something that is not UTF-8.
    init?(_ target: [UInt8]) {
        guard target.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }),
            let origin = Self.originForm(target[...])
        else { return nil }
        let mark = origin.firstIndex(of: UInt8(ascii: "?"))
        let pathBytes = origin[..<(mark ?? origin.endIndex)]
        path = String(decoding: pathBytes, as: UTF8.self)
        guard let segments = Self.segments(pathBytes) else { return nil }
        pathSegments = segments
        query = []
        guard let mark else { return }
        guard let parameters = Self.parameters(origin[(mark + 1)...]) else { return nil }
        query = parameters
    }

    /// A server must accept absolute-form as well (RFC 9112 3.2.2); the authority is not used.
    private static func originForm(_ target: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        if target.first == UInt8(ascii: "/") { return target }
        let lowered = String(decoding: target.prefix(8), as: UTF8.self).lowercased()
        let schemeBytes: Int
        if lowered.hasPrefix("http://") {
            schemeBytes = 7
        } else if lowered.hasPrefix("https://") {
            schemeBytes = 8
        } else {
            return nil
        }
        let rest = target.dropFirst(schemeBytes)
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else {
            return rest.contains(UInt8(ascii: "?")) ? nil : [UInt8(ascii: "/")]
        }
        return rest[..<slash].contains(UInt8(ascii: "?")) ? nil : rest[slash...]
    }

    private static func segments(_ path: ArraySlice<UInt8>) -> [String]? {
        if path.count == 1 { return [] }
        var segments: [String] = []
        var rest = path.dropFirst()
        while true {
            let end = rest.firstIndex(of: UInt8(ascii: "/"))
            guard let segment = decode(rest[..<(end ?? rest.endIndex)], plusIsSpace: false)
            else { return nil }
            segments.append(segment)
            guard let end else { return segments }
            rest = rest[(end + 1)...]
        }
    }

    private static func parameters(_ query: ArraySlice<UInt8>) -> [(name: String, value: String)]? {
        var parameters: [(name: String, value: String)] = []
        for part in query.split(separator: UInt8(ascii: "&")) {
            let pair = part.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(pair[0], plusIsSpace: true),
                let value = pair.count == 2 ? decode(pair[1], plusIsSpace: true) : ""
            else { return nil }
            parameters.append((name, value))
        }
        return parameters
    }

    private static func decode(_ bytes: ArraySlice<UInt8>, plusIsSpace: Bool) -> String? {
        // Most are what they stand for, and visible ASCII as the whole target is.
        let isPlain = bytes.allSatisfy {
            $0 != UInt8(ascii: "%") && ($0 != UInt8(ascii: "+") || !plusIsSpace)
        }
        if isPlain { return String(decoding: bytes, as: UTF8.self) }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var rest = bytes
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(hexValue),
                    let low = rest.popFirst().flatMap(hexValue)
                else { return nil }
                decoded.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace:
                decoded.append(UInt8(ascii: " "))
            default:
                decoded.append(byte)
            }
        }
        return String(validating: decoded, as: UTF8.self)
    }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
