import Foundation
import Model

/// A store whose transactions run to their end and are then not committed, as long as a file is
/// there: everything was decided and every answer is known, and nothing of it is on disk.
final class UncommittedStore: Store {
    private let inner: any Store
    /// Its presence is what fails the commits.
    private let file: String
    /// As long as it is there, no transaction begins; one with `.on` behind its name says that one
    /// waits.
    private let holdFile: String

    init(_ inner: any Store, whileThereIs file: String, heldBy holdFile: String) {
        self.inner = inner
        self.file = file
        self.holdFile = holdFile
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        while FileManager.default.fileExists(atPath: holdFile) {
            _ = FileManager.default.createFile(atPath: holdFile + ".on", contents: nil)
            usleep(1_000)
        }
        try inner.write { transaction throws(StoreError) in
            try body(transaction)
            if FileManager.default.fileExists(atPath: file) {
                throw .full("the commit failed, as the test wants it")
            }
        }
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try inner.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try inner.reader() }
    var isSoleWriter: Bool { inner.isSoleWriter }
    func now() -> Timestamp { inner.now() }
    func checkpoint() throws(StoreError) { try inner.checkpoint() }
    var isCheckpointDue: Bool { inner.isCheckpointDue }
    var isJournalFull: Bool { inner.isJournalFull }
    func close() { inner.close() }
}
