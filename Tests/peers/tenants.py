#!/usr/bin/python3
"""Two apps on one store, played at random through two nodes, each of them with what is the other's
mixed in: ids, identity tokens, session tokens, cursors, API keys. Nothing of one may ever be seen
by the other (P6).

Each app has users of the same names, devices of the same ids and conversations and messages of the
same ids: only texts, metadata and keys tell them apart. Whatever a call of one app answers, and
whatever its devices are told, must not hold the other's mark.

usage: tenants.py --other-port P --other-api PORT --other-ca FILE --other-app APP
    --other-api-key KEY --other-key FILE --seed N --steps N and what client.py takes
"""
import argparse
import collections
import copy
import http.client
import json
import os
import random
import sys
import uuid

from client import Client, arguments, identity_token, pb

parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
parser.add_argument("--other-port", type=int, required=True)
parser.add_argument("--other-api", type=int, required=True)
parser.add_argument("--other-ca", required=True)
parser.add_argument("--other-app", required=True)
parser.add_argument("--other-api-key", required=True)
parser.add_argument("--other-key", required=True)
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--steps", type=int, default=300)
extra, sys.argv[1:] = parser.parse_known_args(sys.argv[1:])
given = arguments(__doc__)
chance = random.Random(extra.seed)
USERS = [f"{name}-{extra.seed}" for name in ("anna", "bob", "carol", "dora")]
NODES = [(given.port, given.api, given.ca),
         (extra.other_port, extra.other_api, extra.other_ca)]
counts = collections.Counter()


class Leak(Exception):
    """Something of one app was seen by the other."""


class Tenant:
    """An app with its keys, its users' devices and what it has made."""

    def __init__(self, app, api_key, key_file, mark):
        self.app, self.api_key, self.mark = app, api_key, mark
        with open(key_file, encoding="utf-8") as file:
            self.key = file.read()
        self.devices = {}
        self.other = None
        # Ids of the same numbers in both apps, and some that only this one has.
        self.rooms, self.messages = [], []

    def text(self):
        return f"{self.mark} {chance.randrange(1 << 30)}"

    def watch(self, what, told):
        """What was told to this app, as bytes or JSON."""
        raw = told if isinstance(told, bytes) else json.dumps(told).encode()
        if self.other.mark.encode() in raw:
            raise Leak(f"{what} told {self.app}: {raw[:400]!r}")


ours = Tenant(given.app, given.api_key, given.key, "blue-mark")
theirs = Tenant(extra.other_app, extra.other_api_key, extra.other_key, "red-mark")
ours.other, theirs.other = theirs, ours


def call(tenant, method, path, body=None, key=None, watch=True):
    """A call of the tenant's backend through any node: its status and value."""
    connection = http.client.HTTPConnection("127.0.0.1", chance.choice(NODES)[1], timeout=30)
    headers = {"authorization": f"Bearer {key or tenant.api_key}"}
    if body is not None:
        headers["content-type"] = "application/json"
        if chance.random() < 0.3:
            # The same keys in both apps: an answer that was kept is its own app's.
            headers["Idempotency-Key"] = f"key-{chance.randrange(20)}-{extra.seed}"
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    counts[f"{method} {answer.status // 100}xx"] += 1
    if watch:
        tenant.watch(f"{method} {path}", content)
    try:
        return answer.status, json.loads(content)
    except ValueError:
        return answer.status, content


class Watched(Client):
    """A device that looks at each frame it is told."""

    tenant = None

    def read(self):
        frame = super().read()
        if frame:
            self.tenant.watch("a frame", frame[0].SerializeToString())
            counts[type(frame[0]).__name__] += 1
        return frame


def sign(tenant, user, **changes):
    return lambda nonce: identity_token(
        tenant.key, given.kid, tenant.app, user, nonce, **changes)


def device(tenant, user, number):
    """The user's device of this number, connected to any node; made if there is none. Both apps
    have devices of the same ids."""
    found = tenant.devices.get((user, number))
    if found:
        return found
    port, _, ca = chance.choice(NODES)
    client = Watched(port, ca, tenant.app,
                     device=uuid.uuid5(uuid.NAMESPACE_DNS, f"{extra.seed} {user} {number}").bytes,
                     features=["live"])
    client.tenant = tenant
    client.login(sign(tenant, user))
    tenant.devices[(user, number)] = client
    return client


def drop(tenant, place):
    client = tenant.devices.pop(place, None)
    if client:
        client.socket.close()


def asked(tenant, place, body, kind):
    """A request of a device and its answer; `None`: it was refused or closed."""
    client = tenant.devices[place]
    try:
        return answer_to(client, client.ask(body), kind)
    except (RuntimeError, EOFError, OSError):
        counts[f"{kind.__name__} refused"] += 1
        drop(tenant, place)
        return None


