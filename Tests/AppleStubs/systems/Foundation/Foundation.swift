// Of Apple's Foundation, what the client names, with the signatures that Apple documents. On Linux
// the client is built with Foundation itself; this one is for compiling it for iOS, for which there is
// none here.
// swift-format-ignore-file

public typealias TimeInterval = Double

public struct Data: Hashable, Sendable, RandomAccessCollection, MutableCollection, RangeReplaceableCollection {
    public struct Base64DecodingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { fatalError() }
        public static let ignoreUnknownCharacters = Base64DecodingOptions(rawValue: 1)
    }

    public init() { fatalError() }
    public init<Bytes: Sequence>(_ bytes: Bytes) where Bytes.Element == UInt8 { fatalError() }
    public init?(base64Encoded text: String, options: Base64DecodingOptions = []) { fatalError() }
    public func base64EncodedString() -> String { fatalError() }
    public var startIndex: Int { fatalError() }
    public var endIndex: Int { fatalError() }
    public subscript(position: Int) -> UInt8 {
        get { fatalError() }
        set { fatalError() }
    }
    public mutating func replaceSubrange<Bytes: Collection>(
        _ range: Range<Int>, with bytes: Bytes
    ) where Bytes.Element == UInt8 { fatalError() }
}

extension String {
    public struct Encoding: Hashable, Sendable {
        public static let utf8 = Encoding()
    }

    public init?(data: Data, encoding: Encoding) { fatalError() }
}

extension StringProtocol {
    public func replacingOccurrences<Target: StringProtocol, Replacement: StringProtocol>(
        of target: Target, with replacement: Replacement
    ) -> String { fatalError() }
    public func range<Text: StringProtocol>(of text: Text) -> Range<String.Index>? { fatalError() }
}

public struct Date: Hashable, Comparable, Sendable {
    public init() { fatalError() }
    public init(timeIntervalSince1970 seconds: TimeInterval) { fatalError() }
    public var timeIntervalSince1970: TimeInterval { fatalError() }
    public static func < (left: Date, right: Date) -> Bool { fatalError() }
}

public class JSONDecoder {
    public init() { fatalError() }
    public func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        fatalError()
    }
}

public class JSONEncoder {
    public init() { fatalError() }
    public func encode<Value: Encodable>(_ value: Value) throws -> Data { fatalError() }
}

public struct URL: Hashable, Sendable {
    public init?(string: String) { fatalError() }
    public init?(string: String, relativeTo url: URL?) { fatalError() }
    public var absoluteString: String { fatalError() }
    public var path: String { fatalError() }
    public func appendingPathComponent(_ name: String, isDirectory: Bool) -> URL { fatalError() }
    public func appendingPathComponent(_ name: String) -> URL { fatalError() }
    public mutating func setResourceValues(_ values: URLResourceValues) throws { fatalError() }
}

public struct URLResourceValues {
    public init() { fatalError() }
    public var isExcludedFromBackup: Bool?
}

public struct URLRequest: Hashable, Sendable {
    public init(url: URL) { fatalError() }
    public var httpMethod: String?
    public var httpBody: Data?
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) { fatalError() }
}

open class URLResponse: NSObject, @unchecked Sendable {}

open class URLSession: NSObject, @unchecked Sendable {
    open class var shared: URLSession { fatalError() }
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) { fatalError() }
}

public struct CocoaError: Error, Sendable {
    public struct Code: Hashable, Sendable {
        public static var fileReadNoPermission: Code { fatalError() }
    }

    public init(_ code: Code) { fatalError() }
}

open class NSObject: Hashable {
    open func mutableCopy() -> Any { fatalError() }
    public init() { fatalError() }
    public static func == (left: NSObject, right: NSObject) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}

open class NSNumber: NSObject, @unchecked Sendable {
    public init(value: Int) { fatalError() }
    public init(value: UInt32) { fatalError() }
    open var intValue: Int { fatalError() }
}

open class NSString: NSObject, @unchecked Sendable {}

open class NSError: NSObject, Error, @unchecked Sendable {}

open class NSLocale: NSObject, @unchecked Sendable {
    public static let currentLocaleDidChangeNotification = NSNotification.Name("locale")
}

open class NSNotification: NSObject, @unchecked Sendable {
    public struct Name: Hashable, Sendable {
        public init(_ name: String) { fatalError() }
    }
}

extension NSNotification.Name {
    public static let NSSystemTimeZoneDidChange = NSNotification.Name("zone")
}

public struct Notification: Sendable {
    public typealias Name = NSNotification.Name
    public var name: Name
}

open class NotificationCenter: NSObject, @unchecked Sendable {
    open class var `default`: NotificationCenter { fatalError() }
    @preconcurrency
    open func addObserver(
        forName name: NSNotification.Name?, object: Any?, queue: OperationQueue?,
        using block: @escaping @Sendable (Notification) -> Void
    ) -> any NSObjectProtocol { fatalError() }
    open func removeObserver(_ observer: Any) { fatalError() }
}

public protocol NSObjectProtocol: AnyObject {}

extension NSObject: NSObjectProtocol {}

open class OperationQueue: NSObject, @unchecked Sendable {
    open class var main: OperationQueue { fatalError() }
}

open class NSLock: NSObject, @unchecked Sendable {
    public override init() { fatalError() }
    open func lock() { fatalError() }
    open func unlock() { fatalError() }
    public func withLock<Answer>(_ body: () throws -> Answer) rethrows -> Answer { fatalError() }
}

open class ProcessInfo: NSObject, @unchecked Sendable {
    open class var processInfo: ProcessInfo { fatalError() }
}

open class Bundle: NSObject, @unchecked Sendable {
    open class var main: Bundle { fatalError() }
    open var preferredLocalizations: [String] { fatalError() }
}

public struct Locale: Hashable, Sendable {
    public static var preferredLanguages: [String] { fatalError() }
}

public struct TimeZone: Hashable, Sendable {
    public static var autoupdatingCurrent: TimeZone { fatalError() }
    public var identifier: String { fatalError() }
    public func secondsFromGMT(for date: Date = Date()) -> Int { fatalError() }
}

open class FileManager: NSObject, @unchecked Sendable {
    public enum SearchPathDirectory: UInt, Sendable { case applicationSupportDirectory }
    public struct SearchPathDomainMask: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { fatalError() }
        public static let userDomainMask = SearchPathDomainMask(rawValue: 1)
    }

    open class var `default`: FileManager { fatalError() }
    open func url(
        for directory: SearchPathDirectory, in domain: SearchPathDomainMask,
        appropriateFor url: URL?, create: Bool
    ) throws -> URL { fatalError() }
    open func contentsOfDirectory(atPath path: String) throws -> [String] { fatalError() }
    open func removeItem(at url: URL) throws { fatalError() }
    open func createDirectory(
        at url: URL, withIntermediateDirectories: Bool, attributes: [String: Any]? = nil
    ) throws { fatalError() }
}

// Of Apple's Dispatch.
open class DispatchQueue: @unchecked Sendable {
    public init(label: String) { fatalError() }
    open class var main: DispatchQueue { fatalError() }
    public func asyncAfter(
        deadline: DispatchTime, execute body: @escaping @Sendable () -> Void
    ) { fatalError() }
    public func async(execute body: @escaping @Sendable () -> Void) { fatalError() }
}

public struct DispatchTime: Sendable {
    public static func now() -> DispatchTime { fatalError() }
    public static func + (time: DispatchTime, seconds: Double) -> DispatchTime { fatalError() }
}
