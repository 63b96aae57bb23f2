extension Configuration {
    /// Reads a file's text, the environment over it, and `key=value` words over both.
    /// - Parameter name: stands for the file in error messages.
    /// - Throws: all that is wrong, together.
    public init(
        text: String, name: String, environment: [String: String], overrides: [String] = []
    ) throws(ConfigurationError) {
        let reading = ConfigurationReading(
            text: text, name: name, environment: environment, overrides: overrides)
        if let error = reading.error { throw error }
        self = reading.configuration
    }

    /// The settings in force, one a line, with paths as they are from the working directory.
    /// Passwords are left out; keys are files, of which only the names are told.
    public var text: String {
        shown.map { "\($0.key) = \(ConfigurationFile.written($0.value))\n" }.joined()
    }

    /// The same as keys and values, for whoever writes them otherwise.
    public var shown: [(key: String, value: String)] {
        Self.fields.map { (key: $0.key, value: $0.show(self)) }
    }

    /// A commented file with every setting at its default.
    public static var example: String {
        "# Every setting of the server, with its default. Each can also be set by an\n"
            + "# environment variable: store.path is ROUSE_STORE_PATH.\n\n"
            + settings.map { setting in
                "# \(setting.help)\n"
                    + (setting.range.isEmpty ? "" : "# (\(setting.range))\n")
                    + "#\(setting.key) ="
                    + "\(setting.value.isEmpty ? "" : " \(setting.value)")\n"
            }.joined(separator: "\n")
    }

    /// Every setting there is, for help, completion and the manual: what it is for, the values it
    /// takes where that is a range, and its default.
    public static var settings: [(key: String, help: String, range: String, value: String)] {
        let defaults = Configuration()
        return fields.map {
            (key: $0.key, help: $0.help, range: $0.range, value: $0.show(defaults))
        }
    }

    /// How the file is written, for the manual.
    public static let format = """
        One setting a line: `key = value`. # begins a comment. A value may stand in double quotes.
        Relative paths start at the file's own folder; those of the environment and of --set start
        at the working directory. A time is written as 90s, 15m, 2h or 3d, a size as 64MiB, a rate
        as 50/s; a bare number is of seconds, bytes or a second.

        Over the file stands the environment, store.path being ROUSE_STORE_PATH, and over both
        --set key=value. A key or a variable ROUSE_... that names no setting is an error, and so is
        a key that is set twice. `rouse serve --check-config` tells all mistakes at once.
        """
}
