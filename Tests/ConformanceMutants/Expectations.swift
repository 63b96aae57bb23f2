/// Which cases must fail against which mutant: all of them, and no others.
enum Expectations {
    static let catches: [String: Set<String>] = [:]
}
