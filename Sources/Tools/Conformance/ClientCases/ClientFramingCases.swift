import Model
import Wire

// framing.md: what a client takes, and what ends its connection.

/// Faults of a server's frames, and the code that a receiver closes with.
private let faults: [(name: String, citation: Citation, code: Code, bytes: [UInt8])] = [
    (
        "unknown-type", "FRM-9: without IGNORABLE, MUST close the connection with 4008",
        .unknownFrame, RawFrame(UInt8(0x6F), body: [1, 2, 3]).bytes
    ),
    (
        "flags", "FRM-6: A receiver that finds one set MUST close the connection with 5004",
        .protocolViolation, RawFrame.ping(0).with { $0.flags = 2 }.bytes
    ),
    (
        "reserved",
        "FRM-7: A receiver that finds another value MUST close the connection with 5004",
        .protocolViolation, RawFrame.ping(0).with { $0.reserved = 1 }.bytes
    ),
    (
        "too-long", "FRM-13: A receiver that finds a greater length MUST close the connection",
        .tooLarge, RawFrame(FrameType.delta).with { $0.length = 262_145 }.bytes
    ),
    (
        "no-body", "FRM-20: MUST be answered with CLOSE 4000", .malformed,
        RawFrame(FrameType.delta, body: [0x0A, 0x7F, 0x01]).bytes
    ),
]

let clientFramingCases: [ClientCase] =
    faults.flatMap { fault in
        [
            ClientCase.must(
                "framing.client-\(fault.name)", "a client ends a stream with this fault",
                [fault.citation, "FRM-12: and MUST close. Frames complete before the fault count"]
            ) { trial in
                let link = try trial.open()
                try link.peer.send(bytes: fault.bytes)
                try link.expectEnd("after the fault")
                // And goes on over a new one.
                try trial.accept().logIn()
            },
            ClientCase.should(
                "framing.client-\(fault.name)-code", "a client says why it ends the stream",
                [fault.citation, "FRM-12: SHOULD send CLOSE with the code"]
            ) { trial in
                let link = try trial.open()
                try link.peer.send(bytes: fault.bytes)
                try link.expectEnd("after the fault")
                try requireEqual(link.close?.code, fault.code.rawValue, "the code of its CLOSE")
            },
        ]
    } + [
        .must(
            "framing.client-ignorable", "a client steps over an unknown frame with IGNORABLE",
            ["FRM-8: A receiver MUST step over a frame whose type it does not know"]
        ) { trial in
            let link = try trial.open()
            for body: [UInt8] in [[], [0xFF, 0xFF, 0xFF], [UInt8](repeating: 7, count: 100_000)] {
                let frame = RawFrame(UInt8(0x91), body: body).with { $0.flags = 4 }
                try link.peer.send(bytes: frame.bytes)
            }
            // On a type it knows the flag changes nothing.
            try link.peer.send(bytes: RawFrame.ping(9).with { $0.flags = 4 }.bytes)
            let (_, request) = try link.expect(.pong)
            try requireEqual(request, 9, "the request of PONG")
        },
        .must(
            "framing.client-unknown-fields", "a client steps over fields it does not know",
            ["FRM-21: A receiver MUST step over fields it does not know"]
        ) { trial in
            let link = try trial.open()
            let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
            trial.feed.say("with more", in: conversation)
            let delta = trial.feed.delta(from: trial.feed.cursor(link.applied))
            let body = Frame(.delta(delta)).encoded.dropFirst(Frame.headerBytes)
            let frame = RawFrame(FrameType.delta, body: Array(body) + Field.unknown)
            try link.peer.send(bytes: frame.bytes)
            try link.settle()
            try requireEqual(try trial.texts(in: conversation), ["with more"], "what it holds")
        },
        .must(
            "framing.client-split", "a client takes frames in pieces of any size",
            ["FRM-1: a receiver MUST take them in pieces of any size"]
        ) { trial in
            try trial.tell("foreground")
            let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
            for number in 1...3 { trial.feed.say("line \(number)", in: conversation) }
            let link = try trial.accept(.split)
            try link.logIn()
            try link.settle()
            try requireEqual(try trial.texts(in: conversation).count, 3, "messages held")
        },
        .must(
            "framing.client-well-formed", "a client's own frames are well formed",
            [
                "FRM-2", "FRM-4", "FRM-6: A sender MUST leave flags 2 and 8 to 128 at 0",
                "FRM-7: A sender MUST set the reserved byte to 0",
            ]
        ) { trial in
            let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
            let link = try trial.open()
            try trial.tell("send \(conversation) \(trial.newMessage()) well formed")
            try link.pump(until: "the mutation") { !$0.mutations.isEmpty }
            try trial.tell("background 20000")
            try link.serve(for: .milliseconds(500))
            try requireEqual(link.peer.anomalies, [], "what is wrong with its frames")
        },
    ]
