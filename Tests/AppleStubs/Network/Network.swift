// Of Apple's Network, what Sources/ApplePlatform names, with the signatures that Apple documents.

public import Foundation
public import Security

public enum NWError: Error, Sendable {
    case posix(Int32)
    case dns(Int32)
    case tls(Int32)
}

public enum NWEndpoint: Sendable {
    public enum Host: Hashable, Sendable, ExpressibleByStringLiteral {
        case name(String)
        public init(_ string: String) { fatalError() }
        public init(stringLiteral: String) { fatalError() }
    }

    public struct Port: Hashable, Sendable, ExpressibleByIntegerLiteral {
        public init?(rawValue: UInt16) { fatalError() }
        public init(integerLiteral value: UInt16) { fatalError() }
    }
}

public class NWProtocolOptions {}

public enum NWProtocolTLS {
    public final class Options: NWProtocolOptions {
        public var securityProtocolOptions: sec_protocol_options_t { fatalError() }
        public override init() { fatalError() }
    }
}

public enum NWProtocolTCP {
    public final class Options: NWProtocolOptions {
        public override init() { fatalError() }
        public var noDelay: Bool {
            get { fatalError() }
            set { fatalError() }
        }
    }
}

public struct NWInterface: Hashable, Sendable {
    public let name: String
}

public struct NWPath: Equatable, Sendable {
    public enum Status: Sendable {
        case satisfied
        case unsatisfied
        case requiresConnection
    }

    public let status: Status
    public let availableInterfaces: [NWInterface]
}

public final class NWPathMonitor: Sendable {
    public init() { fatalError() }

    @preconcurrency public final var pathUpdateHandler: (@Sendable (NWPath) -> Void)? {
        get { fatalError() }
        set { fatalError() }
    }

    public final func start(queue: DispatchQueue) { fatalError() }
    public final func cancel() { fatalError() }
}

public final class NWParameters: @unchecked Sendable {
    public convenience init(tls: NWProtocolTLS.Options?, tcp: NWProtocolTCP.Options = .init()) {
        fatalError()
    }
}

public final class NWConnection: Sendable {
    public enum State: Equatable, Sendable {
        public static func == (left: State, right: State) -> Bool { fatalError() }
        case setup
        case waiting(NWError)
        case preparing
        case ready
        case failed(NWError)
        case cancelled
    }

    public final class ContentContext: Sendable {
        public static let defaultMessage = ContentContext()
        public static let finalMessage = ContentContext()
    }

    public enum SendCompletion: Sendable {
        case contentProcessed(@Sendable (NWError?) -> Void)
        case idempotent
    }

    public init(
        host: NWEndpoint.Host, port: NWEndpoint.Port, using parameters: NWParameters
    ) { fatalError() }

    @preconcurrency public final var stateUpdateHandler: (@Sendable (State) -> Void)? {
        get { fatalError() }
        set { fatalError() }
    }

    @preconcurrency public final var viabilityUpdateHandler: (@Sendable (Bool) -> Void)? {
        get { fatalError() }
        set { fatalError() }
    }

    public final var state: State { fatalError() }

    public func start(queue: DispatchQueue) { fatalError() }
    public func cancel() { fatalError() }

    @preconcurrency public func send(
        content: Data?, contentContext: ContentContext = .defaultMessage,
        isComplete: Bool = true, completion: SendCompletion
    ) { fatalError() }

    @preconcurrency public func receive(
        minimumIncompleteLength: Int, maximumLength: Int,
        completion:
            @escaping @Sendable (
                _ content: Data?, _ contentContext: ContentContext?, _ isComplete: Bool,
                _ error: NWError?
            ) -> Void
    ) { fatalError() }
}
