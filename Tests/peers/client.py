#!/usr/bin/python3
"""A client of the sync protocol in another language, written from Protocol/ alone.

It needs Google's protobuf (python3-protobuf), PyJWT (python3-jwt) and protoc; sync.proto is
compiled at start. As a library it is `Client`; as a program it plays one scenario:

usage: client.py --port P --ca FILE --app APP --key FILE --kid KID [--host H]

Two users log in; one creates a conversation with the other and sends a line; the other, in hint
mode, gets a sync-request, syncs, and has the line once. Exit status 0 if all of it happened.
"""
import argparse
import base64
import http.client
import importlib
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import jwt

HERE = os.path.dirname(os.path.abspath(__file__))
PROTOCOL = os.path.join(HERE, "..", "..", "Protocol")


def schema():
    """The bodies, compiled from sync.proto."""
    with tempfile.TemporaryDirectory(prefix="rouse-proto-") as folder:
        subprocess.run(
            ["protoc", f"--proto_path={PROTOCOL}", f"--python_out={folder}", "sync.proto"],
            check=True)
        sys.path.insert(0, folder)
        try:
            return importlib.import_module("sync_pb2")
        finally:
            sys.path.remove(folder)


pb = schema()

FRAMES = {
    0x01: pb.Hello, 0x02: pb.Challenge, 0x03: pb.Authenticate, 0x04: pb.Welcome, 0x10: pb.Sync,
    0x11: pb.Delta, 0x12: pb.SyncRequest, 0x13: pb.Ack, 0x20: pb.Mutation,
    0x21: pb.MutationResult, 0x22: pb.Fetch, 0x23: pb.Page, 0x24: pb.Snapshot,
    0x25: pb.SnapshotPage, 0x30: pb.Signal, 0x31: pb.AppState, 0x32: pb.Digest,
    0x33: pb.DigestResult, 0x40: pb.Ping, 0x41: pb.Pong, 0x42: pb.Drain, 0x43: pb.Error,
    0x44: pb.Close,
}
TYPES = {body: number for number, body in FRAMES.items()}
STORAGE_BUSY = 1004


def identity_token(key, kid, app, user, nonce, **changes):
    """What the app's backend signs (session.md, SES-9)."""
    now = int(time.time())
    claims = {
        "iss": "tests", "sub": user, "aud": app, "exp": now + 300, "iat": now,
        "nonce": base64.urlsafe_b64encode(nonce).rstrip(b"=").decode(),
    }
    algorithm = changes.pop("algorithm", "ES256")
    headers = {"kid": kid}
    claims.update(changes)
    claims = {k: v for k, v in claims.items() if v is not None}
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


