import Model
import SyncClient

extension LocalStoreError {
    /// What went wrong with a store, also where it did not open.
    init(opening error: any Error) {
        self =
            switch error {
            case let error as LocalStoreError: error
            case StoreError.full(let why): .full(why)
            case StoreError.corrupt(let why): .corrupt(why)
            case StoreError.conflict(let why), StoreError.unavailable(let why): .unavailable(why)
            default: .unavailable("\(error)")
            }
    }
}
