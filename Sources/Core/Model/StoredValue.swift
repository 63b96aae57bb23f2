/// A value that one column of a row holds. Its form there is final: rows of it are in files.
public protocol StoredValue: Sendable {
    static var columnType: ColumnType { get }
    /// Stands in records that nobody looks at: those whose columns are only listed or written,
    /// and those of which a column could not be read.
    static var blank: Self { get }
    var stored: ColumnValue { get }
    /// `nil`: the column holds something else.
    init?(stored: ColumnValue)
}

extension UInt64: StoredValue {
    @inlinable
    public static var columnType: ColumnType { .integer }
    @inlinable
    public static var blank: UInt64 { 0 }
    /// Numbers above `Int64.max` do not occur in rows: counters and milliseconds never get there.
    @inlinable
    public var stored: ColumnValue { .integer(Int64(clamping: self)) }

    @inlinable
    public init?(stored: ColumnValue) {
        guard case .integer(let number) = stored, number >= 0 else { return nil }
        self = UInt64(number)
    }
}

extension String: StoredValue {
    @inlinable
    public static var columnType: ColumnType { .text }
    @inlinable
    public static var blank: String { "" }
    @inlinable
    public var stored: ColumnValue { .text(self) }

    @inlinable
    public init?(stored: ColumnValue) {
        guard case .text(let text) = stored else { return nil }
        self = text
    }
}

extension [UInt8]: StoredValue {
    @inlinable
    public static var columnType: ColumnType { .blob }
    @inlinable
    public static var blank: [UInt8] { [] }
    @inlinable
    public var stored: ColumnValue { .blob(self) }

    @inlinable
    public init?(stored: ColumnValue) {
        guard case .blob(let bytes) = stored else { return nil }
        self = bytes
    }
}

/// A value that is stored as one of those above.
public protocol StoredAs: StoredValue {
    associatedtype Form: StoredValue
    var form: Form { get }
    init?(form: Form)
}

extension StoredAs {
    @inlinable
    public static var columnType: ColumnType { Form.columnType }
    @inlinable
    public var stored: ColumnValue { form.stored }

    @inlinable
    public init?(stored: ColumnValue) {
        guard let form = Form(stored: stored) else { return nil }
        self.init(form: form)
    }
}

/// A value whose raw number is stored.
public protocol StoredNumber: StoredAs, RawRepresentable where RawValue == UInt64, Form == UInt64 {}

extension StoredNumber {
    /// The first there is.
    @inlinable
    public static var blank: Self {
        for number in 0..<UInt64(64) {
            if let value = Self(rawValue: number) { return value }
        }
        preconditionFailure("\(Self.self) has no number below 64")
    }

    @inlinable
    public var form: UInt64 { rawValue }
    @inlinable
    public init?(form: UInt64) { self.init(rawValue: form) }
}

/// A value of several parts that is stored as bytes of its own format.
public protocol StoredBytes: StoredAs where Form == [UInt8] {
    init()
    /// `nil`: the bytes are of something else.
    init?(encoded: [UInt8])
    var encoded: [UInt8] { get }
}

extension StoredBytes {
    public static var blank: Self { Self() }
    public var form: [UInt8] { encoded }
    public init?(form: [UInt8]) { self.init(encoded: form) }
}

extension Bool: StoredAs {
    @inlinable
    public static var blank: Bool { false }
    @inlinable
    public var form: UInt64 { self ? 1 : 0 }
    @inlinable
    public init?(form: UInt64) { self = form != 0 }
}

extension Timestamp: StoredAs {
    @inlinable
    public static var blank: Timestamp { Timestamp(milliseconds: 0) }
    @inlinable
    public var form: UInt64 { milliseconds }
    @inlinable
    public init?(form: UInt64) { self.init(milliseconds: form) }
}

extension Identifier: StoredAs {
    @inlinable
    public static var blank: Self { Self(high: 0, low: 0) }
    @inlinable
    public var form: [UInt8] { bytes }
    @inlinable
    public init?(form: [UInt8]) { self.init(form) }
}

extension AppID: StoredAs {
    @inlinable
    public static var blank: AppID { AppID("") }
    @inlinable
    public var form: String { name }
    @inlinable
    public init?(form: String) { self.init(form) }
}

extension UserID: StoredAs {
    @inlinable
    public static var blank: UserID { UserID("") }
    @inlinable
    public var form: String { name }
    @inlinable
    public init?(form: String) { self.init(form) }
}

// What keys and scans are made of.
extension ColumnValue {
    @inlinable
    public static func unsigned(_ value: UInt64) -> ColumnValue { value.stored }
    @inlinable
    public static func flag(_ value: Bool) -> ColumnValue { value.stored }
    @inlinable
    public static func timestamp(_ value: Timestamp) -> ColumnValue { value.stored }
    @inlinable
    public static func identifier<Noun>(_ value: Identifier<Noun>) -> ColumnValue {
        value.stored
    }
    @inlinable
    public static func app(_ value: AppID) -> ColumnValue { value.stored }
    @inlinable
    public static func user(_ value: UserID) -> ColumnValue { value.stored }
}
