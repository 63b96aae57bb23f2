#if canImport(Darwin)
    public import Model
    import SQLiteStore
    public import SyncClient

    extension TableLocalStore {
        /// Opens a device's store in one SQLite file, or makes it.
        ///
        /// - Parameters:
        ///   - path: in a folder that exists, in the app's own container: the file is locked as
        ///     long as it is open, and iOS ends an app that is suspended with a lock in the
        ///     container of an app group.
        ///   - keepsOwed: for an app that tells its user of what comes; not for its extension.
        /// - Throws: the phone is locked since its restart or another process has the file open
        ///   (`.unavailable`), its disk is `.full`, or the file is damaged (`.corrupt`).
        public convenience init(
            file path: String, keepsOwed: Bool = false
        ) throws(StoreError) {
            var options = SQLiteOptions()
            // For one user's rows on a phone.
            options.cacheSize = 4 * 1_024
            options.readerCacheSize = 1_024
            options.journalStep = 1 << 20
            options.journalLimit = 4 << 20
            let store: SQLiteStore
            do throws(StoreError) {
                store = try SQLiteStore(
                    path: path, tables: LocalSchema.tables, options: options)
            } catch {
                throw error.isDamage ? .corrupt("\(error)") : error
            }
            self.init(store: store, keepsOwed: keepsOwed)
        }
    }
#endif
