#!/usr/bin/python3
"""A small server of the sync protocol, written from Protocol/ alone: proof that the text suffices,
and that `rouse conform` tests the text and not our own server.

It keeps everything in memory and does the core: framing, logins, sessions, the feed, live and hint
mode, peeking, conversations, messages, receipts. What it lacks is in `without` of the credentials
file it writes, so that `rouse conform` skips it with the reason.

usage: server.py --folder DIR

DIR holds server.pem and server.key, its certificate, and issuer.pem, the app's key. It writes
DIR/credentials.json, prints its port, and ends with standard input.
"""
import argparse
import asyncio
import base64
import hashlib
import json
import os
import pathlib
import socket
import ssl
import sys
import time

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "vectors"))
import schema  # noqa: E402

pb = schema.load()
KINDS = {number: getattr(pb, name) for number, name in schema.frames().values()}
NUMBERS = {kind: number for number, kind in KINDS.items()}
ELEMENTS_BEFORE_WELCOME = 1024
APP, KID = "shop", "python"
CLASSES = {
    "none": 0, "retry": 1, "retry_after": 2, "reauthenticate": 3, "resync": 4, "upgrade": 5,
}
NAMES, RETRIES = {}, {}
for line in (schema.PROTOCOL / "registry.md").read_text().splitlines():
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) > 4 and cells[1].isdigit() and cells[3] in CLASSES:
        NAMES[int(cells[1])], RETRIES[int(cells[1])] = cells[2], CLASSES[cells[3]]
WINDOW_BYTES, WINDOW_DELTAS, UNANSWERED, MESSAGE_BYTES = 262144, 256, 32, 65536
HELLO_TIME, LOGIN_TIME, KEEPALIVE = 10, 60, 180
WITHOUT = {
    "SES-17": "no extension sessions", "SES-18": "no pushes", "SYN-23": "no watch over silence",
    "history": "no history, snapshots or digests", "signals": "no signals",
    "MSG-23": "no references", "MSG-24": "no distinct conversations", "MSG-25": "no metadata",
    "MSG-26": "no muting", "MSG-27": "no blocks", "MSG-28": "no receipts_off",
    "MSG-30": "nobody leaves", "MSG-31": "nobody leaves", "MSG-32": "nobody leaves",
    "MSG-33": "no edits", "MSG-34": "no deletions", "MSG-35": "no deletions",
    "MSG-36": "no deletions", "MSG-37": "no deletions",
    "MSG-38": "no large conversations", "MSG-50": "no announcements",
    "MSG-57": "no announcements",
    "SES-21": "asks nobody again", "SES-23": "revokes nobody", "SES-24": "suspends nobody",
}


class Closed(Exception):
    """CLOSE with this code; `None`: the peer has gone."""


class Refused(Exception):
    """ERROR or a mutation's result with this code."""


def is_name(text, most):
    return 0 < len(text.encode()) <= most and all(ord(c) >= 32 and ord(c) != 127 for c in text)


def key_of(entry):
    """What tells objects apart (SYN-3)."""
    kind = entry.WhichOneof("body")
    return kind, entry.conversation, entry.object, getattr(getattr(entry, kind), "user", "")


class User:
    """A user's feed: one entry per object, by rising numbers."""

    def __init__(self, name, store_epoch):
        self.name, self.store_epoch = name, store_epoch
        self.epoch = store_epoch + os.urandom(8)
        self.head, self.told_head, self.entries, self.places = 0, 0, {}, {}
        self.connections = set()

    def put(self, entry):
        key = key_of(entry)
        old = self.places.get(key)
        version = self.entries.pop(old).version + 1 if old else 1
        mine = pb.Entry()
        mine.CopyFrom(entry)
        self.head += 1
        mine.seq, mine.version = self.head, max(version, entry.version)
        self.entries[self.head], self.places[key] = mine, self.head
        if key[0] != "receipt":
            self.told_head = self.head

    def above(self, seq):
        return [self.entries[n] for n in sorted(self.entries) if n > seq]


class Device:
    def __init__(self):
        self.user, self.applied, self.floor, self.results = None, 0, 0, {}
        self.tokens = []
        # Users this device belonged to before, each with the numbers it took then.
        self.lives = {}


class Conversation:
    def __init__(self, creator):
        self.creator, self.joined, self.position = creator, {}, 0
        self.senders, self.pushed, self.marks, self.delivered = {}, set(), {}, {}


