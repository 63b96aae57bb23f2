// swift-tools-version: 6.2
import PackageDescription

// The floors of the building, top to bottom: tool() and server() use adapter() and core();
// adapter() wraps exactly one system(); core() is pure. LayoutTests holds the same table for the
// imports, because SwiftPM lets an undeclared target of the package be imported.

let common: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

// On Apple's systems only SQLite is used: the SDK's own, whatever else is on the machine.
#if os(Linux)
    let asksPkgConfig = true
#else
    let asksPkgConfig = false
#endif

func system(_ name: String, pkgConfig: String, apt package: String) -> Target {
    .systemLibrary(
        name: name, path: "Sources/System/\(name)", pkgConfig: asksPkgConfig ? pkgConfig : nil,
        providers: [.apt([package])])
}

/// A library that the program loads itself, with the types of its headers.
func loaded(_ name: String) -> Target {
    .target(name: name, dependencies: ["CLibrary"], path: "Sources/System/\(name)")
}

/// For the client on a device: elsewhere it is not built, nor the C library below it.
func onApple(_ name: String) -> Target.Dependency {
    .target(name: name, condition: .when(platforms: [.iOS, .macOS]))
}

func core(
    _ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/Core/\(name)", exclude: exclude,
        swiftSettings: common + [.strictMemorySafety(), .treatAllWarnings(as: .error)])
}

func adapter(
    _ name: String, _ dependencies: [Target.Dependency], linking: [LinkerSetting] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/Adapters/\(name)",
        swiftSettings: common, linkerSettings: linking)
}

// Named points at which a test kills the process: they exist in debug builds only.
func failpoints(_ name: String) -> Target {
    .target(
        name: name, path: "Sources/Adapters/\(name)",
        swiftSettings: common + [
            .define("FAILPOINTS", .when(platforms: [.linux], configuration: .debug))
        ])
}

func server(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/Server/\(name)",
        swiftSettings: common)
}

/// For code that nobody waits for: smaller rather than faster. No target of a product for other
/// packages may have it, which SwiftPM refuses.
let small: SwiftSetting = .unsafeFlags(["-Osize"], .when(configuration: .release))

func tool(
    _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [],
    settings: [SwiftSetting] = [small]
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/Tools/\(name)", exclude: exclude,
        swiftSettings: common + settings)
}

func test(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: common)
}

// The fuzzers' functions: replayed as a test, or, for Deploy/fuzz, under libFuzzer, which brings
// its own `main` and needs every module compiled for coverage.
let fuzzed: [Target.Dependency] = [
    "BackendAPI", "RouseServer", "PushGateway", "StoreService", "Telemetry", "HTTP1", "Crypto",
    "MemoryStore", "SyncServer", "SyncClient", "PushPool", "Feed", "Wake", "Wire", "Model",
]
let isFuzzing = Context.environment["ROUSE_FUZZ"] != nil
let fuzz: Target =
    isFuzzing
    ? .executableTarget(
        name: "rouse-fuzz", dependencies: fuzzed, path: "Tests/Fuzz",
        exclude: ["corpus", "Replay", "api.dict"], swiftSettings: common)
    : .testTarget(
        name: "FuzzTests", dependencies: fuzzed, path: "Tests/Fuzz",
        exclude: ["corpus", "Driver", "api.dict"], swiftSettings: common)

/// The released program without what nobody uses: names for libraries to find in it, which the
/// static standard library asks for; the long form of the addresses in its tables (the short one
/// needs glibc 2.36, which Debian 12 has); and what slim.ld leaves out. Flags like these forbid the
/// use of a target in another package, so only the program's own may have them.
let slim: LinkerSetting = {
    let words = [
        "-O2", "--no-export-dynamic", "-z", "pack-relative-relocs", "--no-eh-frame-hdr",
        "-T", "\(Context.packageDirectory)/Sources/System/slim.ld",
    ]
    return .unsafeFlags(
        ["-use-ld=lld"] + words.flatMap { ["-Xlinker", $0] },
        .when(platforms: [.linux], configuration: .release))
}()