class Client:
    """One device. Keeps what it applied in memory: entries by object, and the cursor."""

    def __init__(self, port, ca, app, host="127.0.0.1", device=None, features=(),
                 plain=False):
        self.app, self.device, self.features = app, device or os.urandom(16), features
        self.address, self.ca, self.plain = (host, port), ca, plain
        self.token, self.cursor, self.objects, self.log = b"", None, {}, []
        self.numbers, self.requests = 0, 0

    def connect(self):
        self.received = b""
        if self.plain:
            self.socket = socket.create_connection(self.address, timeout=20)
            return
        context = ssl.create_default_context(cafile=self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["rouse/1"])
        raw = socket.create_connection(self.address, timeout=20)
        self.socket = context.wrap_socket(raw, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "rouse/1"
        self.received = b""

    def send(self, body, request=0):
        content = body.SerializeToString()
        header = len(content).to_bytes(3, "big") + bytes([TYPES[type(body)], 0, 0])
        self.socket.sendall(header + request.to_bytes(2, "big") + content)

    def ask(self, body):
        """Sends a request and returns its number."""
        self.requests += 1
        self.send(body, self.requests)
        return self.requests

    def read(self):
        """The next frame: (body, request). None when the connection ended."""
        while True:
            if len(self.received) >= 8:
                length = int.from_bytes(self.received[:3], "big")
                if len(self.received) >= 8 + length:
                    header, content = self.received[:8], self.received[8:8 + length]
                    self.received = self.received[8 + length:]
                    body = FRAMES[header[3]]()
                    body.ParseFromString(content)
                    return body, int.from_bytes(header[6:8], "big")
            chunk = self.socket.recv(65536)
            if not chunk:
                return None
            self.received += chunk

    def expect(self, kind):
        """The next frame of this kind; DELTAs on the way are applied, PINGs answered."""
        while True:
            frame = self.read()
            if frame is None:
                raise EOFError(f"the server closed; {kind.__name__} was expected")
            body = frame[0]
            if isinstance(body, pb.Delta):
                self.apply(body)
            elif isinstance(body, pb.Ping):
                self.send(pb.Pong(next_ms=60000), frame[1])
            if isinstance(body, kind):
                return body
            if isinstance(body, (pb.Error, pb.Close)):
                raise RuntimeError(f"{kind.__name__} was expected: {body}")

    def expect_error(self):
        """The next ERROR."""
        while True:
            frame = self.read()
            if frame is None:
                raise EOFError("the server closed; an ERROR was expected")
            if isinstance(frame[0], pb.Error):
                return frame[0]

    def hello(self, **fields):
        hello = pb.Hello(
            version_min=1, version_max=1, app=self.app, device=self.device, role=pb.ROLE_APP,
            client_name="python", client_version="1", features=list(self.features),
            session_token=self.token, **fields)
        hello.app_state.phase = pb.APP_PHASE_FOREGROUND
        hello.sync.CopyFrom(self.sync_body(pb.SYNC_REASON_CONNECT))
        return hello

    def login(self, sign):
        """HELLO, and AUTHENTICATE if the server asks; sign(nonce) gives the identity token."""
        self.connect()
        self.send(self.hello())
        body, _ = self.read()
        asked = isinstance(body, pb.Challenge)
        if asked:
            self.send(pb.Authenticate(identity_token=sign(body.nonce)))
            body, _ = self.read()
        if not isinstance(body, pb.Welcome):
            raise RuntimeError(f"no WELCOME: {body}")
        self.welcome, self.token = body, body.session_token
        if asked:
            self.ask(self.sync_body(pb.SYNC_REASON_CONNECT))
        delta = self.expect(pb.Delta)
        while delta.more:
            delta = self.sync()
        return body

    def sync_body(self, reason):
        body = pb.Sync(mode=pb.SYNC_MODE_ADVANCE, reason=reason)
        if self.cursor:
            body.cursor.epoch, body.cursor.seq = self.cursor
            body.applied = self.cursor[1]
        return body

    def sync(self, reason=pb.SYNC_REASON_SYNC_REQUEST):
        self.ask(self.sync_body(reason))
        return self.expect(pb.Delta)

    def apply(self, delta):
        start = (delta.to.epoch, delta.to.seq)
        if not delta.HasField("reset"):
            if self.cursor is None or self.cursor[0] != delta.to.epoch:
                raise RuntimeError("a DELTA of another epoch without reset")
            if getattr(delta, "from").seq > self.cursor[1]:
                raise RuntimeError("a gap")
            if delta.to.seq <= self.cursor[1]:
                return
        for entry in delta.entries:
            kind = entry.WhichOneof("body")
            state = getattr(entry, kind)
            name = getattr(state, "user", "")
            key = (kind, entry.conversation, entry.object, name)
            if key not in self.objects or self.objects[key].version < entry.version:
                self.objects[key] = entry
                self.log.append(entry)
        self.cursor = start
        self.send(pb.Ack(applied=self.cursor[1]))

    def mutate(self, **operation):
        self.numbers = max(self.numbers, self.welcome.mutation_floor) + 1
        return self.send_until_taken(pb.Mutation(number=self.numbers, **operation))

    def send_until_taken(self, mutation):
        """Sends it again where the store is busy, not before the time it tells (RETRY_AFTER)."""
        for _ in range(20):
            self.ask(mutation)
            result = self.expect(pb.MutationResult)
            if result.code != STORAGE_BUSY:
                break
            time.sleep(result.retry_after_ms / 1000)
        return result

    def messages(self, conversation):
        found = [e for e in self.objects.values()
                 if e.WhichOneof("body") == "message" and e.conversation == conversation]
        return [e.message for e in sorted(found, key=lambda e: e.message.position)]

    def close(self):
        self.send(pb.Close(code=5000, applied=self.cursor[1] if self.cursor else 0))
        self.socket.close()


class Backend:
    """The app's backend: one HTTP connection to the backend API, kept open."""

    def __init__(self, given):
        self.connection = http.client.HTTPConnection(given.host, given.api, timeout=30)
        self.key = given.api_key

    def call(self, method, path, body=None, **headers):
        """The answer's status and, where it is JSON, its value."""
        if body is not None:
            headers["content-type"] = "application/json"
            body = json.dumps(body)
        headers["authorization"] = f"Bearer {self.key}"
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        is_json = "json" in answer.getheader("content-type", "")
        return answer.status, json.loads(content) if is_json else content

    def create(self, *participants):
        status, made = self.call("POST", "/v1/conversations", {"participants": participants})
        assert status == 201, made
        return made["id"]

    def publish(self, conversation, sender, text, **headers):
        """The answer's status and value."""
        return self.call(
            "POST", f"/v1/conversations/{conversation}/messages",
            {"sender": sender, "parts": [{"mime_type": "text/plain", "text": text}],
             "push": {"body": text[:100]}}, **headers)


def scenario(arguments):
    with open(arguments.key, encoding="utf-8") as file:
        key = file.read()

    def signer(user):
        return lambda nonce: identity_token(key, arguments.kid, arguments.app, user, nonce)

    place = dict(port=arguments.port, ca=arguments.ca, app=arguments.app, host=arguments.host,
                 plain=arguments.plain)
    anna, bob = Client(**place, features=["live"]), Client(**place)
    anna.login(signer("anna"))
    bob.login(signer("bob"))
    conversation, message = os.urandom(16), os.urandom(16)
    created = anna.mutate(create_conversation=pb.CreateConversation(
        conversation=conversation, participants=["bob"]))
    assert created.code == 0, created
    hello = pb.SendMessage(
        conversation=conversation, message=message,
        parts=[pb.Part(mime_type="text/plain", content="hello".encode())],
        push=pb.PushText(title="anna", body="hello"))
    sent = anna.mutate(send_message=hello)
    assert sent.code == 0 and sent.position == 1, sent
    again = anna.send_until_taken(pb.Mutation(number=anna.numbers, send_message=hello))
    assert again == sent, "a retry got another answer"
    asked = bob.expect(pb.SyncRequest)
    while bob.cursor[1] < asked.head or not bob.messages(conversation):
        bob.sync()
    texts = [(m.position, m.sender, m.parts[0].content) for m in bob.messages(conversation)]
    assert texts == [(1, "anna", b"hello")], texts
    bob.send(pb.Ack(applied=bob.cursor[1], reads=[
        pb.ReadReceipt(conversation=conversation, through=1)]))
    while ("receipt", conversation, b"", "bob") not in anna.objects:
        anna.expect(pb.Delta)
    token = bob.token
    bob.close()
    back = Client(**place, device=bob.device)
    back.token, back.cursor, back.objects = token, bob.cursor, bob.objects
    back.login(signer("bob"))
    assert len(back.messages(conversation)) == 1
    back.close()
    anna.close()
    print("logged in, synced, sent, got a sync-request, came back: ok")


def arguments(text):
    """The command line all peers share."""
    parser = argparse.ArgumentParser(description=text.split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--plain", action="store_true", help="without TLS")
    parser.add_argument("--app", required=True)
    parser.add_argument("--key", required=True, help="the issuer's private key, PEM")
    parser.add_argument("--kid", required=True)
    parser.add_argument("--api", type=int, help="the backend API's port")
    parser.add_argument("--api-key")
    parser.add_argument("--server", type=int, help="the server's process")
    parser.add_argument("--folder", help="where the test keeps its files")
    return parser.parse_args()


if __name__ == "__main__":
    scenario(arguments(__doc__))