class Server:
    def __init__(self, key):
        self.key = key
        self.store_epoch = os.urandom(8)
        self.users, self.devices, self.conversations, self.messages = {}, {}, {}, {}
        self.logins, self.receipts_due = 0, {}

    def user(self, name):
        return self.users.setdefault(name, User(name, self.store_epoch))

    # What mutations do.

    def carry_out(self, device, user, mutation):
        """The stored result, or the first (MSG-10)."""
        number = mutation.number
        if number == 0 or number >= 1 << 63:
            return pb.MutationResult(number=number, code=4000)
        name = mutation.WhichOneof("operation")
        # Only this operation gets the number's result.
        operation = (name, name and getattr(mutation, name).SerializeToString())
        if number in device.results:
            known, result = device.results[number]
            return result if known == operation else pb.MutationResult(number=number, code=3014)
        if number <= device.floor:
            return pb.MutationResult(number=number, code=3013)
        result = pb.MutationResult(number=number)
        try:
            handler = {
                "create_conversation": self.create, "add_participants": self.add,
                "send_message": self.send, "forget_device": self.forget,
            }.get(name)
            if handler is None:
                raise Refused(4002)
            handler(device, user, getattr(mutation, name), result)
        except Refused as refused:
            result.code = refused.args[0]
        device.floor, device.results[number] = number, (operation, result)
        return result

    @staticmethod
    def check_ids(*ids):
        if not all(ids):
            raise Refused(4002)
        if any(raw == bytes(16) for raw in ids):
            raise Refused(4000)

    @staticmethod
    def check_users(users):
        if len(users) > 256:
            raise Refused(4006)
        if not all(is_name(name, 128) for name in users):
            raise Refused(4000)

    def create(self, _, user, operation, result):
        raw = operation.conversation
        self.check_ids(raw)
        self.check_users(operation.participants)
        held = self.conversations.get(raw)
        if held:
            raise Refused(3010 if user.name in held.joined else 4003)
        made = self.conversations[raw] = Conversation(user.name)
        for name in [user.name] + list(operation.participants):
            made.joined.setdefault(name, 0)
        for name in made.joined:
            self.introduce(raw, made, name)
        result.object = raw

    def introduce(self, raw, conversation, name):
        feed = self.user(name)
        feed.put(pb.Entry(conversation=raw, object=raw, conversation_state=pb.Conversation(
            created_ms=int(time.time() * 1000), creator=conversation.creator)))
        for other, joined in conversation.joined.items():
            feed.put(pb.Entry(conversation=raw, participant=pb.Participant(
                user=other, joined_position=joined)))

    def reach(self, raw, user):
        held = self.conversations.get(raw)
        if held is None or user.name not in held.joined:
            raise Refused(4004)
        return held

    def add(self, _, user, operation, result):
        self.check_ids(operation.conversation)
        if not operation.users:
            raise Refused(4002)
        self.check_users(operation.users)
        raw, held = operation.conversation, self.reach(operation.conversation, user)
        before = list(held.joined)
        added = [name for name in dict.fromkeys(operation.users) if name not in held.joined]
        for name in added:
            held.joined[name] = held.position
        for name in added:
            self.introduce(raw, held, name)
            for other in before:
                self.user(other).put(pb.Entry(conversation=raw, participant=pb.Participant(
                    user=name, joined_position=held.joined[name])))
        result.object = raw

    def send(self, _, user, operation, result):
        self.check_ids(operation.conversation, operation.message)
        self.check_content(operation)
        raw, held = operation.conversation, self.reach(operation.conversation, user)
        known = self.messages.get(operation.message)
        if known:
            sees = user.name in known[0].joined and known[1] > known[0].joined[user.name]
            raise Refused(3010 if sees else 4003)
        held.position += 1
        self.messages[operation.message] = (held, held.position)
        held.senders[held.position] = user.name
        if operation.push.title or operation.push.body:
            held.pushed.add(held.position)
        entry = pb.Entry(conversation=raw, object=operation.message, message=pb.Message(
            position=held.position, sender=user.name, sent_ms=int(time.time() * 1000),
            parts=operation.parts))
        if operation.HasField("push"):
            entry.message.push.CopyFrom(operation.push)
        for name in held.joined:
            self.user(name).put(entry)
        result.object, result.position = operation.message, held.position

    @staticmethod
    def check_content(operation):
        """MSG-3."""
        push = (operation.push.title + operation.push.body).encode()
        if not operation.parts or not all(p.mime_type for p in operation.parts):
            raise Refused(4002)
        if len(operation.parts) > 32:
            raise Refused(4006)
        if not all(is_name(p.mime_type, 128) for p in operation.parts) or 0 in push:
            raise Refused(4000)
        size = sum(len(p.content) + len(p.mime_type.encode()) for p in operation.parts)
        if size > MESSAGE_BYTES or len(push) > 2048:
            raise Refused(4001)

    @staticmethod
    def forget(device, _, __, ___):
        device.tokens = []

    # Receipts.

    def read(self, user, receipts):
        """MSG-17, MSG-18."""
        for receipt in receipts:
            held = self.conversations.get(receipt.conversation)
            if held is None or user.name not in held.joined:
                continue
            before = held.marks.get(user.name, (0, frozenset()))
            through = max(before[0], min(receipt.through, held.position))
            alone = set(before[1])
            for span in receipt.ranges:
                alone |= set(range(max(1, span.first), min(span.last, held.position) + 1))
            while through + 1 in alone:
                through += 1
            mark = (through, frozenset(n for n in alone if n > through))
            if mark == before:
                continue
            held.marks[user.name] = mark
            user.put(pb.Entry(conversation=receipt.conversation, read_mark=pb.ReadMark(
                through=through, ranges=spans(mark[1]))))
            self.owe(receipt.conversation, user.name)

    def applied(self, device, user, applied):
        """Delivered follows from it (MSG-16)."""
        for entry in user.entries.values():
            if device.applied < entry.seq <= applied and entry.HasField("message"):
                held = self.conversations[entry.conversation]
                if entry.message.position > held.delivered.get(user.name, 0):
                    held.delivered[user.name] = entry.message.position
                    if entry.message.sender != user.name:
                        self.owe(entry.conversation, user.name)
        device.applied = max(device.applied, applied)

    def owe(self, raw, reader):
        """A receipt entry for the authors: at most one in 2 s (MSG-21)."""
        if len(self.conversations[raw].joined) <= 8 and (raw, reader) not in self.receipts_due:
            loop = asyncio.get_running_loop()
            self.receipts_due[raw, reader] = loop.call_later(0.5, self.pay, raw, reader)

    def pay(self, raw, reader):
        loop = asyncio.get_running_loop()
        held = self.conversations[raw]
        self.receipts_due[raw, reader] = loop.call_later(
            1.6, lambda: self.receipts_due.pop((raw, reader), None))
        receipt = pb.Receipt(
            user=reader, delivered_through=held.delivered.get(reader, 0),
            read_through=held.marks.get(reader, (0,))[0])
        for author in set(held.senders.values()) - {reader}:
            self.user(author).put(pb.Entry(conversation=raw, receipt=receipt))
        self.tell()

    def unread(self, user):
        count = 0
        for held in self.conversations.values():
            if user.name in held.joined:
                through, alone = held.marks.get(user.name, (0, ()))
                count += sum(
                    1 for n in held.pushed if n > through and n > held.joined[user.name]
                    and n not in alone and held.senders[n] != user.name)
        return count

    def tell(self):
        for user in self.users.values():
            for connection in list(user.connections):
                connection.tell()


