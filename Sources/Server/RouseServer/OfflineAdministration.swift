import BackendAPI
import Crypto
import Feed
import Model
import StoreService

/// The admin API on a store that no server has open: for `rouse app --store`.
///
/// Opening a file takes the server's lock, so a server cannot start meanwhile; of a database the
/// nodes go on, and what changes reaches them with their turns.
public final class OfflineAdministration {
    private let store: StoreService
    private let desk: AdminDesk

    /// Opens the store.
    ///
    /// - Parameters:
    ///   - makesStore: Whether it is made if it is not there, or its tables.
    ///   - upgrades: What is done about an older schema.
    /// - Throws: `StoreError`: another process has the file open, or it cannot be used.
    public init(
        _ place: StorePlace, makesStore: Bool = false, upgrades: StoreUpgrades = StoreUpgrades()
    ) throws {
        let place = makesStore ? place : place.asItIs
        let random = Random.bytes(24)
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
            bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        store = try StoreService.start(
            // The rows of a removed app go while there is somebody to do it.
            duties: [
                StoreDuty(
                    name: "retention", request: .enforceRetention(rows: 512), interval: 1000,
                    follows: .removals)
            ], boot: BootID(high: number(random[..<8]), low: number(random[8..<16])),
            epochHalf: number(random[16...]) >> 1,
            open: { try place.open(upgrades: upgrades) }, onCommit: { _ in })
        do {
            desk = try AdminDesk(store: store)
        } catch {
            store.stop()
            throw error
        }
    }

    /// Carries out one request of the admin API: HTTP status, and JSON or nothing.
    public func answer(
        method: String, path: [String], query: [(name: String, value: String)] = [], body: [UInt8]
    ) -> (status: Int, body: [UInt8]) {
        desk.answer(method: method, path: path, query: query, body: body)
    }

    /// Gives the file back.
    public func close() {
        desk.stop()
        store.stop()
    }
}
