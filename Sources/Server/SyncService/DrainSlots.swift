import Model

/// When each of many clients is to connect again after a drain: one after the other over the time
/// there is, so that the next server is not stormed. Chance alone would leave crowds.
enum DrainSlots {
    /// The turn of the connection `number` (from 0) of `count`, in milliseconds: at least
    /// 0 and below `time`.
    static func slot(_ number: Int, of count: Int, within time: Milliseconds) -> Milliseconds {
        precondition(number >= 0 && number < count, "connection \(number) of \(count)")
        let (product, overflow) = time.multipliedReportingOverflow(by: UInt64(number))
        // So long a drain need not be divided to the millisecond.
        return overflow ? time / UInt64(count) * UInt64(number) : product / UInt64(count)
    }
}
