#!/usr/bin/python3
"""A whole client of the sync protocol, written from Protocol/ alone, as the driver that `rouse
conform client` wants (Protocol/conformance.md): commands on standard input, a line of JSON for each.

It keeps everything in one file, replaced as a whole. It takes the feed, not snapshots, and does not
peek.

usage: driver.py --host H --port P --name N --ca FILE --app A --user U --key FILE --kid K --dir D
"""
import argparse
import json
import os
import random
import select
import socket
import ssl
import sys
import time
import uuid

from client import FRAMES, TYPES, identity_token, pb

FEATURES = ["live", "signal"]
# Retry classes, as registry.md has them for the codes this client knows.
CLASSES = {
    1000: 1, 1001: 2, 1002: 2, 1003: 1, 1004: 2, 2000: 3, 2001: 3, 2002: 3, 2003: 3, 2004: 3,
    2005: 0, 2006: 3, 3000: 4, 3001: 4, 3002: 4, 3003: 4, 5000: 1, 5001: 1, 5002: 0, 5003: 1,
    5004: 0, 5005: 5, 5007: 1, 5008: 2, 5009: 1,
}


def text_id(raw):
    return str(uuid.UUID(bytes=bytes(raw)))


def raw_id(text):
    return uuid.UUID(text).bytes


class Fault(Exception):
    """What the server sent is no frame; `code` goes into CLOSE (framing.md)."""

    def __init__(self, code):
        super().__init__(f"fault {code}")
        self.code = code


