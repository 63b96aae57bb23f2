import FoundationEssentials
import Glibc

/// Errors as a person reads them. Those of this package say it themselves; those of Foundation and
/// of its JSON show names of types and numbers, which are of use to nobody.
public enum ErrorWords {
    public static func of(_ error: any Error) -> String {
        if let error = error as? DecodingError { return of(error) }
        guard let said = said(error) else { return "\(error)" }
        let file = error as? CocoaError
        let path = file.flatMap { $0.filePath ?? $0.url?.path }
        return path.map { "\($0): \(said)" } ?? said
    }

    /// The same without the name of a file, where that has been told.
    public static func reason(_ error: any Error) -> String { said(error) ?? of(error) }

    /// Why bytes are not the JSON that is expected, with the place in it.
    private static func of(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            "\(place(context.codingPath + [key])) is missing"
        case .typeMismatch(let type, let context):
            "\(place(context.codingPath)) must be \(noun(type))"
        case .valueNotFound(let type, let context):
            "\(place(context.codingPath)) must be \(noun(type)), not null"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty
                ? "that is no JSON" : "\(place(context.codingPath)) has a value that is not known"
        @unknown default: "that is not the JSON that is expected"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        let names = path.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }
        let name = names.joined()
        if name.isEmpty { return "the whole" }
        return "`\(name.hasPrefix(".") ? String(name.dropFirst()) : name)`"
    }

    private static func noun(_ type: Any.Type) -> String {
        switch type {
        case is String.Type: "text"
        case is Bool.Type: "true or false"
        case is Double.Type: "a number"
        case is any FixedWidthInteger.Type: "a whole number"
        case is any Collection.Type: "a list or an object"
        default: "an object"
        }
    }

    /// What the system says. `nil`: it is an error of somebody else.
    private static func said(_ error: any Error) -> String? {
        if let error = error as? POSIXError { return words(error) }
        guard let error = error as? CocoaError else { return nil }
        return (error.underlying as? POSIXError).map(words) ?? named(error.code)
    }

    private static func words(_ error: POSIXError) -> String {
        String(cString: strerror(error.code.rawValue))
    }

    private static func named(_ code: CocoaError.Code) -> String {
        switch code {
        case .fileNoSuchFile, .fileReadNoSuchFile: "no such file or directory"
        case .fileReadNoPermission, .fileWriteNoPermission: "permission denied"
        case .fileReadInapplicableStringEncoding, .fileReadCorruptFile: "it is not UTF-8 text"
        case .fileWriteFileExists: "it exists already"
        case .fileWriteOutOfSpace: "no space is left"
        case .fileWriteVolumeReadOnly: "the disk is read-only"
        case .propertyListReadCorrupt: "that is no JSON"
        default: "it cannot be read or written"
        }
    }
}
