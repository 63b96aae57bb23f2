import Model
import Wire

/// How long a client waits after each of so many failed attempts.
private func delays(_ trial: ClientTrial, count: Int) throws -> [Duration] {
    var found: [Duration] = []
    try trial.refuse()
    for bound in [1, 2, 4, 8, 16, 30].prefix(count) {
        let start = ContinuousClock.now
        try trial.refuse(within: .seconds(bound + 3))
        found.append(start.duration(to: .now))
    }
    return found
}

// connection.md: when a client tries again.
let clientBackoffCases: [ClientCase] = [
    .must(
        "connection.client-backoff", "attempts come later and later, at random times",
        ["CON-14: waits a random time between 0 and a bound"], seconds: 60, timer: true
    ) { trial in
        try trial.tell("foreground")
        let found = try delays(trial, count: 4)
        for (delay, bound) in zip(found, [1, 2, 4, 8]) {
            // A connection takes a moment of its own.
            try require(
                delay < .milliseconds(bound * 1_000 + 1_500),
                "\(delay) where \(bound) s is the most")
        }
        let sum = found.reduce(Duration.zero, +)
        // Four random times that are so short come once in 10,000 runs.
        try require(sum > .milliseconds(700), "no back-off: \(found)")
        let isFixed = zip(found, [1, 2, 4, 8]).allSatisfy { $0 > .milliseconds($1 * 900) }
        try require(!isFixed, "no chance in it: \(found)")
    },
    .must(
        "connection.client-backoff-reset", "the bound starts again after a healthy session",
        ["CON-14: The first attempt after a healthy session comes after 0 to 5 s"], seconds: 75,
        timer: true
    ) { trial in
        try trial.tell("foreground")
        _ = try delays(trial, count: 4)
        let link = try trial.accept(within: .seconds(18))
        try link.logIn()
        try link.settle()
        link.peer.cut()
        var start = ContinuousClock.now
        try trial.refuse(within: .seconds(8))
        try require(start.duration(to: .now) < .milliseconds(6_500), "no early attempt")
        for bound in [1, 2] {
            start = .now
            try trial.refuse(within: .seconds(bound + 3))
            try require(
                start.duration(to: .now) < .milliseconds(bound * 1_000 + 1_500),
                "the bound did not start again at 1 s")
        }
    },
    .must(
        "connection.client-backoff-network", "the bound starts again after a network change",
        ["CON-14: The bound starts again after a network change"], seconds: 60, timer: true
    ) { trial in
        try trial.tell("foreground")
        _ = try delays(trial, count: 4)
        let start = ContinuousClock.now
        try trial.tell("network")
        try trial.refuse(within: .seconds(4))
        try require(start.duration(to: .now) < .milliseconds(2_500), "it waits on")
    },
]
