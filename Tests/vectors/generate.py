#!/usr/bin/python3
"""Writes Protocol/vectors from sync.proto with Google's protobuf.

  generate.py           writes the files
  generate.py --check   fails if a file differs from what would be written

The files: one a frame type, streams.json (what a receiver makes of several frames) and
invalid.json (what it refuses). Their form is described in Protocol/vectors/README.md.
"""

import base64
import json
import sys

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

import schema

OUT = schema.PROTOCOL / "vectors"
MODULE = schema.load()
FRAMES = schema.frames()
MORE, COMPRESSED, IGNORABLE = 1, 2, 4


def kind(frame):
    return getattr(MODULE, FRAMES[frame][1])


def varint(value, length=0):
    out = bytearray()
    while value >= 128 or len(out) + 1 < length:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, content):
    """A varint field for an int, else a length-delimited one."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def header(length, type_byte, flags=0, reserved=0, request=0):
    return length.to_bytes(3, "big") + bytes([type_byte, flags, reserved]) + request.to_bytes(
        2, "big")


def frame(name, body=b"", flags=0, request=0):
    return header(len(body), FRAMES[name][0], flags, 0, request) + body


def ident(first):
    return bytes((first + step) % 256 for step in range(16))


def text(data):
    return base64.b64encode(data).decode()


# MARK: Values made from the schema


def everything(message, count=1):
    """Every field set, each to another value; of a oneof its last field."""
    for part in message.DESCRIPTOR.fields:
        name = f"{part.containing_type.name}.{part.name}"
        count += 1
        if part.containing_oneof and part != part.containing_oneof.fields[-1]:
            continue
        if schema.is_message(part):
            for step in range(2 if schema.repeated(part) else 1):
                if schema.repeated(part):
                    inner = getattr(message, part.name).add()
                else:
                    inner = getattr(message, part.name)
                    inner.SetInParent()
                everything(inner, count + 20 * step)
            continue
        if part.type == FieldDescriptor.TYPE_BOOL:
            value = True
        elif part.type == FieldDescriptor.TYPE_ENUM:
            value = part.enum_type.values[-1].number
        elif part.type == FieldDescriptor.TYPE_STRING:
            value = f"{part.name} {count}"
        elif part.type == FieldDescriptor.TYPE_BYTES:
            value = ident(count) if name in schema.IDS else bytes(range(count % 7 + 1))
        else:
            value = count * 100
        if schema.repeated(part):
            getattr(message, part.name).extend([value, value + "b"])
        else:
            setattr(message, part.name, value)
    return message


def largest(message):
    """Every number and enumeration at its highest value, nested messages too."""
    for part in message.DESCRIPTOR.fields:
        name = f"{part.containing_type.name}.{part.name}"
        if part.containing_oneof and part != part.containing_oneof.fields[0]:
            continue
        if schema.is_message(part):
            if schema.repeated(part):
                largest(getattr(message, part.name).add())
            else:
                getattr(message, part.name).SetInParent()
                largest(getattr(message, part.name))
        elif part.type == FieldDescriptor.TYPE_UINT32:
            setattr(message, part.name, 2**32 - 1)
        elif part.type == FieldDescriptor.TYPE_UINT64:
            setattr(message, part.name, 2**64 - 1)
        elif part.type == FieldDescriptor.TYPE_ENUM:
            setattr(message, part.name, part.enum_type.values[-1].number)
        elif name in schema.IDS:
            setattr(message, part.name, b"\xff" * 16)
    return message


# MARK: Values as they occur

CURSOR = {"epoch": text(ident(0xE0)), "seq": "1041"}
MESSAGE = {
    "seq": "1042", "conversation": text(ident(1)), "object": text(ident(2)), "version": "1",
    "message": {
        "position": "17", "sender": "mira", "sentMs": "1760000000000",
        "parts": [{"mimeType": "text/plain", "content": text("Grüße ☕".encode())}],
        "push": {"title": "Mira", "body": "Grüße ☕"}},
}

HINTED = {
    "seq": "1051", "conversation": text(ident(1)), "object": text(ident(6)), "version": "1",
    "message": {
        "position": "19", "sentMs": "1760000000000",
        "parts": [{"mimeType": "text/plain", "content": text(b"It is on its way")}],
        "push": {"title": "Shop", "body": "It is on its way"},
        "hints": {
            "subtitle": "Order 42", "bodyKey": {"key": "ORDER_SENT", "arguments": ["42", "2"]},
            "sound": {"kind": "SOUND_KIND_NAMED", "name": "van.caf"}, "thread": "orders",
            "category": "ORDER", "interruptionLevel": "INTERRUPTION_LEVEL_TIME_SENSITIVE",
            "relevance": 701, "targetContent": "orders", "event": "order", "object": "42",
            "data": "{\"shop\":{\"id\":7}}"}},
}

OCCURRING = {
    "HELLO": [
        ("first login", {
            "versionMin": 1, "versionMax": 1, "app": "chat", "device": text(ident(9)),
            "role": "ROLE_APP", "clientName": "example", "clientVersion": "1.0",
            "appState": {"phase": "APP_PHASE_FOREGROUND", "notifications": "SETTING_ON"}}),
        ("woken, with inline sync", {
            "versionMin": 1, "versionMax": 1, "app": "chat", "device": text(ident(9)),
            "role": "ROLE_APP", "sessionToken": text(bytes(48)),
            "appState": {"phase": "APP_PHASE_BACKGROUND", "remainingMs": 25000},
            "push": {"token": text(ident(40) * 2), "topic": "org.example.chat",
                     "environment": "PUSH_ENVIRONMENT_DEVELOPMENT"},
            "sync": {"cursor": CURSOR, "applied": "1041", "mode": "SYNC_MODE_ADVANCE",
                     "reason": "SYNC_REASON_WAKE"},
            "wake": text(ident(0x77))}),
        ("extension", {
            "versionMin": 1, "versionMax": 1, "app": "chat", "device": text(ident(9)),
            "role": "ROLE_EXTENSION", "sessionToken": text(bytes(48)),
            "sync": {"cursor": CURSOR, "mode": "SYNC_MODE_PEEK"}}),
    ],
    "CHALLENGE": [("revoked", {"nonce": text(ident(3) * 2), "lifetimeMs": 60000,
                               "reason": "CHALLENGE_REASON_REVOKED"})],
    "AUTHENTICATE": [("a token", {"identityToken": "aaa.bbb.ccc"})],
    "WELCOME": [("usual", {
        "version": 1, "sessionToken": text(bytes(48)), "sessionTokenLifetimeMs": "2592000000",
        "serverTimeMs": "1760000000000", "epoch": CURSOR["epoch"], "mutationFloor": "12",
        "keepaliveMs": 180000, "node": "a",
        "limits": {"bodyBytes": 262144, "windowBytes": 262144, "windowDeltas": 256},
        "pushTokenHeld": True, "user": "mira"})],
    "SYNC": [
        ("nothing yet", {"mode": "SYNC_MODE_ADVANCE", "reason": "SYNC_REASON_CONNECT"}),
        ("a message and reads", {
            "cursor": CURSOR, "applied": "1041", "mode": "SYNC_MODE_ADVANCE",
            "reads": [{"conversation": text(ident(1)), "through": "16",
                       "ranges": [{"first": "18", "last": "20"}]}],
            "mutations": [
                {"number": "13", "delayMs": 1200, "sendMessage": {
                    "conversation": text(ident(1)), "message": text(ident(4)),
                    "parts": [{"mimeType": "text/plain", "content": text(b"x" * 200)}]}},
                {"number": "14", "forgetDevice": {}}]}),
        ("cursor at seq 0", {"cursor": {"epoch": CURSOR["epoch"]}}),
    ],
    "DELTA": [
        ("a page", {
            "entries": [MESSAGE, {
                "seq": "1043", "conversation": text(ident(1)), "version": "9",
                "readMark": {"through": "17"}}],
            "from": CURSOR, "to": {"epoch": CURSOR["epoch"], "seq": "1043"}, "head": "1050",
            "more": True, "results": [{"number": "13", "object": text(ident(4)),
                                       "position": "18"}], "mutationFloor": "13"}),
        ("every kind of entry", {"entries": [
            {"seq": "1", "conversation": text(ident(1)), "object": text(ident(1)),
             "conversationState": {"createdMs": "1760000000000", "creator": "mira",
                                   "participants": 300}},
            {"seq": "2", "conversation": text(ident(1)),
             "participant": {"user": "jon", "joinedPosition": "3", "removed": True}},
            MESSAGE,
            {"seq": "1043", "conversation": text(ident(1)), "receipt": {
                "user": "jon", "deliveredThrough": "17", "readThrough": "16"}},
            {"seq": "1044", "alerted": True, "readMark": {"ranges": [{"first": "1"}]}},
            {"seq": "1045", "conversation": text(ident(1)), "object": text(ident(2)),
             "tombstone": {"position": "17", "forEveryone": True, "by": "mira",
                           "deletedMs": "1760000000000"}},
            {"seq": "1046", "conversation": text(ident(1)), "metadata": {"values": [
                {"path": ["title"], "value": "Trip"}]}},
            {"seq": "1047", "object": text(ident(5)), "announcement": {
                "sentMs": "1760000000000", "read": True,
                "parts": [{"mimeType": "text/plain", "content": text(b"hello")}],
                "push": {"title": "News"}}},
            {"seq": "1048", "conversation": text(ident(1)), "conversationSettings": {
                "muted": True, "mutedUntilMs": "1760003600000"}},
            {"seq": "1049", "block": {"user": "kim", "blocked": True}}]}),
        ("push hints", {"entries": [HINTED, {
            "seq": "1052", "object": text(ident(5)), "announcement": {
                "sentMs": "1760000000000",
                "parts": [{"mimeType": "text/plain", "content": text(b"hello")}],
                "hints": {"event": "news", "object": "7",
                          "sound": {"kind": "SOUND_KIND_NONE"}}}}]}),
        ("the last page", {"to": CURSOR, "head": "1041", "unread": 3, "digestWanted": True}),
        ("reset", {"reset": {"reason": "RESET_REASON_EPOCH_CHANGED", "retryAfterMs": 5000}}),
    ],
    "SYNC_REQUEST": [("urgent", {"head": "1050", "kinds": 4, "urgent": True})],
    "ACK": [("ranges of a peek", {"applied": "1041",
                                  "ranges": [{"first": "1045", "last": "1050"}]})],
    "MUTATE": [
        ("make a conversation", {"number": "1", "createConversation": {
            "conversation": text(ident(1)), "participants": ["jon", "zoë", ""]}}),
        ("add participants", {"number": "2", "addParticipants": {
            "conversation": text(ident(1)), "users": ["kim"]}}),
        ("forget this device", {"number": "3", "forgetDevice": {}}),
        ("make the one conversation of two", {"number": "4", "createConversation": {
            "conversation": text(ident(1)), "participants": ["jon"], "distinct": True,
            "metadata": [{"path": ["theme", "colour"], "value": "green"}],
            "receiptsOff": True}}),
        ("leave", {"number": "5", "removeParticipants": {
            "conversation": text(ident(1)), "users": ["mira"]}}),
        ("edit", {"number": "6", "editMessage": {
            "message": text(ident(2)), "baseVersion": "1",
            "parts": [{"mimeType": "image/heic", "reference": {
                "url": "https://example.org/a", "size": "5000000",
                "digest": text(bytes(range(32))), "expiresMs": "1760000000000"}}]}}),
        ("delete for everyone", {"number": "7", "deleteMessage": {
            "message": text(ident(2)), "forEveryone": True}}),
        ("delete a conversation", {"number": "8", "deleteConversation": {
            "conversation": text(ident(1))}}),
        ("set and remove metadata", {"number": "9", "changeMetadata": {
            "conversation": text(ident(1)), "baseVersion": "3",
            "changes": [{"path": ["title"], "value": "Trip"},
                        {"path": ["theme"], "removed": True}]}}),
        ("mute for an hour", {"number": "10", "muteConversation": {
            "conversation": text(ident(1)), "muted": True, "forMs": "3600000"}}),
        ("block", {"number": "11", "blockUser": {"user": "kim", "blocked": True}}),
    ],
    "MUTATION_RESULT": [("refused for now", {
        "number": "13", "code": 1004, "retry": "RETRY_CLASS_RETRY_AFTER",
        "retryAfterMs": 2000})],
    "FETCH": [
        ("older messages", {"conversation": text(ident(1)), "below": "17", "limit": 50}),
        ("one message", {"conversation": text(ident(1)), "object": text(ident(2)),
                         "receipts": True}),
        ("more participants", {"conversation": text(ident(1)), "object": text(ident(1)),
                               "receipts": True, "after": "kim"})],
    "PAGE": [("a window", {"entries": [dict(MESSAGE, seq="0")], "first": "17", "last": "17",
                           "more": True, "position": "40"})],
    "SNAPSHOT": [("the next page", {"messages": 20, "continuation": text(ident(7))})],
    "SNAPSHOT_PAGE": [("the first page", {
        "conversations": [{"conversation": text(ident(1)), "entries": [dict(MESSAGE, seq="0")],
                           "completeFrom": "17", "unread": 1, "participantsComplete": True}],
        "entries": [{"block": {"user": "kim", "blocked": True}}],
        "start": CURSOR, "continuation": text(ident(7))}),
        ("the last page, nothing unread", {"start": CURSOR, "unread": 0})],
    "SIGNAL": [("jon is typing", {"conversation": text(ident(1)), "kind": "SIGNAL_KIND_TYPING",
                                  "ttlMs": 6000, "user": "jon"})],
    "DIGEST": [("two conversations", {
        "cursor": CURSOR, "conversations": {"count": "2", "hash": "12345678901234567890"},
        "readMarks": {"count": "1", "hash": "1"}, "messages": {"count": "70", "hash": "99"},
        "positions": 20})],
    "DIGEST_RESULT": [("the same", {
        "cursor": CURSOR, "comparable": True,
        "conversations": {"count": "2", "hash": "12345678901234567890"},
        "readMarks": {"count": "1", "hash": "1"}, "messages": {"count": "70", "hash": "99"}})],
    "APP_STATE": [("background", {"phase": "APP_PHASE_BACKGROUND", "remainingMs": 25000,
                                  "lowPower": "SETTING_ON"})],
    "PING": [("three minutes", {"nextMs": 180000})],
    "PONG": [("three minutes", {"nextMs": 180000})],
    "DRAIN": [("elsewhere", {"deadlineMs": 30000, "slotMs": 12345,
                             "place": "DRAIN_PLACE_ELSEWHERE_NOW"})],
    "ERROR": [("rate limited", {"code": 1002, "name": "rate_limited",
                                "retry": "RETRY_CLASS_RETRY_AFTER", "retryAfterMs": 1500,
                                "detail": "mutations"})],
    "CLOSE": [("going away", {"code": 5000, "retry": "RETRY_CLASS_RETRY", "applied": "1050"})],
}

# Bodies that no canonical encoder writes and every receiver reads.
MESSAGE_BODY = kind("DELTA")()
json_format.ParseDict({"entries": [MESSAGE]}, MESSAGE_BODY)
EPOCH = field(1, ident(0xE0))
TIGHT = {
    "PING": [
        ("value longer than needed", b"\x08\x81\x80\x00"),
        ("value of ten bytes", b"\x08" + varint(5, 10)),
        ("key longer than needed", varint(8, 5) + b"\x05"),
        ("last value wins", field(1, 7) + field(1, 9)),
        ("default value written out", field(1, 0)),
        ("64 bits in a field of 32", field(1, 2**40 + 3)),
        ("unknown varint", field(99, 2**64 - 1) + field(1, 4)),
        ("unknown fixed64", varint(99 << 3 | 1) + bytes(8) + field(1, 4)),
        ("unknown fixed32", varint(99 << 3 | 5) + bytes(4) + field(1, 4)),
        ("unknown bytes", field(99, b"\xff\xff") + field(1, 4)),
        ("highest field number", field(2**29 - 1, 1) + field(1, 4)),
        ("another wire type", field(1, b"\x01\x02") + field(1, 4)),
        ("length longer than needed", varint(99 << 3 | 2) + varint(2, 5) + b"ab" + field(1, 4)),
    ],
    "SYNC_REQUEST": [
        ("true is any value but 0", field(3, 2**63)),
        ("fields in another order", field(3, 1) + field(1, 5)),
    ],
    "APP_STATE": [
        ("unknown enum value", field(1, 77) + field(2, 5)),
        ("negative enum value", field(1, 2**64 - 1)),
        ("unknown after known enum value", field(1, 1) + field(1, 77)),
    ],
    "SYNC": [
        ("cursor merges", field(1, EPOCH) + field(1, field(2, 8)) + field(1, b"")),
        ("a repeated field in two places",
         field(5, field(2, 1)) + field(2, 6) + field(5, field(2, 3))),
    ],
    "HELLO": [
        ("nested messages merge",
         field(10, field(1, 1)) + field(12, field(2, 5)) + field(10, field(2, 9)) +
         field(12, field(6, field(1, 1))) + field(12, field(6, field(1, 2)))),
        ("id written as empty", field(4, ident(9)) + field(4, b"")),
    ],
    "MUTATE": [
        ("the same kind of operation merges",
         field(12, field(1, ident(1)) + field(3, field(1, b"a"))) +
         field(12, field(2, ident(2)) + field(3, field(1, b"b")))),
        ("another kind of operation replaces",
         field(12, field(1, ident(1))) + field(11, field(1, ident(3)))),
        ("back and forth starts anew",
         field(12, field(1, ident(1))) + field(13, b"") + field(12, field(2, ident(2)))),
        ("operation of another wire type", field(13, b"") + field(12, 5)),
        ("unknown operation", field(1, 4) + field(99, b"\x0a\x00")),
    ],
    "DELTA": [
        ("unknown kind of entry", field(1, field(1, 5) + field(29, b"\x0a\x01\x41"))),
        ("length of an entry longer than needed",
         b"\x0a" + varint(len(MESSAGE_BODY.entries[0].SerializeToString()), 5) +
         MESSAGE_BODY.entries[0].SerializeToString()),
    ],
}


def frame_file(name):
    values = [("defaults", kind(name)()), ("everything", everything(kind(name)())),
              ("largest", largest(kind(name)()))]
    for label, value in OCCURRING[name]:
        values.append((label, json_format.ParseDict(value, kind(name)())))
    cases = []
    for step, (label, message) in enumerate(values):
        body = schema.canonical(message)
        assert schema.canonical(schema.read(MODULE, kind(name), body)) == body, (name, label)
        request, flags = (0, 0) if step == 0 else (step, MORE if step == 1 else 0)
        cases.append({
            "name": label, "value": schema.to_json(message), "body": body.hex(),
            "request": request, "more": bool(flags),
            "frame": frame(name, body, flags, request).hex()})
    readings = []
    for label, body in TIGHT.get(name, []):
        message = schema.read(MODULE, kind(name), body)
        readings.append({
            "name": label, "body": body.hex(), "value": schema.to_json(message),
            "canonical": schema.canonical(message).hex()})
        assert body != schema.canonical(message), label
    return {"frame": name, "type": FRAMES[name][0], "message": FRAMES[name][1],
            "cases": cases, "readings": readings}


def stream_file():
    ping, pong = frame("PING", field(1, 5)), frame("PONG", field(1, 6), request=3)
    unknown = header(3, 0x4F, IGNORABLE) + b"abc"
    rows = [
        ("nothing", [], []),
        ("two frames", [ping, pong], [ping, pong]),
        ("an unknown frame that may be skipped", [ping, unknown, pong], [ping, pong]),
        ("an empty unknown frame", [header(0, 0x4F, IGNORABLE), ping], [ping]),
        ("an experimental frame with MORE and a request",
         [header(1, 0xFF, IGNORABLE | MORE, 0, 9) + b"\xff", ping], [ping]),
        ("only unknown frames", [unknown, unknown], []),
        ("the largest skipped frame before WELCOME",
         [header(16384, 0x80, IGNORABLE) + bytes(16384), ping], [ping]),
        ("IGNORABLE on a known type", [header(2, FRAMES["PING"][0], IGNORABLE) + field(1, 5)],
         [ping]),
        ("highest request number", [frame("PING", b"", 0, 65535)], [frame("PING", b"", 0, 65535)]),
        ("a frame that is not complete", [ping, pong[:-1]], [ping]),
        ("a header that is not complete", [ping, pong[:7]], [ping]),
    ]
    return {"streams": [
        {"name": label, "stream": b"".join(parts).hex(), "frames": [part.hex() for part in out]}
        for label, parts, out in rows]}


def invalid_file():
    google = "google.protobuf refuses it too"
    stricter = "stricter than google.protobuf"
    ping = FRAMES["PING"][0]
    headers = [
        ("flag for compression", "FRM-6", header(0, ping, COMPRESSED), 5004),
        ("highest flag", "FRM-6", header(0, ping, 0x80), 5004),
        ("unknown flag on a frame that may be skipped", "FRM-6", header(0, 0x4F, 0x0C), 5004),
        ("reserved byte", "FRM-7", header(0, ping, 0, 1), 5004),
        ("unknown type", "FRM-9", header(0, 0x4F), 4008),
        ("type 0", "FRM-9", header(0, 0), 4008),
        ("unknown type, and too large", "FRM-11", header(2**24 - 1, 0x4F), 4008),
        ("unknown flag, reserved byte, unknown type, too large", "FRM-11",
         header(2**24 - 1, 0x4F, 0x80, 1), 5004),
        ("one byte too large before WELCOME", "FRM-13", header(16385, ping), 4001),
        ("largest length", "FRM-13", header(2**24 - 1, ping), 4001),
        ("too large though it would be skipped", "FRM-13", header(16385, 0x4F, IGNORABLE), 4001),
    ]
    bodies = [
        ("key without value", "FRM-23", "PING", b"\x08", 4000, google),
        ("value that does not end", "FRM-23", "PING", b"\x08\x80\x80", 4000, google),
        ("value of eleven bytes", "FRM-23", "PING", b"\x08" + varint(5, 11), 4000, google),
        ("value of 65 bits", "FRM-23", "PING", b"\x08" + b"\xff" * 9 + b"\x02", 4000, stricter),
        ("key of six bytes", "FRM-23", "PING", varint(8, 6) + b"\x01", 4000, google),
        ("key of 33 bits", "FRM-23", "PING", b"\x88\x80\x80\x80\x10\x01", 4000, stricter),
        ("length of six bytes", "FRM-23", "PING", b"\x9a\x06" + varint(1, 6) + b"a", 4000, google),
        ("field number 0", "FRM-22", "PING", b"\x00\x01", 4000, google),
        ("wire type 6", "FRM-22", "PING", b"\x0e\x01", 4000, google),
        ("wire type 7", "FRM-22", "PING", b"\x0f\x01", 4000, google),
        ("group", "FRM-22", "PING", b"\x9b\x06\x9c\x06", 4000, stricter),
        ("group that does not end", "FRM-22", "PING", b"\x9b\x06", 4000, google),
        ("end of a group", "FRM-22", "PING", b"\x9c\x06", 4000, google),
        ("bytes past the end", "FRM-20", "ERROR", b"\x12\x05abcd", 4000, google),
        ("bytes of 2^31", "FRM-20", "ERROR", b"\x12\x80\x80\x80\x80\x08", 4000, google),
        ("fixed64 past the end", "FRM-20", "PING", b"\x99\x06" + bytes(7), 4000, google),
        ("nested message past the end of the outer", "FRM-20", "SYNC",
         field(1, EPOCH[:-1]) + b"\x00", 4000, google),
        ("nested value past the end of the nested message", "FRM-20", "HELLO",
         field(10, b"\x08") + b"\x01", 4000, google),
        ("text that is not UTF-8", "FRM-26", "ERROR", field(2, b"\xc3\x28"), 4000, google),
        ("text with a surrogate", "FRM-26", "ERROR", field(2, b"\xed\xa0\x80"), 4000, google),
        ("text that is not UTF-8, then text that is", "FRM-26", "ERROR",
         field(2, b"\xff") + field(2, b"a"), 4000, google),
        ("text in a list that is not UTF-8", "FRM-26", "HELLO", field(8, b"\xff"), 4000, google),
        ("id of 15 bytes", "FRM-28", "HELLO", field(4, ident(1)[:15]), 4000, stricter),
        ("id of 17 bytes", "FRM-28", "HELLO", field(13, ident(1) + b"\x00"), 4000, stricter),
        ("id of 1 byte, then one of 16", "FRM-28", "HELLO", field(4, b"a") + field(4, ident(1)),
         4000, stricter),
        ("object id of 8 bytes", "FRM-28", "DELTA", field(1, field(3, bytes(8))), 4000, stricter),
        ("cursor without epoch", "FRM-29", "SYNC", field(1, field(2, 5)), 4000, stricter),
        ("cursor whose epoch is taken back", "FRM-29", "SYNC",
         field(1, EPOCH) + field(1, field(1, b"")), 4000, stricter),
        ("1,025 elements before WELCOME", "FRM-15", "SYNC", field(5, b"") * 1025, 4006, stricter),
        ("1,025 elements in lists of lists", "FRM-15", "SYNC",
         field(5, field(3, b"") * 512) + field(5, field(3, b"") * 511), 4006, stricter),
    ]
    cases = [{"name": label, "rule": rule, "stream": data.hex(), "code": code}
             for label, rule, data, code in headers]
    for label, rule, name, body, code, verdict in bodies:
        assert schema.google_takes(MODULE, kind(name), body) == (verdict == stricter), label
        if code == 4000:
            try:
                schema.read(MODULE, kind(name), body)
                raise AssertionError(label)
            except schema.Refused as refused:
                assert refused.args[0] == code, label
        cases.append({"name": label, "rule": rule, "stream": frame(name, body).hex(),
                      "code": code, "remark": verdict})
    return {"limits": {"bodyBytes": 16384, "elements": 1024}, "invalid": cases}


def main():
    files = {f"{name.lower()}.json": frame_file(name) for name in FRAMES}
    files["streams.json"] = stream_file()
    files["invalid.json"] = invalid_file()
    texts = {name: json.dumps(value, indent=1, ensure_ascii=False) + "\n"
             for name, value in files.items()}
    if sys.argv[1:] == ["--check"]:
        there = {path.name: path.read_text() for path in OUT.glob("*.json")}
        wrong = sorted(name for name in texts.keys() | there.keys()
                       if texts.get(name) != there.get(name))
        if wrong:
            sys.exit("not what generate.py writes: " + ", ".join(wrong))
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        OUT.mkdir(exist_ok=True)
        for name, content in texts.items():
            (OUT / name).write_text(content)


main()
