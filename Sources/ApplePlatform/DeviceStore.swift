#if canImport(Darwin)
    public import Foundation
    import Model
    import SQLiteStore
    public import SyncClient

    extension TableLocalStore {
        /// Opens a device's store in one SQLite file, or makes it.
        ///
        /// - Parameters:
        ///   - path: in a folder that exists and that no backup takes (`rouseFolder`), in the app's
        ///     own container: the file is locked as long as it is open, and iOS ends an app that is
        ///     suspended with a lock in the container of an app group.
        ///   - keepsOwed: for an app that tells its user of what comes; not for its extension.
        /// - Throws: the phone is locked since its restart or another process has the file open
        ///   (`.unavailable`), its disk is `.full`, the file is damaged (`.corrupt`), or a newer
        ///   version of the app has used it (`.newer`). Damage may also be met later, by whatever
        ///   reads it.
        public convenience init(
            file path: String, keepsOwed: Bool = false
        ) throws(LocalStoreError) {
            let store: SQLiteStore
            do throws(StoreError) {
                store = try SQLiteStore(path: path, tables: LocalSchema.tables, options: .device)
            } catch {
                throw LocalStoreError(
                    error, isDamage: error.isDamage, isNewer: error.isOfNewerProgram)
            }
            self.init(store: store, keepsOwed: keepsOwed)
        }
    }

    extension FileManager {
        /// A folder of the app's own container for the store's files, made if there is none.
        ///
        /// No backup takes it: it holds the session's token beside texts in clear, in a journal
        /// that comes and goes, too. All of it comes again from the server.
        public func rouseFolder(named name: String = "Rouse") throws -> URL {
            var folder = try url(
                for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil,
                create: true
            ).appendingPathComponent(name, isDirectory: true)
            try createDirectory(at: folder, withIntermediateDirectories: true)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try folder.setResourceValues(values)
            return folder
        }
    }
#endif