def spans(numbers):
    found = []
    for number in sorted(numbers):
        if found and found[-1].last == number - 1:
            found[-1].last = number
        else:
            found.append(pb.Range(first=number, last=number))
    return found


class Allowance:
    """So many at once, and then so many a second (CON-18, CON-19)."""

    def __init__(self, burst, rate):
        self.burst, self.rate, self.left, self.at = burst, rate, burst, time.monotonic()

    def take(self):
        now = time.monotonic()
        self.left = min(self.burst, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Connection:
    """One connection, from its first byte to its end."""

    def __init__(self, server, reader, writer):
        self.server, self.reader, self.writer = server, reader, writer
        self.received, self.is_open, self.is_over = b"", False, False
        self.user = self.device = self.hello = self.task = None
        self.phase, self.is_live, self.synced = pb.APP_PHASE_FOREGROUND, False, False
        self.told, self.sent_to, self.more = None, 0, False
        # Its cursor was of another history, and it has acknowledged nothing of this one (SYN-33).
        self.is_elsewhere = False
        self.unacknowledged, self.promise = [], KEEPALIVE
        self.pings, self.errors = Allowance(16, 1), Allowance(100, 1)

    # Bytes.

    def send(self, body, request=0):
        if self.is_over:
            return
        content = body.SerializeToString(deterministic=True)
        header = len(content).to_bytes(3, "big") + bytes([NUMBERS[type(body)], 0, 0])
        self.writer.write(header + request.to_bytes(2, "big") + content)

    def error(self, code, request):
        """CON-19."""
        if not self.errors.take():
            raise Closed(1002)
        self.send(pb.Error(code=code, name=NAMES[code], retry=RETRIES[code]), request)

    async def frame(self, deadline):
        """The next frame of a known type: (body, request)."""
        while True:
            if len(self.received) >= 8:
                length, kind = int.from_bytes(self.received[:3], "big"), self.received[3]
                flags = self.received[4]
                if flags & ~5 or self.received[5]:
                    raise Closed(5004)
                if kind not in KINDS and not flags & 4:
                    raise Closed(4008)
                if length > (262144 if self.is_open else 16384):
                    raise Closed(4001)
                if len(self.received) >= 8 + length:
                    content = self.received[8:8 + length]
                    request = int.from_bytes(self.received[6:8], "big")
                    self.received = self.received[8 + length:]
                    if kind in KINDS:
                        return self.parsed(KINDS[kind], content), request
                    continue
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise asyncio.TimeoutError
                chunk = await asyncio.wait_for(self.reader.read(65536), left)
            except asyncio.TimeoutError:
                raise Closed(self.late()) from None
            if not chunk:
                raise Closed(None)
            self.received += chunk

    def late(self):
        return 5003 if self.is_open else 5007 if self.hello is None else 2000

    def parsed(self, kind, content):
        limit = schema.ELEMENTS_AFTER_WELCOME if self.is_open else ELEMENTS_BEFORE_WELCOME
        try:
            schema.Walk(content, limit).message(kind.DESCRIPTOR, len(content), {})
            return schema.read(pb, kind, content)
        except schema.Refused as refused:
            raise Closed(refused.args[0]) from refused

    async def run(self):
        self.task = asyncio.current_task()
        try:
            if self.writer.get_extra_info("ssl_object").selected_alpn_protocol() != "rouse/1":
                return
            await self.log_in()
            while True:
                body, request = await self.frame(time.monotonic() + self.promise + 30)
                self.promise = KEEPALIVE
                self.take(body, request)
                self.server.tell()
        except Closed as closed:
            if closed.args[0] is not None:
                self.close(closed.args[0])
            await self.linger()
        except asyncio.CancelledError:
            # Another connection has ended this one.
            await self.linger()
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            self.is_over = True
            if self.user:
                self.user.connections.discard(self)
            self.writer.close()

    def close(self, code):
        """CLOSE, and nothing after it."""
        self.send(pb.Close(code=code, retry=RETRIES[code]))
        self.is_over = True
        if self.user:
            self.user.connections.discard(self)

    async def linger(self):
        """Says that no more comes from here, and drops what still comes until the client has read
        that and ends its side too, or 2 s are over. Closing over something that comes later would
        reset the connection, and the client lose what it has not read yet: a time without bytes
        does not say that there will be none, for the client may be slow."""
        try:
            await asyncio.wait_for(self.dropped(), 2)
        except (asyncio.TimeoutError, OSError):
            pass

    async def dropped(self):
        await self.writer.drain()
        while self.writer.transport.get_write_buffer_size():
            await asyncio.sleep(0.01)
        self.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
        while await self.reader.read(65536):
            pass

    def end(self, code):
        """Ended by another connection."""
        self.close(code)
        self.task.cancel()

    # Login.

    async def log_in(self):
        deadline = time.monotonic() + HELLO_TIME
        body, request = await self.frame(deadline)
        if isinstance(body, pb.Close):
            raise Closed(None)
        if not isinstance(body, pb.Hello):
            raise Closed(5004)
        self.server.logins += 1
        self.order = self.server.logins
        self.hello, self.hello_request = body, request
        if body.app and not is_name(body.app, 64):
            raise Closed(4000)
        if not body.app or not body.device or not body.role:
            raise Closed(4002)
        if not body.version_min <= 1 <= body.version_max:
            raise Closed(5005)
        if body.role != pb.ROLE_APP:
            raise Closed(4003)
        name = self.token_holder(body)
        is_inline = name is not None
        if name is None:
            name = await self.ask()
        self.open(name)
        if is_inline and body.HasField("sync"):
            self.sync(body.sync, request)
        self.server.tell()

    def token_holder(self, hello):
        device = self.server.devices.get(hello.device)
        token = hashlib.sha256(hello.session_token).digest()
        if hello.app != APP or device is None or token not in device.tokens:
            return None
        # The token this session was opened with stays good until the new one was used.
        device.tokens = [token]
        return device.user

    async def ask(self):
        nonce, deadline, refusals = os.urandom(32), time.monotonic() + LOGIN_TIME, 0
        presented = bool(self.hello.session_token)
        self.send(pb.Challenge(
            nonce=nonce, lifetime_ms=LOGIN_TIME * 1000,
            reason=pb.CHALLENGE_REASON_REVOKED if presented else pb.CHALLENGE_REASON_FIRST),
            self.hello_request)
        while True:
            body, request = await self.frame(deadline)
            if isinstance(body, (pb.Ping, pb.Pong)) and not self.pings.take():
                raise Closed(1002)
            if isinstance(body, pb.Ping):
                self.send(pb.Pong(next_ms=KEEPALIVE * 1000), request)
            elif isinstance(body, pb.Close):
                raise Closed(None)
            elif isinstance(body, pb.Authenticate):
                try:
                    return self.identity(body.identity_token, nonce)
                except Refused as refused:
                    refusals += 1
                    if refusals == 3:
                        raise Closed(2001) from refused
                    self.error(refused.args[0], 0)
            elif not isinstance(body, pb.Pong):
                raise Closed(5004)

    def identity(self, token, nonce):
        """SES-9 to SES-11: first what it is, then its nonce, then its age."""
        try:
            if len(token.encode()) > 8192 or self.hello.app != APP:
                raise ValueError
            head, claims, signature = token.split(".")
            header, body = members(head), members(claims)
            if header["alg"] != "ES256" or header["kid"] != KID or "crit" in header:
                raise ValueError
            algorithm = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
            if not algorithm.verify(f"{head}.{claims}".encode(), self.server.key, bare(signature)):
                raise ValueError
            audience = body["aud"] if isinstance(body["aud"], list) else [body["aud"]]
            times = [body[n] for n in ("exp", "nbf", "iat") if n in body]
            if not isinstance(body["iss"], str) or not body["iss"] or APP not in audience:
                raise ValueError
            if not is_name(body["sub"], 128) or not isinstance(body["nonce"], str):
                raise ValueError
            if any(isinstance(t, bool) or not isinstance(t, (int, float)) for t in times):
                raise ValueError
            if any(body.get(n, 0) > time.time() + 60 for n in ("nbf", "iat")):
                raise ValueError
            expires = body["exp"]
        except (ValueError, KeyError, TypeError, AttributeError, UnicodeError):
            raise Refused(2001) from None
        if body["nonce"] != base64.urlsafe_b64encode(nonce).rstrip(b"=").decode():
            raise Refused(2003)
        if expires < time.time() - 60:
            raise Refused(2002)
        return body["sub"]

    def open(self, name):
        server, hello = self.server, self.hello
        device = server.devices.get(hello.device)
        if device is None or device.user != name:
            if device:
                for other in list(server.user(device.user).connections):
                    if other.hello.device == hello.device:
                        other.end(2004)
            known = device.lives if device else {}
            if device:
                known[device.user] = device
            device = known.pop(name, None) or Device()
            device.user, device.lives, device.tokens = name, known, []
            server.devices[hello.device] = device
        self.user, self.device = server.user(name), device
        for other in list(self.user.connections):
            if other.hello.device == hello.device:
                if other.order > self.order:
                    raise Closed(5002)
                other.end(5002)
        token = os.urandom(24)
        device.tokens = device.tokens[-1:] + [hashlib.sha256(token).digest()]
        self.is_open, self.pings = True, Allowance(100, 10)
        self.phase = hello.app_state.phase or pb.APP_PHASE_FOREGROUND
        self.is_live = "live" in hello.features
        self.sent_to = device.applied
        self.user.connections.add(self)
        self.send(pb.Welcome(
            version=1, session_token=token, session_token_lifetime_ms=86400000,
            server_time_ms=int(time.time() * 1000), epoch=self.user.epoch,
            mutation_floor=device.floor, keepalive_ms=KEEPALIVE * 1000, node="python", user=name,
            features=["live"] if self.is_live else [],
            limits=pb.Limits(
                body_bytes=262144, window_bytes=WINDOW_BYTES, window_deltas=WINDOW_DELTAS,
                mutations_unanswered=UNANSWERED, message_bytes=MESSAGE_BYTES,
                participants_per_request=256)), self.hello_request)

    # An open session.

    def take(self, body, request):
        if isinstance(body, (pb.Ping, pb.Pong)) and not self.pings.take():
            raise Closed(1002)
        if isinstance(body, pb.Ping):
            if 0 < body.next_ms < KEEPALIVE * 1000:
                self.promise = body.next_ms / 1000
            self.send(pb.Pong(next_ms=KEEPALIVE * 1000), request)
        elif isinstance(body, pb.Pong):
            if 0 < body.next_ms < KEEPALIVE * 1000:
                self.promise = body.next_ms / 1000
        elif isinstance(body, pb.Sync):
            self.sync(body, request)
        elif isinstance(body, pb.Ack):
            self.ack(body, request)
        elif isinstance(body, pb.Mutation):
            if self.is_elsewhere:
                return self.send(self.refused(body), request)
            result = self.server.carry_out(self.device, self.user, body)
            self.send(result, request)
            self.after(body)
        elif isinstance(body, pb.AppState):
            self.phase = body.phase or self.phase
        elif isinstance(body, pb.Close):
            if body.applied <= self.user.head:
                self.server.applied(self.device, self.user, body.applied)
            raise Closed(None)
        elif isinstance(body, (pb.Fetch, pb.Snapshot, pb.Digest, pb.Signal)):
            self.error(4009, request)
        else:
            raise Closed(5004)

    def after(self, mutation):
        if not self.is_elsewhere and mutation.HasField("forget_device"):
            raise Closed(2004)

    def ack(self, body, request):
        self.is_elsewhere = False
        highest = max([body.applied] + [span.last for span in body.ranges])
        if highest > self.user.head:
            return self.error(3003, request)
        if too_many(body.reads):
            return self.error(4006, request)
        self.acknowledged(body.applied)
        self.server.read(self.user, body.reads)

    def acknowledged(self, applied):
        self.server.applied(self.device, self.user, applied)
        self.unacknowledged = [held for held in self.unacknowledged if held[0] > applied]
        if self.told is not None and self.device.applied >= self.told:
            self.told = None

    def sync(self, body, request):
        user, device = self.user, self.device
        if body.mode == pb.SYNC_MODE_PEEK:
            return self.peek(body, request)
        if too_many(body.reads):
            return self.error(4006, request)
        if len(body.mutations) > UNANSWERED:
            raise Closed(4006)
        reset, start = None, body.cursor.seq
        if not body.HasField("cursor"):
            reset = pb.RESET_REASON_NO_CURSOR
        elif body.cursor.epoch != user.epoch:
            reset = pb.RESET_REASON_EPOCH_CHANGED
        elif start > user.head:
            reset = pb.RESET_REASON_CURSOR_AHEAD
            self.restart()
        # SYN-32: in another epoch the same position may be another message's.
        is_elsewhere = reset in (pb.RESET_REASON_EPOCH_CHANGED, pb.RESET_REASON_CURSOR_AHEAD)
        results = self.carried_out(body.mutations, is_elsewhere)
        self.server.read(user, [r for r in body.reads if not (is_elsewhere and r.conversation)])
        if reset is not None:
            start = device.applied = 0
        else:
            device.applied = min(device.applied, body.applied, start)
            self.acknowledged(min(body.applied, start))
        delta = self.delta(start, body.page_bytes or 65536)
        if reset is not None:
            delta.reset.reason = reset
        delta.results.extend(results)
        self.synced = True
        self.send(delta, request)
        for mutation in body.mutations:
            self.after(mutation)

    def carried_out(self, mutations, is_elsewhere):
        self.is_elsewhere = is_elsewhere
        if is_elsewhere:
            return [self.refused(m) for m in mutations]
        results = []
        for mutation in mutations:
            if mutation.number > self.device.floor and any(r.code == 3014 for r in results):
                # MSG-10: nothing overtakes what needs a new number.
                results.append(pb.MutationResult(number=mutation.number, code=3014))
            else:
                results.append(self.server.carry_out(self.device, self.user, mutation))
        return results

    @staticmethod
    def refused(mutation):
        """SYN-33: not before the device knows the epoch in force."""
        return pb.MutationResult(
            number=mutation.number, code=1001, retry=2, retry_after_ms=1000)

    def restart(self):
        """SYN-24: a cursor above the head belongs to a history that this server has lost."""
        self.user.epoch = self.server.store_epoch + os.urandom(8)
        for other in list(self.user.connections):
            if other is not self:
                other.end(3001)

    def delta(self, start, page_bytes):
        given, size = [], 0
        above = self.user.above(start)
        for entry in above:
            size += entry.ByteSize()
            if given and size > page_bytes:
                break
            given.append(entry)
        more = len(given) < len(above)
        to = given[-1].seq if more else self.user.head
        delta = pb.Delta(
            entries=given, to=self.cursor(to), head=self.user.head, more=more,
            mutation_floor=self.device.floor)
        getattr(delta, "from").CopyFrom(self.cursor(start))
        if not more:
            delta.unread = self.server.unread(self.user)
        self.sent_to, self.more = to, more
        self.unacknowledged.append((to, delta.ByteSize()))
        return delta

    def cursor(self, seq):
        return pb.Cursor(epoch=self.user.epoch, seq=seq)

    def peek(self, body, request):
        if body.mutations or body.reads:
            return self.error(4003, request)
        is_good = body.cursor.epoch == self.user.epoch and body.cursor.seq <= self.user.head
        start = body.cursor.seq if body.HasField("cursor") and is_good else self.device.applied
        given, size = [], 0
        above = self.user.above(start)[::-1]
        for entry in above:
            size += entry.ByteSize()
            if given and size > (body.page_bytes or 65536):
                break
            given.append(entry)
        delta = pb.Delta(
            entries=given, to=self.cursor(start), head=self.user.head,
            more=len(given) < len(above), mutation_floor=self.device.floor)
        getattr(delta, "from").CopyFrom(self.cursor(start))
        if not delta.more:
            delta.unread = self.server.unread(self.user)
        self.send(delta, request)

    def tell(self):
        if not self.is_open or self.is_over:
            return
        if self.is_live and self.phase == pb.APP_PHASE_FOREGROUND and self.synced:
            while self.user.head > self.sent_to and self.has_room():
                self.send(self.delta(self.sent_to, 65536))
        elif self.told is None and self.user.told_head > max(self.device.applied, self.known()):
            self.told = self.user.head
            kinds = 0
            for entry in self.user.above(self.device.applied):
                body = entry.WhichOneof("body")
                kinds |= 1 << pb.Entry.DESCRIPTOR.fields_by_name[body].number - 10
            self.send(pb.SyncRequest(head=self.told, kinds=kinds))

    def known(self):
        """What was there when the session began is asked for by its first SYNC."""
        return 0 if self.synced else self.sent_to

    def has_room(self):
        if self.more and self.device.applied < self.sent_to:
            return False
        waiting = [size for _, size in self.unacknowledged]
        return len(waiting) < WINDOW_DELTAS and sum(waiting) < WINDOW_BYTES


def too_many(reads):
    return len(reads) > 256 or any(len(receipt.ranges) > 256 for receipt in reads)


def bare(text):
    """base64url without padding, and nothing else."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise ValueError(text)
    return raw


def members(text):
    """A JSON object; one that names a member twice is none (SES-9)."""
    def once(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("twice")
        return found

    def number(text):
        if "e" in text.lower():
            raise ValueError(text)
        return float(text)
    found = json.loads(bare(text).decode(), object_pairs_hook=once, parse_float=number)
    if not isinstance(found, dict):
        raise ValueError(text)
    return found


async def main(folder):
    with open(f"{folder}/issuer.pem", "rb") as file:
        key = load_pem_private_key(file.read(), None).public_key()
    server = Server(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["rouse/1"])
    context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")

    async def serve(reader, writer):
        await Connection(server, reader, writer).run()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, backlog=256)
    port = listener.sockets[0].getsockname()[1]
    credentials = {
        "app": APP, "server_name": "localhost", "without": WITHOUT,
        "tokens": {"key_file": "issuer.pem", "kid": KID, "issuer": APP},
    }
    with open(f"{folder}/credentials.json", "w", encoding="utf-8") as file:
        json.dump(credentials, file, indent=2)
    print(port, flush=True)
    # Ends with the process that started it.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", required=True)
    asyncio.run(main(parser.parse_args().folder))
