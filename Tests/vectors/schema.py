"""sync.proto through Google's protobuf, and the rules of framing.md that are stricter than it.

Needs protoc and the Python package google.protobuf (Debian: protobuf-compiler,
python3-protobuf).
"""

import importlib.util
import pathlib
import random
import re
import subprocess
import tempfile

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "Protocol"

# Fields of 16 bytes or none (FRM-28).
IDS = {
    "Cursor.epoch", "Hello.device", "Hello.wake", "Welcome.epoch", "ReadReceipt.conversation",
    "Entry.conversation", "Entry.object", "CreateConversation.conversation",
    "AddParticipants.conversation", "SendMessage.conversation", "SendMessage.message",
    "MutationResult.object", "ReadReceipt.announcement", "RemoveParticipants.conversation",
    "EditMessage.message", "DeleteMessage.message", "DeleteConversation.conversation",
    "ChangeMetadata.conversation", "MuteConversation.conversation", "Fetch.conversation",
    "Fetch.object", "SnapshotConversation.conversation", "Signal.conversation",
}

ELEMENTS_AFTER_WELCOME = 8192


def load():
    """The module protoc makes of sync.proto, with a message `Inside_X { X body = 1; }` for each
    body X (see `parse`)."""
    with tempfile.TemporaryDirectory() as out:
        names = [message for _, message in frames().values()]
        text = (PROTOCOL / "sync.proto").read_text() + "".join(
            f"message Inside_{name} {{ {name} body = 1; }}\n" for name in names)
        pathlib.Path(out, "sync.proto").write_text(text)
        subprocess.run(["protoc", f"--proto_path={out}", f"--python_out={out}", "sync.proto"],
                       check=True)
        spec = importlib.util.spec_from_file_location("sync_pb2", f"{out}/sync_pb2.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def frames():
    """{frame name: (type byte, message name)} of the frames registry.md gives a body."""
    table = {}
    for line in (PROTOCOL / "registry.md").read_text().splitlines():
        found = re.match(r"\| 0x([0-9A-F]{2}) \| ([A-Z_]+) \| `(\w+)` \|", line)
        if found:
            table[found[2]] = (int(found[1], 16), found[3])
    return table


def is_message(field):
    return field.type == FieldDescriptor.TYPE_MESSAGE


def repeated(field):
    return field.label == FieldDescriptor.LABEL_REPEATED


def normalise(message):
    """What is left of a message in a receiver of version 1: no unknown field or enum value."""
    message.DiscardUnknownFields()

    def known_values(part):
        for field, value in part.ListFields():
            if is_message(field):
                for inner in value if repeated(field) else [value]:
                    known_values(inner)
            elif field.type == FieldDescriptor.TYPE_ENUM:
                if value not in field.enum_type.values_by_number:
                    part.ClearField(field.name)

    known_values(message)
    return message


def canonical(message):
    return message.SerializeToString(deterministic=True)


def to_json(message):
    return json_format.MessageToDict(message)


class Refused(Exception):
    """Refused by framing.md; the argument is the code."""


class Walk:
    """Reads a body once more, byte by byte, for what framing.md refuses and protobuf takes."""

    def __init__(self, data, elements=ELEMENTS_AFTER_WELCOME):
        self.data = data
        self.at = 0
        self.elements = elements

    def varint(self, most=10):
        value = 0
        for count in range(most):
            if self.at >= self.end:
                raise Refused(4000)
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << 7 * count
            if byte < 128:
                if value >= 1 << 64:
                    raise Refused(4000)
                return value
        raise Refused(4000)

    def jump(self, count):
        if count > self.end - self.at:
            raise Refused(4000)
        self.at += count

    def message(self, descriptor, end, state):
        """`state` outlives one occurrence of a singular message, as merging does."""
        outer, self.end = getattr(self, "end", None), end
        while self.at < end:
            key = self.varint(5)
            number, kind = key >> 3, key & 7
            if key >= 1 << 32 or number == 0 or kind not in (0, 1, 2, 5):
                raise Refused(4000)
            if kind == 0:
                self.varint()
            elif kind == 1:
                self.jump(8)
            elif kind == 5:
                self.jump(4)
            else:
                self.delimited(descriptor.fields_by_number.get(number), state)
        self.end = outer

    def delimited(self, field, state):
        length = self.varint(5)
        start = self.at
        if length > self.end - start:
            raise Refused(4000)
        if field is not None and field.type in (
                FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_BYTES,
                FieldDescriptor.TYPE_STRING):
            if repeated(field):
                if self.elements == 0:
                    raise Refused(4006)
                self.elements -= 1
            name = f"{field.containing_type.name}.{field.name}"
            if name in IDS and length not in (0, 16):
                raise Refused(4000)
            if name == "Cursor.epoch":
                state["epoch"] = length == 16
            if field.type == FieldDescriptor.TYPE_STRING:
                try:
                    self.data[start:start + length].decode()
                except UnicodeDecodeError:
                    raise Refused(4000)
            if is_message(field):
                inner = {} if repeated(field) else state.setdefault(field.number, {})
                self.message(field.message_type, start + length, inner)
                if field.message_type.name == "Cursor" and not inner.get("epoch"):
                    raise Refused(4000)
        self.at = start + length


def parse(module, kind, data):
    """What Google's protobuf makes of a body; raises DecodeError.

    As a nested message, because its Python binding takes a body that stops at a key of 0 or an
    end of a group for complete, which neither its C++ library nor a nested message does.
    """
    length, prefix = len(data), bytearray(b"\x0a")
    while length >= 128:
        prefix.append(length & 127 | 128)
        length >>= 7
    prefix.append(length)
    outer = getattr(module, "Inside_" + kind.DESCRIPTOR.name)
    return outer.FromString(bytes(prefix) + data).body


def google_takes(module, kind, data):
    try:
        parse(module, kind, data)
        return True
    except DecodeError:
        return False


def read(module, kind, data):
    """The normalised message, or raises Refused."""
    try:
        message, fault = parse(module, kind, data), None
    except DecodeError:
        message, fault = None, Refused(4000)
    # Also after a fault: a count of elements above the limit is told if it comes first.
    Walk(data).message(kind.DESCRIPTOR, len(data), {})
    if fault:
        raise fault
    return normalise(message)


def fill(message, draw: random.Random, depth=0):
    """Random known content, valid by framing.md."""
    for field in message.DESCRIPTOR.fields:
        must = f"{field.containing_type.name}.{field.name}" == "Cursor.epoch"
        if not must and draw.random() < 0.4:
            continue
        if field.containing_oneof and draw.random() < 0.5:
            continue
        if is_message(field):
            if repeated(field):
                for _ in range(draw.choice([0, 1, 1, 2, 5])):
                    fill(getattr(message, field.name).add(), draw, depth + 1)
            else:
                getattr(message, field.name).SetInParent()
                fill(getattr(message, field.name), draw, depth + 1)
        elif repeated(field):
            getattr(message, field.name).extend(
                scalar(field, draw) for _ in range(draw.choice([0, 1, 3])))
        else:
            setattr(message, field.name, scalar(field, draw))
    return message


def scalar(field, draw):
    if field.type == FieldDescriptor.TYPE_BOOL:
        return draw.random() < 0.7
    if field.type == FieldDescriptor.TYPE_ENUM:
        return draw.choice(list(field.enum_type.values_by_number))
    if field.type == FieldDescriptor.TYPE_UINT32:
        return draw.getrandbits(draw.randint(0, 32))
    if field.type == FieldDescriptor.TYPE_UINT64:
        return draw.getrandbits(draw.randint(0, 64))
    if field.type == FieldDescriptor.TYPE_BYTES:
        if f"{field.containing_type.name}.{field.name}" in IDS:
            return draw.randbytes(16)
        return draw.randbytes(draw.choice([0, 1, 20, 127, 128, 300]))
    if field.type == FieldDescriptor.TYPE_STRING:
        return "".join(
            draw.choice("aZ0 \n\"\\\u0000éß漢\U0001F600")
            for _ in range(draw.choice([0, 1, 8, 40, 130])))
    raise AssertionError(f"no random value for {field.full_name}")