def answer_to(client, number, kind):
    """The answer to the request of this number; what comes before it is applied."""
    while True:
        frame = client.read()
        if frame is None:
            raise EOFError("the server closed")
        body, request = frame
        if isinstance(body, pb.Delta):
            client.apply(body)
        elif isinstance(body, pb.Ping):
            client.send(pb.Pong(next_ms=60000), request)
        if isinstance(body, kind) and request == number:
            return body
        if isinstance(body, (pb.Error, pb.Close)):
            raise RuntimeError(f"{kind.__name__} was expected: {body}")


def room_id(own):
    """An id that may be one of both apps'."""
    known = (ours if chance.random() < 0.5 else theirs).rooms if own is None else own.rooms
    if known and chance.random() < 0.9:
        return chance.choice(known)
    return uuid.UUID(int=chance.getrandbits(128))


# --- what backends and devices do; each takes an app, and may use what is the other's

def create(tenant):
    room = uuid.UUID(int=(0x0198 << 112) | (7 << 76) | (2 << 62) | chance.randrange(6)
                     | extra.seed << 8)
    status, _ = call(tenant, "POST", "/v1/conversations", {
        "id": str(room), "participants": chance.sample(USERS, chance.randint(2, 4)),
        "metadata": [{"path": ["title"], "value": tenant.text()}]})
    if status == 201 and room not in tenant.rooms:
        tenant.rooms.append(room)


def publish(tenant):
    body = {"sender": chance.choice(USERS),
            "parts": [{"mime_type": "text/plain", "text": tenant.text()}],
            "push": {"title": tenant.mark, "body": tenant.text()}}
    if tenant.other.messages and chance.random() < 0.3:
        body["id"] = chance.choice(tenant.other.messages)
    status, made = call(
        tenant, "POST", f"/v1/conversations/{room_id(None)}/messages", body)
    if status == 201:
        tenant.messages.append(made["id"])


def look(tenant):
    room = room_id(None)
    message = chance.choice(ours.messages + theirs.messages + [str(uuid.uuid4())])
    user = chance.choice(USERS)
    device = uuid.uuid5(uuid.NAMESPACE_DNS, f"{extra.seed} {user} {chance.randrange(2)}")
    call(tenant, "GET", chance.choice([
        f"/v1/conversations/{room}", f"/v1/conversations/{room}/messages",
        f"/v1/conversations/{room}/participants", f"/v1/conversations/{room}/receipts",
        f"/v1/messages/{message}", f"/v1/messages/{message}/explain?user={user}",
        f"/v1/users/{user}", f"/v1/users/{user}/devices", f"/v1/users/{user}/conversations",
        f"/v1/users/{user}/mutes", f"/v1/users/{user}/blocks",
        f"/v1/devices/{device}", f"/v1/devices/{device}/wakes", "/v1/webhooks",
        "/v1/campaigns", "/v1/scheduled", "/v1/push/feedback",
    ]))


def change(tenant):
    room, user = room_id(None), chance.choice(USERS)
    message = chance.choice(ours.messages + theirs.messages + [str(uuid.uuid4())])
    method, path, body = chance.choice([
        ("PATCH", f"/v1/conversations/{room}/metadata", 
         {"changes": [{"path": ["title"], "value": tenant.text()}]}),
        ("POST", f"/v1/conversations/{room}/participants", {"users": [user]}),
        ("POST", f"/v1/conversations/{room}/participants/remove", {"users": [user]}),
        ("PUT", f"/v1/messages/{message}",
         {"parts": [{"mime_type": "text/plain", "text": tenant.text()}]}),
        ("DELETE", f"/v1/messages/{message}", None),
        ("DELETE", f"/v1/announcements/{message}", None),
        ("POST", "/v1/announcements",
         {"users": [user], "push": {"title": tenant.mark},
          "parts": [{"mime_type": "text/plain", "text": tenant.text()}]}),
        ("PUT", f"/v1/users/{user}/conversations/{room}/mute", {}),
        ("DELETE", f"/v1/users/{user}/conversations/{room}/mute", None),
        ("POST", f"/v1/users/{user}/sessions/revoke", None),
        ("POST", "/v1/webhooks", {"url": f"https://127.0.0.1:9/{tenant.mark}",
                                  "events": ["message.published"]}),
    ])
    if "revoke" in path:
        # Who is logged out in one app stays in the other: its devices go on below.
        for number in range(2):
            drop(tenant, (user, number))
    call(tenant, method, path, body)


