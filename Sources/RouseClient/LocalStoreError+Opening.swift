import Model
import SyncClient

extension LocalStoreError {
    /// What went wrong with a store, also where it did not open.
    init(opening error: any Error) {
        self =
            switch error {
            case let error as LocalStoreError: error
            case let error as StoreError: LocalStoreError(error)
            default: .unavailable("\(error)")
            }
    }
}
