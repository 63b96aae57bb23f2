"""Publishes with the Python client of Deploy/sdk/python, over connections that fail.

usage: sdk.py --api PORT --api-key KEY [and what other peers take]

Between the client and the server stands a door that does with each request what it is told: lets
it through, breaks off before or after the server had it, or answers in the server's place. What
came of each is read past the door. Prints a line a fact, and `all is well` at the end.
"""

import argparse
import hashlib
import hmac
import json
import os
import socket
import threading
import time
from email.message import Message

from rouse_backend import (
    BadDelivery, Client, Conflict, NotFound, Problem, Refused, Retries, TryLater, Unauthorized,
    Unreachable, verify_webhook)

QUICK = Retries(tries=4, first_pause=0.01, longest_pause=0.05, within=120)


class Door:
    """Takes one request a connection, as HTTP/1.1 with lengths, and obeys `orders` in turn."""

    def __init__(self, server):
        self.server = server
        self.orders = []
        #: Heads of the requests that came, and how many went through to the server.
        self.heads, self.through = [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            peer, _ = self.listener.accept()
            with peer:
                try:
                    self.one(peer)
                except OSError:
                    pass

    def one(self, peer):
        head, body = read(peer)
        if not head:
            return
        self.heads.append(head)
        order = self.orders.pop(0) if self.orders else "pass"
        if order == "cut before":
            return
        if order.isdigit():
            status = int(order)
            peer.sendall(
                f"HTTP/1.1 {status} Later\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n".encode())
            return
        with socket.create_connection(("127.0.0.1", self.server)) as server:
            server.sendall(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body)
            answer = b""
            while piece := server.recv(65536):
                answer += piece
        self.through += 1
        if order == "pass":
            peer.sendall(answer)
        elif order in CUTS:
            peer.sendall(CUTS[order](answer))


def half(answer, instead=None):
    """An answer that breaks off in the midst of its body; `instead` of its length."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if instead is not None:
        lines = [line for line in head.split(b"\r\n")
                 if not line.lower().startswith(b"content-length:")]
        head = b"\r\n".join([*lines, instead] if instead else lines)
    body = body[:len(body) // 2]
    if instead:
        body = b"%x\r\n%s\r\n" % (len(body), body)
    return head + b"\r\n\r\n" + body


CUTS = {
    "cut length": half,
    "cut chunk": lambda answer: half(answer, b"Transfer-Encoding: chunked"),
    "cut without a length": lambda answer: half(answer, b""),
    "cut to nothing": lambda answer: half(answer, b"").partition(b"\r\n\r\n")[0] + b"\r\n\r\n",
}


def read(peer):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(65536)
        if not piece:
            return b"", b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        body += peer.recv(65536)
    return head + b"\r\n\r\n", body


def key_of(head):
    for line in head.decode().split("\r\n"):
        if line.lower().startswith("idempotency-key:"):
            return line.split(":", 1)[1].strip()
    return None


def text(words, push=True):
    message = {"sender": "anna", "parts": [{"mime_type": "text/plain", "text": words}]}
    if push:
        message["push"] = {"title": "Anna", "body": words}
    return message


def expect(fact, name):
    if not fact:
        raise SystemExit(f"FAILED: {name}")
    print("ok", name)


def raises(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as problem:
        return problem
    raise SystemExit(f"FAILED: {kind.__name__} was expected")


def once(straight, door, client):
    """However a try ends, the message is there once."""
    room = straight.create_conversation({"participants": ["anna", "ben"]})["id"]
    for number, orders in enumerate((
        ["cut after"], ["cut before"], ["503"], ["429"], ["507"], ["502"],
        ["cut after", "cut after", "503"],
    )):
        words = f"message {number}"
        door.orders, door.heads, before = list(orders), [], door.through
        start = time.monotonic()
        message = client.publish_message(room, text(words))
        took = time.monotonic() - start
        expect(len(door.heads) == len(orders) + 1, f"{orders}: {len(orders) + 1} tries")
        expect(len({key_of(head) for head in door.heads}) == 1 and key_of(door.heads[0]),
               f"{orders}: one key")
        expect(door.through - before == orders.count("cut after") + 1, f"{orders}: went through")
        expect(took >= orders.count("503") * 1.0, f"{orders}: not before Retry-After")
        stored = [
            one for one in straight.every(straight.list_messages, room, limit=3)
            if one["parts"][0]["text"] == words]
        expect([one["id"] for one in stored] == [message["id"]], f"{orders}: applied once")
    # Given up, and asked again by the program with the same key.
    door.orders = ["cut after"] * QUICK.tries
    problem = raises(Unreachable, client.publish_message, room, text("last"), idempotency_key="j1")
    expect(problem.is_carried_out is None and problem.idempotency_key == "j1", "nobody knows")
    message = client.publish_message(room, text("last"), idempotency_key="j1")
    rows = list(straight.every(straight.list_messages, room, limit=3))
    expect(len(rows) == 8 and rows[0]["id"] == message["id"], "8 messages, each once")
    raises(Conflict, client.publish_message, room, text("other"), idempotency_key="j1")
    return room


def unkeyed(door, client):
    """What has no key and is not idempotent is tried again only if it was not carried out."""
    door.orders, door.heads = ["cut after"], []
    problem = raises(Unreachable, client.create_webhook, {"url": "https://example.org/hook"})
    expect(problem.is_carried_out is None and len(door.heads) == 1, "a webhook is not made twice")
    door.orders, door.heads = ["429"], []
    hook = client.create_webhook({"url": "https://example.org/other"})
    expect(len(door.heads) == 2 and hook["secret"], "429 was said before anything was done")
    door.orders, door.heads = ["503"], []
    raises(TryLater, client.suspend_user, "ben")
    expect(len(door.heads) == 1, "503 may come after it was done")
    expect(len(client.list_webhooks()["webhooks"]) == 2, "two webhooks")


def broken(straight, door, client):
    """An answer that breaks off in its midst is one that did not come."""
    room = straight.create_conversation({"participants": ["anna", "ben"]})["id"]
    for order in CUTS:
        door.orders, door.heads, before = [order, order], [], door.through
        message = client.publish_message(room, text(order))
        expect(len({key_of(head) for head in door.heads}) == 1 and door.through == before + 3,
               f"{order}: three tries of one request")
        rows = list(straight.every(straight.list_messages, room))
        expect([row["id"] for row in rows if row["parts"][0]["text"] == order] == [message["id"]],
               f"{order}: there once")
        door.orders = [order]
        expect(client.show_conversation(room)["id"] == room, f"{order}: a read is repeated")
        # What is not repeated says so.
        door.orders, door.heads = [order], []
        hook = {"url": f"https://example.org/{len(order)}"}
        problem = raises(Unreachable, client.create_webhook, hook)
        expect(problem.is_carried_out is None and len(door.heads) == 1, f"{order}: nobody knows")
    # Also where it was a refusal.
    door.orders, door.heads = ["cut length"], []
    raises(NotFound, client.show_conversation, "0190a1b2-c3d4-7123-8456-000000000000")
    expect(len(door.heads) == 2, "a refusal that broke off is asked for again")
    for hook in straight.list_webhooks()["webhooks"]:
        straight.remove_webhook(hook["id"])


class Canned(threading.Thread):
    """A server of its own, which gives such answers in turn, and keeps what it was asked."""

    def __init__(self, answers, host="127.0.0.1"):
        super().__init__(daemon=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, 0), family=family)
        self.port = self.listener.getsockname()[1]
        self.answers, self.heads = answers, []
        self.start()

    def run(self):
        for answer in self.answers:
            peer, _ = self.listener.accept()
            with peer:
                self.heads.append(read(peer)[0].decode())
                body = json.dumps(answer).encode()
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
                             % (len(body), body))

    def asked(self):
        return [head.split(" ")[1] for head in self.heads]


def paging(straight):
    """A list goes on where its server says, with what else was asked, and never for ever."""
    room = straight.create_conversation({"participants": ["anna", "ben"]})["id"]
    for number in range(5):
        straight.publish_message(room, text(str(number), push=False))

    def words(rows):
        return [row["parts"][0]["text"] for row in rows]

    rising = words(straight.every(straight.list_messages, room, order="ascending", limit=2))
    expect(rising == ["0", "1", "2", "3", "4"], "the order is asked for with every piece")
    first = straight.list_messages(room, order="ascending", limit=2)
    rest = straight.every(
        straight.list_messages, room, order="ascending", limit=2, cursor=first["next"])
    expect(words(rest) == ["2", "3", "4"], "a list goes on from a cursor")
    expect(list(straight.every(straight.list_dropped_tokens)) == [], "no token was dropped")
    expect(list(straight.every(straight.list_webhooks)) == [], "a list of one piece")
    raises(TypeError, list, straight.every(straight.show_conversation, room))
    # What was dropped is told with a `next` also where there is no more.
    one, two = {"user": "anna"}, {"user": "ben"}
    server = Canned([{"dropped": [one], "next": "1"}, {"dropped": [two], "next": "2"},
                     {"dropped": [], "next": "2"}])
    client = Client(f"http://127.0.0.1:{server.port}", "rk", retries=QUICK)
    rows = list(client.every(client.list_dropped_tokens, limit=1))
    expect(rows == [one, two], "dropped tokens, each once")
    expect(server.asked() == [f"/v1/push/feedback?{query}" for query in (
        "limit=1", "after=1&limit=1", "after=2&limit=1")], "each after the one before")
    # A cache that does not look at the query gives the same piece again and again.
    server = Canned([{"messages": [{"id": "1"}], "next": "same"}] * 9)
    client = Client(f"http://127.0.0.1:{server.port}", "rk", retries=QUICK)
    raises(Problem, list, client.every(client.list_messages, room))
    expect(len(server.heads) == 2, "a list that does not go on ends")


def sixth():
    """Addresses of IPv6, which have colons of their own."""
    server = Canned([{"webhooks": []}], "::1")
    client = Client(f"http://[::1]:{server.port}/base", "rk", retries=Retries(tries=1))
    expect(client.list_webhooks() == {"webhooks": []}, "an address of IPv6")
    expect(f"\r\nHost: [::1]:{server.port}\r\n" in server.heads[0], "the Host of it")
    expect(server.asked() == ["/base/v1/webhooks"], "the path of its own")
    for url, port in (("http://[::1]", 80), ("https://[::1]", 443), ("https://[::1]:8443", 8443)):
        connection = Client(url, "rk")._connection()  # noqa: SLF001, nobody listens there
        expect((connection.host, connection.port) == ("::1", port), f"{url}: port {port}")


def signed():
    """A delivery is taken as any framework hands it over, and nothing else is."""
    secret, other = "whs_" + "s" * 43, "whs_" + "o" * 43
    body = json.dumps({"delivery": "d", "events": [], "app": "ü"}, ensure_ascii=False).encode()
    now = 1_800_000_000

    def line(*secrets, at=now):
        return ",".join([f"t={at}"] + ["v1=" + hmac.new(
            one.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest() for one in secrets])

    right = line(secret)
    message = Message()
    message["ROUSE-SIGNATURE"] = right
    for name, headers in {
        "lower": {"rouse-signature": right}, "camel": {"Rouse-Signature": right},
        "bytes": [(b"host", b"x"), (b"rouse-signature", right.encode())], "message": message,
        "spaces": {"rouse-signature": right.replace(",", " , ")},
        "rotation": {"rouse-signature": line(other, secret)},
        "later": {"rouse-signature": right + ",v2=xyz"},
    }.items():
        for given in (body, bytearray(body), memoryview(body), body.decode()):
            for secrets in (secret, secret.encode(), [other, secret], (one for one in [secret])):
                found = verify_webhook(given, headers, secrets, now=now + 299)
                if found["app"] != "ü":
                    raise SystemExit(f"FAILED: {name}: {found}")
        print("ok taken:", name)
    code = right.split("v1=")[1]
    for name, (given, headers) in {
        "another body": (body + b" ", {"rouse-signature": right}),
        "another secret": (body, {"rouse-signature": line(other)}),
        "no header": (body, {}), "two headers": (body, [("rouse-signature", right)] * 2),
        "empty": (body, {"rouse-signature": ""}),
        "no time": (body, {"rouse-signature": f"v1={code}"}),
        "two times": (body, {"rouse-signature": f"t={now}," + right}),
        "a word": (body, {"rouse-signature": f"t=now,v1={code}"}),
        "other digits": (body, {"rouse-signature": f"t=١٢,v1={code}"}),
        "a long time": (body, {"rouse-signature": f"t={'9' * 400},v1={code}"}),
        "below zero": (body, {"rouse-signature": f"t=-{now},v1={code}"}),
        "no code": (body, {"rouse-signature": f"t={now}"}),
        "a short code": (body, {"rouse-signature": f"t={now},v1={code[:-1]}"}),
        "a foreign letter": (body, {"rouse-signature": f"t={now},v1={code[:-1]}é"}),
        "many codes": (body, {"rouse-signature": right + f",v1={code}" * 1000}),
        "no text": (body, {"rouse-signature": 5}), "none": (body, {"rouse-signature": None}),
        "no bytes": (None, {"rouse-signature": right}), "a number": (7, {"rouse-signature": right}),
        "read already": ({"delivery": "d"}, {"rouse-signature": right}),
        "no headers": (body, None), "a text": (body, "rouse-signature"), "pairs": (body, [1, 2]),
        "bytes of none": (body, {b"rouse-signature": b"\xff\xfe"}),
    }.items():
        raises(BadDelivery, verify_webhook, given, headers, secret, now=now)
        print("ok refused:", name)
    headers = {"rouse-signature": right}
    for away in (-301, 301, 1e9):
        raises(BadDelivery, verify_webhook, body, headers, secret, now=now + away)
    raises(BadDelivery, verify_webhook, body, headers, secret)
    for secrets in (None, "", [], [""], 5, [None], b"", ["short"], {}, [secret, ""]):
        problem = raises(ValueError, verify_webhook, body, headers, secrets)
        expect(secret not in str(problem), f"no secret: {str(secrets)[:9]}")
    body = b"[1"
    raises(BadDelivery, verify_webhook, body, {"rouse-signature": line(secret)}, secret, now=now)


def refusals(straight, client, port):
    nowhere = "0190a1b2-c3d4-7123-8456-000000000000"
    problem = raises(NotFound, client.publish_message, nowhere, text("hi"))
    expect((problem.status, problem.name, problem.code) == (404, "not_found", 4004), "not found")
    expect(problem.request_id and problem.detail, "a refusal has words and the request's name")
    raises(Unauthorized, Client(f"http://127.0.0.1:{port}", "rk_wrong").list_webhooks)
    problem = raises(Refused, straight.create_conversation, {"participants": "anna"})
    expect(problem.status == 400 and "participants" in problem.detail, "the field is named")
    with socket.create_server(("127.0.0.1", 0)) as free:
        closed = free.getsockname()[1]
    gone = Client(f"http://127.0.0.1:{closed}", "rk", retries=QUICK)
    problem = raises(Unreachable, gone.suspend_user, "ben")
    expect(problem.is_carried_out is False, "where nobody listens nothing was done")


def lists(straight, room):
    names = [f"user {number} ü/?" for number in range(7)]
    straight.add_participants(room, {"users": names})
    found = [one["user"] for one in straight.every(straight.list_participants, room, limit=2)]
    expect(found == sorted(["anna", "ben", *names]), "a list in pieces, with names of any kind")
    inbox = straight.list_user_conversations("ben")["conversations"]
    mine = next(one for one in inbox if one["id"] == room)
    expect(mine["unread"] == 8, "8 unread")
    expect(mine["last_message"]["parts"][0]["text"] == "last", "the last message")
    expect(straight.show_user(names[0])["user"] == names[0], "a user with a slash")
    straight.delete_conversation(room)
    expect("openapi: 3.1.0" in straight.show_description(), "the description")


def idle(port, key):
    """A connection that the server closed meanwhile is opened anew, before anything is asked."""
    client = Client(f"http://127.0.0.1:{port}", key, retries=Retries(tries=1))
    client.list_webhooks()
    sock = client._connection().sock  # noqa: SLF001, to end it as the server would
    expect(sock is not None, "the connection is kept")
    sock.shutdown(socket.SHUT_RD)
    client.revoke_sessions("anna")
    print("ok asked over another connection")


def keys(port, key):
    """What no header can hold is refused before it is sent, and a key is never in an error."""
    problem = raises(ValueError, Client, f"http://127.0.0.1:{port}", key + "\n")
    expect(key not in str(problem), "the error does not hold the API key")
    client = Client(f"http://127.0.0.1:{port}", key)
    for key in ("two words", ""):
        raises(ValueError, client.publish_message, "room", text("x"), idempotency_key=key)


def forked(port, key):
    """A child has a connection of its own: answers of both do not mix."""
    client = Client(f"http://127.0.0.1:{port}", key)
    client.list_webhooks()
    before = client._connection()  # noqa: SLF001, to tell the two apart
    child = os.fork()
    if child == 0:
        os._exit(0 if client._connection() is not before else 1)  # noqa: SLF001
    expect(os.waitpid(child, 0)[1] == 0, "a child has a connection of its own")
    expect(client._connection() is before, "its parent keeps the one it has")  # noqa: SLF001


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", type=int, required=True)
    parser.add_argument("--api-key", required=True)
    given, _ = parser.parse_known_args()
    door = Door(given.api)
    straight = Client(f"http://127.0.0.1:{given.api}", given.api_key, timeout=60)
    client = Client(
        f"http://127.0.0.1:{door.port}", given.api_key, timeout=60, retries=QUICK)
    room = once(straight, door, client)
    unkeyed(door, client)
    broken(straight, door, client)
    paging(straight)
    sixth()
    signed()
    refusals(straight, client, given.api)
    lists(straight, room)
    idle(given.api, given.api_key)
    keys(given.api, given.api_key)
    forked(given.api, given.api_key)
    print("all is well")


if __name__ == "__main__":
    main()
