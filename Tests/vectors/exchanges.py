#!/usr/bin/python3
"""Writes Protocol/exchanges.md: resets, a snapshot, refusals and a second challenge, in bytes.

  exchanges.py           writes the page
  exchanges.py --check   fails if the page differs from what would be written

The page is made from the values below by Google's protobuf.
"""

import sys
import textwrap

import schema

MODULE = schema.load()
FRAMES = schema.frames()
PAGE = schema.PROTOCOL / "exchanges.md"


def ident(text):
    return bytes.fromhex(text.replace("-", ""))


DEVICE = bytes(range(0x10, 0x20))
ROOM = ident("0190a1b2-c3d4-7123-8456-789abcdef012")
HELLO_ID = ident("0190a1b2-c3d4-7123-8456-789abcdef013")
OLD = bytes(range(0x40, 0x50))
NEW = bytes(range(0x40, 0x48)) + bytes(range(0xa8, 0xb0))
TIME = 1795274240000
MASK = 2**64 - 1


def digest(*objects):
    """The sum of the hashes of (kind, id, version), HIS-31."""
    total = 0
    for kind, name, version in objects:
        value = 0xCBF29CE484222325
        for byte in bytes([kind]) + name + version.to_bytes(8, "big"):
            value = (value ^ byte) * 0x100000001B3 & MASK
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
        total = total + (value ^ value >> 31) & MASK
    return {"count": len(objects), "hash": total}


def cursor(epoch, seq):
    return {"epoch": epoch, "seq": seq}


def entry(seq, version=1, **body):
    return {"seq": seq, "conversation": ROOM, "version": version, **body}


def filled(message, value):
    for name, content in value.items():
        if isinstance(content, dict):
            inner = getattr(message, name)
            inner.SetInParent()
            filled(inner, content)
        elif isinstance(content, list) and content and isinstance(content[0], dict):
            for one in content:
                filled(getattr(message, name).add(), one)
        elif isinstance(content, list):
            getattr(message, name).extend(content)
        else:
            setattr(message, name, content)
    return message


def frame(side, name, request, value):
    """The lines of one frame, as in example.md."""
    type_byte, kind = FRAMES[name]
    body = filled(getattr(MODULE, kind)(), value).SerializeToString(deterministic=True)
    header = len(body).to_bytes(3, "big") + bytes([type_byte, 0, 0]) + request.to_bytes(2, "big")
    lines = [f"{side} {name:15} {header.hex(' ')}"]
    for start in range(0, len(body), 24):
        lines.append("    " + body[start:start + 24].hex(" "))
    return "```\n" + "\n".join(lines) + "\n```"


def prose(text):
    # Words in brackets and backticks are never broken at hyphens.
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False,
                         break_long_words=False)


STATE = {"conversation_state": {"created_ms": TIME, "creator": "ben"}}
ANNA = {"participant": {"user": "anna"}}
BEN = {"participant": {"user": "ben"}}
LINE = {"object": HELLO_ID, "message": {
    "position": 1, "sender": "ben", "sent_ms": TIME + 500,
    "parts": [{"mime_type": "text/plain", "content": b"Hello"}],
    "push": {"title": "Ben", "body": "Hello"}}}


def hello(request, sync=None, features=("live",)):
    value = {
        "version_min": 1, "version_max": 1, "app": "shop", "device": DEVICE, "role": 1,
        "client_name": "example", "client_version": "1", "features": list(features),
        "session_token": bytes(range(0x80, 0xa0)), "app_state": {"phase": 1}}
    if sync is not None:
        value["sync"] = sync
    return frame("C", "HELLO", request, value)


def welcome(request, epoch, token, features=("live",), floor=1):
    return frame("S", "WELCOME", request, {
        "version": 1, "session_token": bytes(range(token, token + 32)),
        "session_token_lifetime_ms": 2592000000, "server_time_ms": TIME + 60000, "epoch": epoch,
        "mutation_floor": floor, "keepalive_ms": 174208, "features": list(features),
        "limits": {"body_bytes": 262144, "window_bytes": 262144, "window_deltas": 256,
                   "mutations_unanswered": 32, "message_bytes": 65536,
                   "participants_per_request": 256},
        "node": "one", "user": "anna"})