let package = Package(
    name: "rouse",
    // The client's floors. The server and the tools run on Linux.
    platforms: [.iOS(.v16), .macOS(.v13)],
    products: [
        .executable(name: "rouse", targets: ["rouse"]),
        // Static, so that `swift build --product RouseClient` builds it and nothing else.
        .library(
            name: "RouseClient", type: .static,
            targets: [
                "RouseClient", "ApplePlatform", "AppLife", "SyncClient", "Wire", "JSONTree",
                "Model",
            ]),
    ],
    targets: [
        system("CUV", pkgConfig: "libuv", apt: "libuv1-dev"),
        system("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev"),
        system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        system("CNGHTTP2", pkgConfig: "libnghttp2", apt: "libnghttp2-dev"),
        // Loaded when something needs them: each brings ten libraries more. Their headers are
        // Debian's libpq-dev, libmicrohttpd-dev and libcurl4-openssl-dev.
        loaded("CPostgres"),
        loaded("CMicroHTTPD"),
        loaded("CCurl"),
        .target(
            name: "CLibrary", path: "Sources/System/CLibrary",
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]),
        // No library: the backend API's description, so that the server can tell it.
        .target(name: "CDescription", path: "Sources/System/CDescription"),

        // No library: the console's pages, so that the server can show them.
        .target(
            name: "CConsole", path: "Sources/System/CConsole", exclude: ["pages"]),

        core("Model"),
        core("JSONTree"),
        core("Wire", ["Model"]),
        core("Wake", ["Model"]),
        core("WorkingSet", ["Model"]),
        core("Feed", ["Model", "Wire", "Wake", "WorkingSet"], exclude: ["README.md"]),
        core("SyncServer", ["Model", "Wire", "Feed"]),
        core("PushPool", ["Model", "Wake", "Feed"]),
        core("SyncClient", ["Model", "Wire"]),
        core("AppLife", ["Model", "Wire"]),
        core("MemoryStore", ["Model"]),

        adapter("EventLoop", ["CUV"]),
        adapter("Crypto", ["COpenSSL"]),
        adapter("HTTP1", ["CMicroHTTPD"]),
        adapter("HTTP2", ["CNGHTTP2"]),
        adapter("HTTPClient", ["CCurl"]),
        failpoints("Failpoints"),
        adapter(
            "SQLiteStore", ["CSQLite", "Failpoints", "Model", "Wire"],
            linking: [.linkedLibrary("sqlite3", .when(platforms: [.iOS, .macOS]))]),

        adapter("PostgresStore", ["CPostgres", "Model"]),

        server("Telemetry", ["EventLoop"]),
        server(
            "StoreService",
            ["EventLoop", "Failpoints", "Feed", "Wake", "WorkingSet", "Wire", "Model"]),
        server(
            "SyncService",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "SyncServer", "Feed", "Wire",
                "Model",
            ]),
        server(
            "PushGateway",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "HTTP2", "Failpoints",
                "PushPool", "Wake", "Feed", "Model",
            ]),
        server(
            "Webhooks",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "HTTPClient", "Failpoints",
                "Feed", "Model",
            ]),
        server(
            "BackendAPI",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "HTTP1", "CDescription",
                "CConsole", "Feed", "Wake", "Wire", "Model",
            ]),
        server(
            "RouseServer",
            [
                "Telemetry", "StoreService", "SyncService", "PushGateway", "Webhooks",
                "BackendAPI", "SQLiteStore", "PostgresStore", "EventLoop", "Crypto",
                "Failpoints",
                "SyncServer", "PushPool", "Feed", "Wake", "Wire", "Model",
            ]),

        .target(
            name: "Client",
            dependencies: ["RouseClient", "EventLoop", "Crypto", "SyncClient", "Wire", "Model"],
            path: "Sources/Client", swiftSettings: common),

        .target(
            name: "RouseClient",
            dependencies: ["AppLife", "SyncClient", "Wire", "JSONTree", "Model"],
            path: "Sources/RouseClient", exclude: ["README.md"], swiftSettings: common),
        // Nothing on Linux: Deploy/check-apple and check-systems compile it against stubs.
        .target(
            name: "ApplePlatform",
            dependencies: [
                "RouseClient", "AppLife", "SyncClient", "Wire", "Model", onApple("SQLiteStore"),
            ],
            path: "Sources/ApplePlatform", exclude: ["README.md"], swiftSettings: common),

        tool("DeviceModel", ["Model"]),
        tool(
            "Fleet", ["DeviceModel", "EventLoop", "SyncServer", "Wake", "Model"],
            exclude: ["Fleet.md"]),
        tool(
            "APNsSimulator",
            [
                "DeviceModel", "Client", "SQLiteStore", "EventLoop", "Crypto", "HTTP1", "HTTP2",
                "RouseClient", "AppLife", "SyncClient", "Wire", "JSONTree", "Model",
            ],
            exclude: ["Control/README.md", "CHECKS.md"]),
        tool(
            "Scenario",
            [
                "APNsSimulator", "PushGateway", "StoreService", "Telemetry", "Client",
                "RouseClient", "AppLife", "SQLiteStore", "EventLoop", "Crypto",
                "SyncClient", "Feed", "Wake", "Wire", "Model",
            ]),
        tool(
            "Chat",
            [
                "APNsSimulator", "Client", "SQLiteStore", "EventLoop", "RouseClient", "AppLife",
                "SyncClient", "Wire", "Model",
            ]),
        tool("Conformance", ["EventLoop", "Crypto", "Wire", "JSONTree", "Model"]),
        tool(
            "Bench",
            [
                "RouseServer", "StoreService", "SQLiteStore", "MemoryStore", "EventLoop", "Feed",
                "Wake", "WorkingSet", "Wire", "Model",
            ], settings: []),
        .executableTarget(
            name: "rouse",
            dependencies: [
                "RouseServer", "APNsSimulator", "Scenario", "Conformance", "Bench", "Fleet",
                "Chat", "Client", "Telemetry", "EventLoop", "Crypto", "JSONTree",
                "Model",
            ],
            path: "Sources/Tools/rouse", swiftSettings: common + [small], linkerSettings: [slim]),

        test("ModelTests", ["Model"]),
        test("WireTests", ["Wire", "Model"]),
        test("WakeTests", ["Wake", "Model"]),
        test("PushPoolTests", ["PushPool", "Wake", "Feed", "Model"]),
        test(
            "RouseClientTests",
            ["RouseClient", "AppLife", "SyncClient", "MemoryStore", "Wire", "Model"]),
        test("AppLifeTests", ["AppLife", "Wire", "Model"]),
        test(
            "FeedTests",
            [
                "SyncServer", "Feed", "WorkingSet", "Wire", "Wake", "Model", "MemoryStore",
                "Fleet", "DeviceModel", "PostgresStore", "PostgresPeer",
            ]),
        test(
            "SimulationTests",
            [
                "Model", "Wire", "Wake", "WorkingSet", "Feed", "SyncServer", "SyncClient",
                "MemoryStore", "RouseClient", "AppLife", "DeviceModel", "PostgresStore",
                "PostgresPeer",
            ]),
        test(
            "SyncTests", ["SyncServer", "SyncClient", "Feed", "Wire", "Model", "MemoryStore"]),
        test(
            "StoreContractTests",
            [
                "SQLiteStore", "PostgresStore", "PostgresPeer", "MemoryStore", "StoreCrashWriter",
                "EventLoop", "Feed", "WorkingSet", "Wire", "Model", "SyncClient",
            ]),
        // A PostgreSQL server for tests; no product.
        .target(
            name: "PostgresPeer", path: "Tests/PostgresPeer", swiftSettings: common),
        // A process for StoreContractTests to kill; no product.
        .executableTarget(
            name: "StoreCrashWriter", dependencies: ["SQLiteStore", "EventLoop", "Model"],
            path: "Tests/StoreCrashWriter", swiftSettings: common),
        test("EventLoopTests", ["EventLoop"]),
        test("CryptoTests", ["Crypto"]),
        test("HTTP1Tests", ["HTTP1", "EventLoop"]),
        test("HTTP2Tests", ["HTTP2"]),
        test("HTTPClientTests", ["HTTPClient", "HTTP1", "Crypto", "EventLoop"]),
        test(
            "WebhooksTests",
            [
                "Webhooks", "StoreService", "SQLiteStore", "Telemetry", "EventLoop", "Crypto",
                "HTTPClient", "Feed", "Wire", "Model",
            ]),
        test(
            "ServerTests",
            [
                "rouse", "rouse-mutants", "PostgresPeer", "RouseServer", "APNsSimulator", "Client",
                "Scenario",
                "SQLiteStore", "EventLoop", "Crypto", "Feed", "SyncClient", "Wire", "Model",
            ]),
        test(
            "PushGatewayTests",
            [
                "PushGateway", "APNsSimulator", "StoreService", "SQLiteStore", "Telemetry",
                "EventLoop", "Crypto", "HTTP2", "PushPool", "Feed", "Wake", "Wire", "Model",
            ]),
        test(
            "SyncServiceTests",
            [
                "SyncService", "StoreService", "Scenario", "SQLiteStore", "EventLoop", "Crypto",
                "Telemetry", "Client", "RouseClient", "MemoryStore", "SyncServer", "SyncClient",
                "Feed", "Wire", "Model",
            ]),
        test("CommandLineTests", ["rouse"]),
        test("ChatTests", ["Chat", "RouseClient", "AppLife", "SyncClient", "Wire", "Model"]),
        test("DeployTests", ["rouse"]),
        test("ScenarioTests", ["rouse", "Scenario"]),
        test("DeviceModelTests", ["DeviceModel", "Model"]),
        test("FleetTests", ["rouse", "Fleet", "DeviceModel", "Wake", "Model"]),
        test(
            "APNsSimulatorTests",
            [
                "rouse", "APNsSimulator", "DeviceModel", "RouseClient", "Crypto", "EventLoop",
                "HTTP2", "Model",
            ]),
        test("TelemetryTests", ["Telemetry"]),
        test(
            "BackendAPITests",
            [
                "rouse", "BackendAPI", "StoreService", "SQLiteStore", "Telemetry", "EventLoop",
                "Crypto", "HTTP1", "Feed", "Wake", "Wire", "Model",
            ]),
        test(
            "FailpointTests",
            [
                "rouse", "Failpoints", "Scenario", "APNsSimulator", "SQLiteStore", "EventLoop",
                "HTTP1", "Crypto", "Feed", "Wake", "Model",
            ]),
        test(
            "RouseServerTests",
            [
                "RouseServer", "BackendAPI", "SyncService", "StoreService", "MemoryStore",
                "Telemetry", "EventLoop", "Feed", "Wake", "Wire", "Model",
            ]),
        test("ConformanceTests", ["Conformance"]),
        test("BenchTests", ["rouse", "Bench", "Scenario"]),
        // Servers with one defect each, for `rouse conform --mutants`; the shipped program holds
        // none of it.
        .executableTarget(
            name: "rouse-mutants",
            dependencies: ["Conformance", "Scenario", "Crypto", "Wire", "Model"],
            path: "Tests/ConformanceMutants", swiftSettings: common),
        test("LayoutTests", []),
        fuzz,
    ],
    swiftLanguageModes: [.v6]
)