def wrong_key(tenant):
    """A key of the other app is that app's, whatever the ids say; a mixed one is nobody's."""
    mixed = tenant.api_key[:len(tenant.api_key) // 2] + \
        tenant.other.api_key[len(tenant.other.api_key) // 2:]
    status, _ = call(tenant, "GET", f"/v1/conversations/{room_id(None)}/messages", key=mixed)
    if mixed not in (tenant.api_key, tenant.other.api_key):
        assert status == 401, status


def write(tenant):
    place = (chance.choice(USERS), chance.randrange(2))
    client = device(tenant, *place)
    room = room_id(None).bytes
    client.numbers = max(client.numbers, client.welcome.mutation_floor) + 1
    message = chance.choice(ours.messages + theirs.messages + [str(uuid.uuid4())])
    operation = chance.choice([
        {"send_message": pb.SendMessage(
            conversation=room, message=os.urandom(16), push=pb.PushText(title=tenant.mark),
            parts=[pb.Part(mime_type="text/plain", content=tenant.text().encode())])},
        {"send_message": pb.SendMessage(
            conversation=room, message=uuid.UUID(message).bytes,
            parts=[pb.Part(mime_type="text/plain", content=tenant.text().encode())])},
        {"create_conversation": pb.CreateConversation(
            conversation=room, participants=chance.sample(USERS, 2))},
    ])
    asked(tenant, place, pb.Mutation(number=client.numbers, **operation), pb.MutationResult)


def fetch(tenant):
    place = (chance.choice(USERS), chance.randrange(2))
    device(tenant, *place)
    asked(tenant, place, pb.Fetch(conversation=room_id(None).bytes, limit=50), pb.Page)


def sync(tenant):
    """With a cursor of its own, or of the same device in the other app."""
    place = (chance.choice(USERS), chance.randrange(2))
    client = device(tenant, *place)
    foreign = tenant.other.devices.get(place)
    body = client.sync_body(pb.SYNC_REASON_SYNC_REQUEST)
    is_foreign = foreign and foreign.cursor and chance.random() < 0.5
    if is_foreign:
        body.cursor.epoch, body.cursor.seq = foreign.cursor
    delta = asked(tenant, place, body, pb.Delta)
    if is_foreign and delta:
        assert delta.HasField("reset"), "the other app's cursor was continued"
        counts["foreign cursor reset"] += 1


def intrude(tenant):
    """Logs in with what is the other app's: its session token, or a token that its key signed."""
    user, number = chance.choice(USERS), chance.randrange(2)
    foreign = device(tenant.other, user, number)
    port, _, ca = chance.choice(NODES)
    client = Watched(port, ca, tenant.app, device=foreign.device, features=["live"])
    client.tenant = tenant
    way = chance.randrange(3)
    if way == 0:
        client.token, client.cursor = foreign.token, foreign.cursor
        client.connect()
        client.send(client.hello())
        frame = client.read()
        if frame and isinstance(frame[0], pb.Welcome):
            raise Leak("a session token of the other app let in")
        counts["foreign token refused"] += 1
    else:
        audience = tenant.app if way == 1 else tenant.other.app
        try:
            client.login(lambda nonce: identity_token(
                tenant.other.key, given.kid, audience, user, nonce))
            raise Leak(f"a token of {tenant.other.app}'s issuer let into {tenant.app}")
        except (RuntimeError, EOFError, TypeError):
            # TypeError: the connection was closed without a word.
            counts["foreign identity refused"] += 1
    client.socket.close()


def reconnect(tenant):
    if tenant.devices:
        drop(tenant, chance.choice(sorted(tenant.devices)))


STEPS = [(create, 3), (publish, 8), (look, 8), (change, 5), (wrong_key, 1), (write, 6),
         (fetch, 5), (sync, 6), (intrude, 2), (reconnect, 1)]

for number in range(extra.steps):
    step = chance.choices([s for s, _ in STEPS], [w for _, w in STEPS])[0]
    step(chance.choice([ours, theirs]))

# At the end every device has seen everything of its own app, and nothing else.
seen = 0
for tenant in (ours, theirs):
    for user in USERS:
        for index in range(2):
            client = device(tenant, user, index)
            try:
                client.sync()
            except (RuntimeError, EOFError, OSError):
                drop(tenant, (user, index))
                client = device(tenant, user, index)
            seen += sum(tenant.mark.encode() in entry.SerializeToString()
                        for entry in client.objects.values())
assert seen > 20, f"the story was empty: {seen} entries with a mark, {dict(counts)}"
for wanted in ("GET 2xx", "GET 4xx", "POST 2xx", "POST 4xx"):
    assert counts[wanted], f"no {wanted}: {dict(counts)}"
print(f"tenants {extra.seed}: ok, {seen} entries, {dict(counts)}")
