import Model

/// A store that stands before another one, and changes of it what a test wants changed.
protocol FrontedStore: Store {
    var fronted: any Store { get }
}

extension FrontedStore {
    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try fronted.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try fronted.reader() }
    func now() -> Timestamp { fronted.now() }
    func checkpoint() throws(StoreError) { try fronted.checkpoint() }
    func close() { fronted.close() }
}
