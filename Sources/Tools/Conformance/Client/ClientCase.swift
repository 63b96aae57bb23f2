/// One thing a client must do, and the script of the server that shows it.
struct ClientCase: Sendable {
    /// Section and name, such as `sync.client-gap`.
    let name: String
    let section: Section
    let level: Level
    /// What holds if the case passes.
    let title: String
    let citations: [Citation]
    /// How long it may take; `nil`: as long as any.
    let seconds: Int?
    /// Waits for timers of the client's own.
    let isTimer: Bool
    let run: @Sendable (ClientTrial) throws -> Void

    static func must(
        _ name: String, _ title: String, _ citations: [Citation], seconds: Int? = nil,
        timer: Bool = false, run: @escaping @Sendable (ClientTrial) throws -> Void
    ) -> ClientCase {
        ClientCase(name, .must, title, citations, seconds, timer, run)
    }

    static func should(
        _ name: String, _ title: String, _ citations: [Citation], seconds: Int? = nil,
        timer: Bool = false, run: @escaping @Sendable (ClientTrial) throws -> Void
    ) -> ClientCase {
        ClientCase(name, .should, title, citations, seconds, timer, run)
    }

    private init(
        _ name: String, _ level: Level, _ title: String, _ citations: [Citation],
        _ seconds: Int?, _ isTimer: Bool, _ run: @escaping @Sendable (ClientTrial) throws -> Void
    ) {
        guard let section = Section(rawValue: String(name.prefix { $0 != "." })) else {
            preconditionFailure("\(name): no section of the protocol")
        }
        self.name = name
        self.section = section
        self.level = level
        self.title = title
        self.citations = citations
        self.seconds = seconds
        self.isTimer = isTimer
        self.run = run
    }
}
