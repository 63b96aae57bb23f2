import Wire

/// A type of frame that a case waits for, with its body's Swift type.
struct Kind<Body> {
    let type: FrameType
    let take: (FrameBody) -> Body?
}

extension Kind where Body == Challenge {
    static var challenge: Self {
        Kind(type: .challenge) { if case .challenge(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Welcome {
    static var welcome: Self {
        Kind(type: .welcome) { if case .welcome(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Delta {
    static var delta: Self {
        Kind(type: .delta) { if case .delta(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == SyncRequest {
    static var syncRequest: Self {
        Kind(type: .syncRequest) { if case .syncRequest(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == MutationResult {
    static var mutationResult: Self {
        Kind(type: .mutationResult) {
            if case .mutationResult(let body) = $0 { body } else { nil }
        }
    }
}

extension Kind where Body == ErrorFrame {
    static var error: Self {
        Kind(type: .error) { if case .error(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Close {
    static var close: Self {
        Kind(type: .close) { if case .close(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Pong {
    static var pong: Self {
        Kind(type: .pong) { if case .pong(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == PageFrame {
    static var page: Self {
        Kind(type: .page) { if case .page(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == SnapshotPage {
    static var snapshotPage: Self {
        Kind(type: .snapshotPage) { if case .snapshotPage(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == DigestResult {
    static var digestResult: Self {
        Kind(type: .digestResult) { if case .digestResult(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Signal {
    static var signal: Self {
        Kind(type: .signal) { if case .signal(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Drain {
    static var drain: Self {
        Kind(type: .drain) { if case .drain(let body) = $0 { body } else { nil } }
    }
}

// Of a client.
extension Kind where Body == Hello {
    static var hello: Self {
        Kind(type: .hello) { if case .hello(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Authenticate {
    static var authenticate: Self {
        Kind(type: .authenticate) { if case .authenticate(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == SyncFrame {
    static var sync: Self {
        Kind(type: .sync) { if case .sync(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Ack {
    static var ack: Self {
        Kind(type: .ack) { if case .ack(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Mutation {
    static var mutate: Self {
        Kind(type: .mutate) { if case .mutate(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == Fetch {
    static var fetch: Self {
        Kind(type: .fetch) { if case .fetch(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == SnapshotFrame {
    static var snapshot: Self {
        Kind(type: .snapshot) { if case .snapshot(let body) = $0 { body } else { nil } }
    }
}

extension Kind where Body == DigestFrame {
    static var digest: Self {
        Kind(type: .digest) { if case .digest(let body) = $0 { body } else { nil } }
    }
}
