import FoundationEssentials

/// What a file, the environment and the command line say together, and all that is wrong with it.
public struct ConfigurationReading: Sendable {
    /// What could be read.
    public private(set) var configuration = Configuration()
    /// Where each setting was said that is not at its default.
    private var places: [String: String] = [:]
    /// Settings with a mistake.
    private var wrongKeys: [String] = []
    /// In the order of the places.
    private var problems: [ConfigurationFile.Problem] = []

    /// What is wrong, all of it; `nil`: nothing.
    public var error: ConfigurationError? {
        if problems.isEmpty { return nil }
        let sorted = problems.enumerated()
            .sorted { ($0.element.order, $0.offset) < ($1.element.order, $1.offset) }
        return ConfigurationError(
            sorted.map(\.element.text), isOfTime: problems.allSatisfy(\.isOfTime))
    }

    /// Reads a file, the environment over it, and `key=value` words over both.
    ///
    /// - Parameter file: `nil`: there is none.
    /// - Throws: `ConfigurationError`: the file cannot be read.
    public init(
        file: String?, environment: [String: String], overrides: [String] = []
    ) throws(ConfigurationError) {
        guard let file else {
            self.init(text: "", name: "", environment: environment, overrides: overrides)
            return
        }
        let bytes: [UInt8]
        switch FileReading.read(file) {
        case .success(let read): bytes = read
        case .failure(let reason):
            let isThere = FileManager.default.fileExists(atPath: file)
            throw ConfigurationError(
                "--config \(file): "
                    + (isThere ? "cannot be read: \(reason)" : "there is no such file"))
        }
        self.init(
            text: String(decoding: bytes, as: UTF8.self), name: file, environment: environment,
            overrides: overrides)
    }

    /// The same from the text of a file.
    ///
    /// - Parameter name: The file's path: it stands in messages, and its folder is where relative
    ///   paths start.
    public init(
        text: String, name: String, environment: [String: String], overrides: [String]
    ) {
        let keys = Configuration.fields.map(\.key)
        var file = ConfigurationFile(text: text, name: name)
        file.override(with: environment, keys: keys)
        var settings = file.settings
        problems = file.problems
        for override in overrides {
            // What is set may be a secret.
            let place = "--set \(ConfigurationFile.key(in: override))"
            let said = ConfigurationFile(text: override, place: place)
            settings += said.settings
            problems += said.problems
        }
        if let slash = name.lastIndex(of: "/") {
            configuration.folder = String(name[...slash])
            configuration.storePath = configuration.folder + configuration.storePath
        }
        for setting in settings { take(setting, keys) }
    }

    private mutating func take(_ setting: ConfigurationFile.Setting, _ keys: [String]) {
        guard let field = Configuration.fields.first(where: { $0.key == setting.key }) else {
            let meant = Spelling.nearest(setting.key, among: keys)
            note(
                setting,
                "unknown key `\(ConfigurationFile.key(in: setting.key))`"
                    + (meant.map { "; did you mean `\($0)`?" } ?? ""))
            return
        }
        places[setting.key] = setting.place
        guard !setting.value.contains(where: \.isNewline) else {
            note(setting, "\(setting.key) must be one line")
            return
        }
        var value = setting.value
        if field.isPath, setting.isInFile, !value.isEmpty, !value.hasPrefix("/") {
            value = configuration.folder + value
        }
        if let problem = field.read(&configuration, value) {
            wrongKeys.append(setting.key)
            note(setting, "\(setting.key) \(problem), not `\(setting.value.legible)`")
        }
    }

    private mutating func note(_ setting: ConfigurationFile.Setting, _ text: String) {
        problems.append(
            ConfigurationFile.Problem(order: setting.order, text: "\(setting.place): \(text)"))
    }

    /// Adds what is wrong with settings that can be read: files that are not there, limits that do
    /// not fit. Each is named with its place if the setting has one.
    public mutating func look() {
        for problem in Server.problems(configuration) {
            if problem.keys.contains(where: { wrongKeys.contains($0) }) { continue }
            let place = problem.keys.compactMap { places[$0] }.first
            problems.append(
                ConfigurationFile.Problem(
                    order: .max, text: place.map { "\($0): \(problem.text)" } ?? problem.text,
                    isOfTime: problem.isOfTime))
        }
    }
}
