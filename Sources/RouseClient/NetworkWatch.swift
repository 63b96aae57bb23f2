/// What of the system's words about the network a client is to be told: `Rouse.networkChanged` ends
/// a back-off, and asks a connection whether it is alive.
public struct NetworkWatch: Sendable {
    private var last: (isUp: Bool, interface: String)?

    public init() {}

    /// The system's word: whether there is a network, and by which interface it is reached first.
    ///
    /// - Returns: whether the client is to be told. It is not of the first word, which tells of no
    ///   change, of a network that goes, and of news about the one that it has.
    public mutating func changed(isUp: Bool, interface: String) -> Bool {
        defer { last = (isUp, interface) }
        guard isUp, let last else { return false }
        return !last.isUp || last.interface != interface
    }
}
