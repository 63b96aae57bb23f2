import Wire

extension Mutation {
    /// Tells operations apart that came under one number: FNV-1a (64 bits) over the operation as
    /// this server writes it, then the finalizer of SplitMix64, of 63 bits. A device compares
    /// with itself only: nobody gains by a collision.
    var operationHash: UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in Mutation(number: 0, operation: operation).encoded {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return (hash ^ (hash >> 31)) & .halfMask
    }
}