def page():
    """The parts of the page, in order: a heading, prose, or a frame."""
    conversations = digest((1, ROOM, 1))
    messages = digest((3, HELLO_ID, 1))
    return [
        "# Resets, a snapshot, refusals and a second challenge in bytes",
        prose("""What [example.md](example.md) does not show: the days on which something is in the
            way. Written in the same form; the device is the one of that page, some time later. Each
            exchange names the cases of `rouse conform` that play it with a server. Written by
            `Tests/vectors/exchanges.py` with Google's protobuf."""),
        "## A reset by the feed",
        prose("""The device comes back with the cursor (epoch, 4) and without the feature `snapshot`.
            Its user's history is another one since: the server was restored from a backup
            (`sync.other-epoch`, `sync.reset-once`)."""),
        hello(1, {"cursor": cursor(OLD, 4), "applied": 4, "reason": 1, "reset_head": 3}),
        prose("""WELCOME names the epoch in force. The client compares it with its cursor's: it sends
            no ACK of the old history any more, and keeps its mutations to itself until it is
            through ([SYN-33])."""),
        welcome(1, NEW, 0x20, floor=0),
        prose("""The DELTA says `reset`, reason *epoch changed*: `from` is 0 in the new epoch. The
            client marks all its rows stale, stores these, and with them (new epoch, 2). There is
            `more`."""),
        frame("S", "DELTA", 1, {
            "entries": [entry(1, **STATE), entry(2, **ANNA)],
            "from": cursor(NEW, 0), "to": cursor(NEW, 2), "head": 4, "more": True,
            "reset": {"reason": 3}}),
        prose("""Here and from now on it says with its cursor that its rows began when the feed's head
            was 4 ([SYN-34])."""),
        frame("C", "SYNC", 2, {
            "cursor": cursor(NEW, 2), "applied": 2, "reason": 1, "reset_head": 4}),
        prose("""The rest, without `reset` and without `more`: after it, what is still stale goes.
            `unread` is what the icon shows."""),
        frame("S", "DELTA", 2, {
            "entries": [entry(3, **BEN), entry(4, **LINE)],
            "from": cursor(NEW, 2), "to": cursor(NEW, 4), "head": 4, "unread": 1}),
        frame("C", "ACK", 0, {"applied": 4}),
        "## A reset that has to wait its turn",
        prose("""After a restore all devices come at once: this one is asked to come with its next
            SYNC after 2.5 s ([SYN-26]). Nothing is stored but what the DELTA says; rows stay usable
            and are not stale yet."""),
        frame("S", "DELTA", 1, {
            "from": cursor(NEW, 0), "to": cursor(NEW, 0), "head": 4,
            "reset": {"reason": 3, "retry_after_ms": 2500}}),
        "## A snapshot",
        prose("""Another device of the user logs in for the first time. It asks for the features
            `live` and `snapshot`, and has no cursor (`history.snapshot-reset`, `history.snapshot`).
            After WELCOME:"""),
        frame("C", "SYNC", 2, {"reason": 1}),
        prose("""No entries, `from` and `to` at 0: the client takes a snapshot ([HIS-13])."""),
        frame("S", "DELTA", 2, {
            "from": cursor(NEW, 0), "to": cursor(NEW, 0), "head": 4, "reset": {"reason": 1}}),
        frame("C", "SNAPSHOT", 3, {"messages": 20}),
        prose("""The first page: `start` is (new epoch, 4), fixed before anything was read. One
            conversation whole: its state, both participants, and its messages, complete from
            position 1, one of them unread. Entries have `seq` 0. There is a `continuation`: rows,
            `start` and it are stored together ([HIS-20]); the client is usable now."""),
        frame("S", "SNAPSHOT_PAGE", 3, {
            "conversations": [{
                "conversation": ROOM, "complete_from": 1, "unread": 1,
                "participants_complete": True,
                "entries": [entry(0, **STATE), entry(0, **ANNA), entry(0, **BEN),
                            entry(0, **LINE)]}],
            "start": cursor(NEW, 4), "continuation": bytes(range(0xc0, 0xd0))}),
        frame("C", "SNAPSHOT", 4, {"messages": 20, "continuation": bytes(range(0xc0, 0xd0))}),
        prose("""The last page holds nothing more and no `continuation`: `start` is the cursor now,
            the icon shows `unread` ([HIS-37]), and the client syncs from `start`."""),
        frame("S", "SNAPSHOT_PAGE", 4, {"start": cursor(NEW, 4), "unread": 1}),
        frame("C", "SYNC", 5, {
            "cursor": cursor(NEW, 4), "applied": 4, "reason": 1, "reset_head": 4}),
        frame("S", "DELTA", 5, {
            "from": cursor(NEW, 4), "to": cursor(NEW, 4), "head": 4, "unread": 1}),
        prose("""In sync, it proves it ([HIS-23]): one conversation, no read mark, one message, of the
            newest 50 positions of each conversation ([HIS-31])."""),
        frame("C", "DIGEST", 6, {
            "cursor": cursor(NEW, 4), "conversations": conversations,
            "read_marks": digest(), "messages": messages, "positions": 50}),
        prose("""The server's sums at the same cursor are the same: both hold the same."""),
        frame("S", "DIGEST_RESULT", 6, {
            "cursor": cursor(NEW, 4), "comparable": True, "conversations": conversations,
            "read_marks": digest(), "messages": messages}),
        "## Refusals",
        prose("""A message to a conversation that does not exist, or that the user does not take part
            in: the answer is the same, 4004 with class *none*, and final ([MSG-15],
            `messaging.unknown-alike`)."""),
        frame("C", "MUTATE", 7, {"number": 1, "send_message": {
            "conversation": bytes([0xee]) * 16, "message": bytes([0xef]) * 16,
            "parts": [{"mime_type": "text/plain", "content": b"Anybody?"}]}}),
        frame("S", "MUTATION_RESULT", 7, {"number": 1, "code": 4004}),
        prose("""Too much at once: 1002, class *retry after*. It is not stored; the client sends
            number 2 again after 1.2 s, and everything behind it ([MSG-11], [CON-15])."""),
        frame("S", "MUTATION_RESULT", 8, {
            "number": 2, "code": 1002, "retry": 2, "retry_after_ms": 1200}),
        prose("""An ACK above the head of the feed: ERROR 3003, class *resync*. The connection goes on
            ([SYN-15], `sync.ack-ahead`)."""),
        frame("C", "ACK", 0, {"applied": 99}),
        frame("S", "ERROR", 0, {
            "code": 3003, "name": "ack_ahead", "retry": 4, "detail": "above the head"}),
        "## A second challenge",
        prose("""The lifetime of the session token is over, the session is open: the socket stays, and
            nothing is served until a new identity token is there ([SES-21],
            `session.asked-again`)."""),
        frame("S", "CHALLENGE", 0, {
            "nonce": bytes(range(32)), "lifetime_ms": 60000, "reason": 2}),
        frame("C", "AUTHENTICATE", 0, {"identity_token": "eyJhbGciOiJFZERTQSIsImtpZCI6IjIwMjYifQ..."}),
        prose("""It does not verify: ERROR 2001. The client may answer twice more ([SES-11])."""),
        frame("S", "ERROR", 0, {
            "code": 2001, "name": "token_invalid", "retry": 3, "detail": "identity token refused"}),
        prose("""With a good token a second WELCOME follows, request 0, and everything goes on where
            it stopped ([SES-22])."""),
        welcome(0, NEW, 0x30, features=("live", "snapshot")),
        "## Superseded",
        prose("""The same installation has connected anew, over another network: the older connection
            ends with 5002, class *none* ([SES-15], [SES-16], `session.supersede`)."""),
        frame("S", "CLOSE", 0, {"code": 5002}),
    ]


def main():
    text = "\n\n".join(page()) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("Protocol/exchanges.md is not what exchanges.py writes")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(text)


main()
