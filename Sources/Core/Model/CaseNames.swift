/// An enumeration whose cases are named in APIs, logs and metrics as they are here, in lower case
/// and with hyphens between the words: `no-show`. Renaming a case changes what others read.
public protocol NamedByCase: CaseIterable, RawRepresentable where RawValue == UInt64 {
    /// `caseNames()`, made once: every push asks for some.
    static var names: [String] { get }
}

extension NamedByCase {
    /// By raw value; empty where none is.
    public static func caseNames() -> [String] {
        var names: [String] = []
        for value in allCases {
            let number = Int(value.rawValue)
            while names.count <= number { names.append("") }
            names[number] = String(wordsOf: "\(value)", joinedBy: "-")
        }
        return names
    }

    public var name: String { Self.names[Int(rawValue)] }

    /// The one of that name; `nil`: none that this version knows.
    public init?(name: String) {
        guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }
}

extension String {
    /// The words of a name in Swift's spelling, in lower case.
    public init(wordsOf name: String, joinedBy separator: String) {
        self = ""
        for character in name {
            if character.isUppercase { self += separator }
            self += character.lowercased()
        }
    }
}
