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
