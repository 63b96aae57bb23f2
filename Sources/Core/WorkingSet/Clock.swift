/// Objects in a ring with a hand that passes over those asked for since it last came by, and
/// takes out the first that was not.
struct Clock<Element: Passable> {
    private var elements: [Element] = []
    private var hand = 0

    var count: Int { elements.count }

    mutating func add(_ element: Element) { elements.append(element) }

    /// Moves the hand by one.
    ///
    /// - Returns: what it took out; `nil`: it passed over one.
    mutating func passOver() -> Element? {
        guard !elements.isEmpty else { return nil }
        if hand >= elements.count { hand = 0 }
        let element = elements[hand]
        if element.isRecent && !element.isGone {
            element.isRecent = false
            hand += 1
            return nil
        }
        elements.swapAt(hand, elements.count - 1)
        elements.removeLast()
        return element
    }
}

/// What a clock can pass over.
protocol Passable: AnyObject {
    /// It was asked for since the hand last passed.
    var isRecent: Bool { get set }
    /// It is of no use any more.
    var isGone: Bool { get }
}