class Store:
    """What outlives the process: one file, replaced in one step."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "device.json")
        self.held = {
            "device": os.urandom(16).hex(), "token": "", "user": "", "cursor": None, "round": 0,
            "resetting": False, "reset_head": 0, "objects": {}, "number": 0, "outbox": [], "results": {},
            "reads": {},
        }
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.held = json.load(file)
        else:
            self.save()

    def save(self):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.held, file)
        os.replace(self.path + ".new", self.path)

    def __getitem__(self, name):
        return self.held[name]

    def __setitem__(self, name, value):
        self.held[name] = value


class Driver:
    """One device. Times are seconds of a clock that never goes back."""

    def __init__(self, given):
        self.given = given
        self.store = Store(given.dir)
        with open(given.key, encoding="utf-8") as file:
            self.key = file.read()
        self.phase, self.remaining, self.wake = None, 0, b""
        self.failures, self.healthy = 0, False
        self.is_stopped = False
        self.superseded = []
        self.connect_at = None
        self.not_before = 0.0
        self.signals = {}
        self.socket = None
        self.forget_connection()

    def forget_connection(self):
        self.socket, self.received, self.is_open = None, b"", False
        self.requests, self.open_sync, self.wanted, self.asked = 0, None, False, 0
        self.sent, self.fetched, self.retry_at, self.sync_at = set(), set(), None, None
        self.floor, self.taken, self.epoch = 0, set(), b""
        self.keepalive, self.unanswered = 180.0, 32
        self.last_sent = self.last_heard = time.monotonic()
        self.pinged_at, self.slot_at, self.close = None, None, None
        self.body_limit, self.is_asked_again, self.features = 16384, False, []

    # The loop.

    def run(self):
        commands = b""
        while True:
            readers = [0] + ([self.socket] if self.socket else [])
            wait = max(0.0, min(self.deadlines(), default=time.monotonic() + 60) - time.monotonic())
            if self.socket and self.socket.pending():
                wait = 0
            ready, _, _ = select.select(readers, [], [], wait)
            if 0 in ready:
                chunk = os.read(0, 65536)
                if not chunk:
                    return
                commands += chunk
                while b"\n" in commands:
                    line, commands = commands.split(b"\n", 1)
                    print(json.dumps(self.command(line.decode().split(" "))), flush=True)
            if self.socket:
                self.read()
            self.passed(time.monotonic())

    def deadlines(self):
        if self.socket is None:
            return [self.connect_at] if self.connect_at is not None else []
        found = [self.last_sent + self.keepalive * 0.9]
        if self.pinged_at is not None:
            found = [self.pinged_at + 30]
        return found + [at for at in (self.slot_at, self.retry_at, self.sync_at) if at is not None]

    def passed(self, now):
        if self.socket is None:
            if self.connect_at is not None and now >= self.connect_at:
                self.connect()
            return
        if self.slot_at is not None and now >= self.slot_at:
            self.hang_up()
            self.connect()
        elif self.pinged_at is not None:
            if now >= self.pinged_at + 30:
                self.hang_up()
                self.come_back()
        elif now >= self.last_sent + self.keepalive * 0.9:
            self.pinged_at = now
            self.send(pb.Ping(next_ms=int(self.keepalive * 1000)), self.request())
        if self.retry_at is not None and now >= self.retry_at:
            self.retry_at = None
            self.send_mutations()
        if self.sync_at is not None and now >= self.sync_at:
            self.sync_at = None
            self.want_sync()

    # Commands.

    def command(self, words):
        try:
            handler = getattr(self, "do_" + words[0], None)
            if handler is None:
                return {"unsupported": f"the client has no `{words[0]}`"}
            return handler(*words[1:]) or {}
        except (ValueError, TypeError, OSError) as problem:
            return {"error": str(problem)}

    def do_foreground(self):
        self.appear(pb.APP_PHASE_FOREGROUND, 0)

    def do_background(self, remaining):
        self.appear(pb.APP_PHASE_BACKGROUND, int(remaining))

    def do_wake(self, wake, remaining):
        self.wake = raw_id(wake)
        self.failures = 0
        self.appear(pb.APP_PHASE_BACKGROUND, int(remaining))
        self.now()

    def appear(self, phase, remaining):
        before = self.phase
        self.phase, self.remaining = phase, remaining
        if self.is_open:
            self.send(self.app_state())
        elif phase == pb.APP_PHASE_FOREGROUND or before is None:
            self.failures = 0
            self.now()

    def now(self):
        if self.socket is None and not self.is_stopped:
            self.connect_at = max(time.monotonic(), self.not_before)

    def do_sleep(self):
        if self.is_open:
            self.send(pb.Close(code=5000, retry=1, applied=self.said()))
        self.hang_up()
        self.connect_at = None
        self.phase = pb.APP_PHASE_INACTIVE

    def do_network(self):
        self.failures = 0
        if self.socket is None and self.connect_at is not None:
            self.connect_at = time.monotonic()

    def do_refresh(self):
        if self.is_open:
            self.want_sync()
        else:
            self.now()

    def do_send(self, conversation, message, *text):
        return self.queue(pb.Mutation(send_message=pb.SendMessage(
            conversation=raw_id(conversation), message=raw_id(message),
            parts=[pb.Part(mime_type="text/plain", content=" ".join(text).encode())])))

    def do_logout(self):
        return self.queue(pb.Mutation(forget_device=pb.ForgetDevice()))

    def do_read(self, conversation, position):
        raw = raw_id(conversation).hex()
        self.store["reads"][raw] = max(int(position), self.store["reads"].get(raw, 0))
        self.store.save()
        if self.is_open:
            self.send(pb.Ack(applied=self.applied(), reads=self.reads()))

    def do_fetch(self, conversation):
        if self.is_open:
            self.send(pb.Fetch(conversation=raw_id(conversation)), self.request())

    def notice(self, message, conversation):
        """What it would show of a message (PSH-12)."""
        hints = message.hints
        sound = {pb.SOUND_KIND_NONE: "", pb.SOUND_KIND_UNSPECIFIED: "default"}
        shown = {
            "title": message.push.title, "subtitle": hints.subtitle, "body": message.push.body,
            "sound": sound.get(hints.sound.kind, hints.sound.name),
            "thread": hints.thread or conversation, "category": hints.category,
            "event": hints.event, "object": hints.object, "data": hints.data}
        return {name: text for name, text in shown.items() if text}

    def do_state(self):
        held = self.store.held
        now = time.monotonic()
        conversations = {}
        for text, row in held["objects"].items():
            kind, conversation, _ = text.split("/", 2)
            if not conversation:
                continue
            place = conversations.setdefault(conversation, {
                "id": text_id(bytes.fromhex(conversation)), "known": False, "messages": []})
            entry = pb.Entry.FromString(bytes.fromhex(row["entry"]))
            is_tombstone = entry.WhichOneof("body") == "tombstone"
            if kind == "conversation":
                place["known"] = not is_tombstone
            elif kind == "message":
                state = entry.tombstone if is_tombstone else entry.message
                text = "" if is_tombstone else state.parts[0].content.decode()
                told = {
                    "id": text_id(entry.object), "position": state.position, "text": text,
                    "deleted": is_tombstone}
                if not is_tombstone and state.HasField("push"):
                    told["notice"] = self.notice(state, text_id(entry.conversation))
                place["messages"].append(told)
        self.signals = {k: until for k, until in self.signals.items() if until > now}
        cursor = held["cursor"]
        return {
            "connected": self.is_open, "user": held["user"],
            "cursor": cursor and {"epoch": text_id(bytes.fromhex(cursor[0])), "seq": cursor[1]},
            "pending": [m["number"] for m in held["outbox"]],
            "results": [{"number": int(n), "code": c} for n, c in held["results"].items()],
            "conversations": list(conversations.values()),
            "signals": [{"conversation": c, "user": u, "kind": k} for c, u, k in self.signals],
        }

    # Connecting.

    def connect(self):
        self.forget_connection()
        self.connect_at = None
        context = ssl.create_default_context(cafile=self.given.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["rouse/1"])
        try:
            raw = socket.create_connection((self.given.host, self.given.port), timeout=20)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket = context.wrap_socket(raw, server_hostname=self.given.name)
        except OSError:
            self.socket = None
            return self.come_back()
        hello = pb.Hello(
            version_min=1, version_max=1, app=self.given.app,
            device=bytes.fromhex(self.store["device"]), role=pb.ROLE_APP, client_name="driver.py",
            client_version="1", features=FEATURES, wake=self.wake,
            session_token=bytes.fromhex(self.store["token"]))
        hello.app_state.CopyFrom(self.app_state())
        hello.sync.CopyFrom(self.sync_body(pb.SYNC_REASON_CONNECT))
        self.open_sync = self.request()
        self.send(hello, self.open_sync)

    def come_back(self):
        """After a connection that failed or was lost (CON-14)."""
        if self.phase in (None, pb.APP_PHASE_INACTIVE):
            return
        delay = self.delay()
        self.connect_at = max(time.monotonic() + delay, self.not_before)

    def delay(self):
        if self.healthy:
            self.healthy, self.failures = False, 0
            return random.uniform(0, 5)
        bound = min(2 ** self.failures, 30 if self.phase == pb.APP_PHASE_FOREGROUND else 300)
        self.failures += 1
        return random.uniform(0, bound)

    def hang_up(self):
        if self.socket:
            try:
                self.socket.close()
            except OSError:
                pass
        self.forget_connection()

    def ended(self):
        """The connection is gone; what CLOSE said decides what comes (CON-11)."""
        close, slot = self.close, self.slot_at
        self.hang_up()
        if slot is not None:
            self.connect_at = slot
        elif close is None:
            self.come_back()
        elif close.code == 5002:
            self.gave_way()
        else:
            self.closed(close, CLASSES.get(close.code, close.retry))

    def closed(self, close, retry):
        if retry == 0:
            return
        if retry == 5:
            self.is_stopped = True
            return
        if retry == 2:
            self.not_before = time.monotonic() + close.retry_after_ms / 1000
        if retry == 3:
            logout = [m for m in self.store["outbox"] if self.is_logout(m)]
            self.drop_token()
            if logout:
                self.answered(logout[0]["number"], 0)
                return
        self.come_back()

    def gave_way(self):
        """SES-16."""
        now = time.monotonic()
        self.superseded = [at for at in self.superseded if at > now - 60] + [now]
        if len(self.superseded) > 5:
            self.superseded = []
            self.drop_token()
        elif len(self.superseded) == 1 and self.phase == pb.APP_PHASE_FOREGROUND:
            self.connect_at = now + random.uniform(5, 10)

    def drop_token(self):
        self.store["token"] = ""
        self.store.save()

    # Frames.

    def request(self):
        self.requests = self.requests % 65535 + 1
        return self.requests

    def send(self, body, request=0):
        if self.socket is None:
            return
        content = body.SerializeToString(deterministic=True)
        header = len(content).to_bytes(3, "big") + bytes([TYPES[type(body)], 0, 0])
        self.last_sent = time.monotonic()
        try:
            self.socket.setblocking(True)
            self.socket.sendall(header + request.to_bytes(2, "big") + content)
        except OSError:
            # Its end is read soon.
            pass

    def read(self):
        try:
            self.socket.setblocking(False)
            chunk = self.socket.recv(65536)
        except (ssl.SSLWantReadError, BlockingIOError):
            return
        except OSError:
            chunk = b""
        self.received += chunk
        try:
            while self.socket and len(self.received) >= 8:
                if not self.take_frame():
                    break
        except Fault as fault:
            self.send(pb.Close(code=fault.code, applied=self.said()))
            self.hang_up()
            return self.come_back()
        if not chunk and self.socket:
            self.ended()

    def take_frame(self):
        """framing.md: flags, reserved byte, type, length, in this order."""
        header = self.received[:8]
        length, kind, flags = int.from_bytes(header[:3], "big"), header[3], header[4]
        if flags & ~5 or header[5]:
            raise Fault(5004)
        if kind not in FRAMES and not flags & 4:
            raise Fault(4008)
        if length > self.body_limit:
            raise Fault(4001)
        if len(self.received) < 8 + length:
            return False
        content, self.received = self.received[8:8 + length], self.received[8 + length:]
        self.last_heard, self.pinged_at = time.monotonic(), None
        if kind in FRAMES:
            try:
                body = FRAMES[kind].FromString(content)
            except Exception as problem:
                raise Fault(4000) from problem
            self.take(body, int.from_bytes(header[6:8], "big"))
        return True

    def take(self, body, request):
        name = type(body).__name__
        handler = getattr(self, "take_" + name, None)
        if handler is None:
            raise Fault(5004)
        handler(body, request)

    def take_Ping(self, _, request):
        self.send(pb.Pong(next_ms=int(self.keepalive * 1000)), request)

    def take_Pong(self, *_):
        pass

    def take_Close(self, close, _):
        self.close = close

    def take_Drain(self, drain, _):
        self.slot_at = time.monotonic() + drain.slot_ms / 1000

    def take_Signal(self, signal, _):
        key = (text_id(signal.conversation), signal.user, "typing")
        if signal.kind == pb.SIGNAL_KIND_TYPING:
            self.signals[key] = time.monotonic() + self.lifetime(signal)
        else:
            self.signals.pop(key, None)

    def lifetime(self, signal):
        return min(signal.ttl_ms or 6000, 30000) / 1000

    def take_Challenge(self, challenge, _):
        if any(self.is_logout(m) for m in self.store["outbox"]) and self.store["token"]:
            # MSG-7: the logout took effect.
            self.answered(next(m for m in self.store["outbox"] if self.is_logout(m))["number"], 0)
            self.drop_token()
            return self.hang_up()
        if self.is_open:
            self.is_asked_again = True
        else:
            # SES-8: the inline SYNC was dropped.
            self.open_sync, self.sent = None, set()
        self.send(pb.Authenticate(identity_token=identity_token(
            self.key, self.given.kid, self.given.app, self.given.user, challenge.nonce)))

    def take_Welcome(self, welcome, _):
        self.epoch = welcome.epoch
        self.save_welcome(welcome)
        if self.is_asked_again:
            self.is_asked_again = False
            if self.is_shared():
                self.send(pb.Ack(applied=self.applied()))
            return
        self.is_open, self.body_limit, self.wake = True, 262144, b""
        self.features = list(welcome.features)
        if welcome.keepalive_ms:
            self.keepalive = welcome.keepalive_ms / 1000
        if welcome.limits.mutations_unanswered:
            self.unanswered = min(32, welcome.limits.mutations_unanswered)
        self.floor, self.taken = welcome.mutation_floor, set()
        if self.open_sync is None:
            self.want_sync()
        self.send_mutations()

    def save_welcome(self, welcome):
        self.store["token"] = welcome.session_token.hex()
        self.store["user"] = welcome.user
        self.store["number"] = max(self.store["number"], welcome.mutation_floor)
        self.store.save()

    def renumber(self):
        """MSG-12: once all at or below the floor are answered, what another life has taken, and
        everything behind it, gets new numbers in order."""
        waiting = [m["number"] for m in self.store["outbox"]]
        if any(n <= self.floor and n not in self.taken for n in waiting):
            return
        first = min(self.taken)
        for mutation in self.store["outbox"]:
            if mutation["number"] >= first:
                self.store["number"] = max(self.store["number"], self.floor) + 1
                mutation["number"] = self.store["number"]
        self.sent, self.taken, self.retry_at = set(), set(), None
        self.store.save()

    def app_state(self):
        return pb.AppState(phase=self.phase or 0, remaining_ms=self.remaining)

    # The feed.

    def applied(self):
        return self.store["cursor"][1] if self.store["cursor"] else 0

    def is_shared(self):
        """SYN-14: nothing of another history is acknowledged."""
        held = self.store["cursor"]
        return not held or not self.epoch or bytes.fromhex(held[0]) == self.epoch

    def said(self):
        return self.applied() if self.is_shared() else 0

    def reads(self):
        return [pb.ReadReceipt(conversation=bytes.fromhex(raw), through=through)
                for raw, through in self.store["reads"].items()]

    def sync_body(self, reason):
        body = pb.Sync(mode=pb.SYNC_MODE_ADVANCE, reason=reason, reads=self.reads())
        if self.store["cursor"]:
            epoch, seq = self.store["cursor"]
            body.cursor.epoch, body.cursor.seq, body.applied = bytes.fromhex(epoch), seq, seq
            body.reset_head = self.store["reset_head"]
        return body

    def want_sync(self):
        if not self.is_open or self.open_sync is not None:
            self.wanted = True
            return
        self.wanted = False
        self.open_sync = self.request()
        self.send(self.sync_body(pb.SYNC_REASON_SYNC_REQUEST), self.open_sync)

    def take_SyncRequest(self, asked, _):
        self.asked = max(self.asked, asked.head)
        if self.applied() >= asked.head and self.is_shared():
            self.send(pb.Ack(applied=self.applied()))
        elif self.open_sync is None:
            self.want_sync()

    def take_Delta(self, delta, request):
        if request and request == self.open_sync:
            self.open_sync = None
        for result in delta.results:
            self.take_MutationResult(result, 0)
        if delta.HasField("reset"):
            self.reset(delta)
        elif not self.continues(delta):
            return self.want_sync()
        held = self.store["cursor"]
        if delta.HasField("reset") or held is None or delta.to.seq > held[1]:
            self.apply(delta)
        self.acknowledge(delta)

    def continues(self, delta):
        """SYN-13."""
        held = self.store["cursor"]
        start = getattr(delta, "from")
        if held is None:
            return start.seq == 0
        return start.epoch.hex() == held[0] == delta.to.epoch.hex() and start.seq <= held[1]

    def reset(self, delta):
        """SYN-25: what is here is stale, and stays until the last page."""
        self.epoch = delta.to.epoch
        self.store["round"] += 1
        self.store["resetting"] = True
        # SYN-34: it is saved with the page's rows.
        self.store["reset_head"] = delta.head

    def apply(self, delta):
        for entry in delta.entries:
            self.keep(entry)
        self.store["cursor"] = [delta.to.epoch.hex(), delta.to.seq]
        if self.store["resetting"] and not delta.more:
            rows = self.store["objects"]
            self.store["objects"] = {
                k: row for k, row in rows.items() if row["round"] == self.store["round"]}
            self.store["resetting"] = False
        self.store.save()

    def acknowledge(self, delta):
        if delta.more and delta.reset.retry_after_ms:
            # SYN-26.
            self.sync_at = time.monotonic() + delta.reset.retry_after_ms / 1000
            return
        if delta.more:
            return self.want_sync()
        self.send(pb.Ack(applied=self.applied()))
        self.healthy, self.failures = True, 0
        if self.wanted or self.asked > self.applied():
            self.want_sync()

    @staticmethod
    def place(entry):
        """What tells objects apart (SYN-3)."""
        kind = entry.WhichOneof("body")
        state = getattr(entry, kind)
        name = entry.object.hex() if kind in ("message", "announcement") else ""
        if kind == "tombstone":
            single = "message" if entry.conversation else "announcement"
            kind = "conversation" if state.conversation else single
            name = "" if state.conversation else entry.object.hex()
        elif kind == "conversation_state":
            kind, name = "conversation", ""
        elif kind in ("participant", "receipt", "block"):
            name = state.user
        return f"{kind}/{entry.conversation.hex()}/{name}"

    def keep(self, entry):
        kind = entry.WhichOneof("body")
        if kind is None:
            return
        rows, key = self.store["objects"], self.place(entry)
        row = rows.get(key)
        if row and row["round"] == self.store["round"] and row["version"] >= entry.version:
            gone = entry.tombstone
            if kind == "tombstone" and gone.conversation and not gone.for_everyone:
                # MSG-36: the conversation came back first.
                self.empty(entry, key)
            return
        rows[key] = {"round": self.store["round"], "version": entry.version,
                     "entry": entry.SerializeToString().hex()}
        parent = f"conversation/{entry.conversation.hex()}/"
        if kind == "message" and parent not in rows and parent not in self.fetched:
            # HIS-9.
            self.fetched.add(parent)
            self.send(pb.Fetch(object=entry.conversation), self.request())
        if kind == "read_mark":
            raw = entry.conversation.hex()
            if self.store["reads"].get(raw, 0) <= entry.read_mark.through:
                self.store["reads"].pop(raw, None)
        if kind == "tombstone" and entry.tombstone.conversation:
            self.empty(entry, key)

    def empty(self, entry, own):
        """MSG-36, MSG-37."""
        rows = self.store["objects"]
        for key in list(rows):
            kind, conversation, _ = key.split("/", 2)
            if conversation != entry.conversation.hex() or key == own:
                continue
            held = pb.Entry.FromString(bytes.fromhex(rows[key]["entry"]))
            position = held.message.position or held.tombstone.position
            is_gone = kind == "message" and position <= entry.tombstone.position
            if entry.tombstone.for_everyone or is_gone:
                del rows[key]

    def take_Page(self, page, _):
        for entry in page.entries:
            self.keep(entry)
        self.store.save()

    # Mutations.

    @staticmethod
    def is_logout(mutation):
        return pb.Mutation.FromString(
            bytes.fromhex(mutation["operation"])).HasField("forget_device")

    def queue(self, mutation):
        self.store["number"] += 1
        number = self.store["number"]
        self.store["outbox"].append({
            "number": number, "operation": mutation.SerializeToString().hex(), "at": time.time()})
        self.store.save()
        self.send_mutations()
        return {"number": number}

    def send_mutations(self):
        if not self.is_open or self.is_asked_again or self.retry_at is not None:
            return
        is_settled = all(m["number"] > self.floor for m in self.store["outbox"])
        for mutation in self.store["outbox"]:
            if len(self.sent) >= self.unanswered:
                return
            if mutation["number"] > self.floor and not is_settled:
                # MSG-12.
                return
            if mutation["number"] not in self.sent:
                self.sent.add(mutation["number"])
                self.send(self.mutation(mutation), self.request())

    def mutation(self, held):
        body = pb.Mutation.FromString(bytes.fromhex(held["operation"]))
        body.number = held["number"]
        body.delay_ms = max(0, int((time.time() - held["at"]) * 1000))
        return body

    def take_MutationResult(self, result, _):
        retry = CLASSES.get(result.code, result.retry) if result.code else None
        if retry in (1, 2):
            # MSG-11, MSG-14: this one and all behind it come again, in order.
            self.sent = {n for n in self.sent if n < result.number}
            at = time.monotonic() + max(1.0, result.retry_after_ms / 1000)
            self.retry_at = max(self.retry_at or 0, at)
            return
        if self.is_of_another_life(result):
            self.taken.add(result.number)
        else:
            self.answered(result.number, result.code)
        if self.taken:
            self.renumber()
        self.send_mutations()

    def is_of_another_life(self, result):
        """MSG-12."""
        held = [m for m in self.store["outbox"] if m["number"] == result.number]
        if not held or result.code == 3014:
            return bool(held)
        body = pb.Mutation.FromString(bytes.fromhex(held[0]["operation"]))
        if result.number > self.floor or not body.HasField("send_message"):
            return False
        if result.code == 3013:
            return result.position == 0
        return bool(result.object) and result.object != body.send_message.message

    def answered(self, number, code):
        self.sent.discard(number)
        self.store["outbox"] = [m for m in self.store["outbox"] if m["number"] != number]
        self.store["results"][str(number)] = code
        self.store.save()

    def take_Error(self, error, request):
        retry = CLASSES.get(error.code, error.retry)
        was_sync = request and request == self.open_sync
        if was_sync:
            self.open_sync = None
        if retry in (1, 2) and was_sync:
            self.sync_at = time.monotonic() + max(1.0, error.retry_after_ms / 1000)
        elif retry == 3:
            self.drop_token()
            self.hang_up()
            self.come_back()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("host", "name", "ca", "app", "user", "key", "kid", "dir"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--defect", help="of mutant.py")
    return parser.parse_args()


if __name__ == "__main__":
    Driver(arguments()).run()
