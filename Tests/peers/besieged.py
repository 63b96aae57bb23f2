#!/usr/bin/python3
"""Measures what one client, app or stranger that attacks costs everybody else: starts a server of
its own and, under each attack, asks it as another app's client (PING), as an orchestrator (/livez),
and as a device that logs in. A report, not a test: it judges nothing.

usage: besieged.py --rouse BINARY [--seconds N] [--attackers N] [--only NAME,NAME] [--json]

examples:
  Tests/peers/besieged.py --rouse .build/release/rouse
  Tests/peers/besieged.py --rouse .build/release/rouse --only digest,fetch --seconds 20

The attackers are processes on the same machine, so that they take processor time from the server,
too: the line `busy` shows what as many processes that do nothing but count cost it.
"""
import argparse
import collections
import http.client
import json
import multiprocessing
import os
import resource
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import types

from attacks import ACK, PING, SIGNAL, Attack, Peer
from client import Backend, pb

KID = "dev"
CONVERSATIONS, BLOCKS, HIDDEN = 1000, 1000, 20_000
# What becomes of a peer that the server does not serve: TypeError, a frame awaited at the end.
REFUSALS = (OSError, RuntimeError, EOFError, TypeError, http.client.HTTPException)
# Conversations of attackers of this process, by user: they come back to them when closed.
PREPARED = {}
READY_S, PREPARED_S, FILLED_S = 60, 300, 20


def free_port():
    with socket.socket() as plain:
        plain.bind(("127.0.0.1", 0))
        return plain.getsockname()[1]


class Server:
    """A server with two apps, in a folder of its own."""

    def __init__(self, binary, settings=()):
        self.binary, self.settings = os.path.abspath(binary), settings
        self.held = tempfile.TemporaryDirectory(prefix="rouse-besieged-")
        self.folder = self.held.name
        self.port, self.api = free_port(), free_port()
        self.rouse("dev", "certificates", "tls")
        self.rouse("dev", "key", "issuer")
        lines = [
            "store.path = store.db", f"listen.port = {self.port}", f"api.port = {self.api}",
            "tls.certificate_file = tls/server.pem", "tls.key_file = tls/server.key",
            "log.level = warning", "limits.user_mutations = 0"]
        with open(os.path.join(self.folder, "rouse.conf"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines + list(settings)) + "\n")
        with open(os.path.join(self.folder, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--config", "rouse.conf"], cwd=self.folder, stdout=log,
                stderr=log)
        end = time.monotonic() + READY_S
        while not self.is_ready():
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("the server does not start:\n" + self.log())
            time.sleep(0.05)
        self.keys = {app: self.make(app) for app in ("attacked", "other")}

    def rouse(self, *words):
        done = subprocess.run(
            [self.binary, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"rouse {' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout

    def make(self, app):
        self.rouse("app", "create", app, "--config", "rouse.conf")
        self.rouse("app", "issuer-key", "add", app, "--kid", KID, "--key", "issuer.pub.pem",
                   "--config", "rouse.conf")
        return self.rouse("app", "api-key", "create", app, "--config", "rouse.conf").split()[-1]

    def is_ready(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.api, timeout=1)
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def given(self, app):
        """What the peers take from the command line."""
        place = os.path.join
        return types.SimpleNamespace(
            port=self.port, host="127.0.0.1", ca=place(self.folder, "tls", "ca.pem"), app=app,
            key=place(self.folder, "issuer.pem"), kid=KID, api=self.api,
            api_key=self.keys[app])

    def processor_seconds(self):
        """What the server's process has used until now."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.held.cleanup()


class Siege:
    """One server, what the attacks need in its store, and the attackers' processes."""

    def __init__(self, server, seconds, attackers):
        self.server, self.seconds, self.attackers = server, seconds, attackers
        self.attack = Attack(server.given("attacked"))

    def measure(self, name, attacker):
        """Runs the attack and tells what others saw, and what it cost the server."""
        other = Attack(self.server.given("other"))
        over = threading.Event()
        watches = [
            Watch(over, pinging(other)), Watch(over, asking(self.server.api)),
            Watch(over, entering(other))]
        begun = multiprocessing.Event()
        processes = [
            multiprocessing.Process(target=self.run, args=(attacker, number, begun), daemon=True)
            for number in range(self.attackers if attacker else 0)]
        for process in processes:
            process.start()
        if processes and not begun.wait(PREPARED_S):
            raise SystemExit(f"{name}: the attack does not begin")
        for watch in watches:
            watch.start()
        used = self.server.processor_seconds()
        start = time.monotonic()
        time.sleep(self.seconds)
        used = (self.server.processor_seconds() - used) / (time.monotonic() - start)
        over.set()
        for watch in watches:
            watch.join()
        for process in processes:
            process.kill()
            process.join()
        ping, livez, login = (watch.tell() for watch in watches)
        return {"attack": name, "ping": ping, "livez": livez, "login": login,
                "server_cores": round(used, 2)}

    def run(self, attacker, number, begun):
        """The life of one attacker: what it does until its process is killed."""
        # The server is measured, not how much processor time it gets beside the attackers.
        os.nice(10)
        step = attacker(self.attack, number)
        begun.set()
        while True:
            try:
                step()
            except REFUSALS:
                time.sleep(0.01)
                step = self.again(attacker, number)

    def again(self, attacker, number):
        while True:
            try:
                return attacker(self.attack, number)
            except REFUSALS:
                time.sleep(0.05)


class Watch(threading.Thread):
    """Does one thing again and again, and notes how long it took. What fails counts with the time
    until it failed, and is done again."""

    def __init__(self, over, act):
        super().__init__(daemon=True)
        self.over, self.act, self.times, self.failures = over, act, [], 0

    def run(self):
        while not self.over.wait(0.05):
            start = time.monotonic()
            try:
                self.act()
            except REFUSALS:
                self.failures += 1
            self.times.append(time.monotonic() - start)

    def tell(self):
        times = sorted(self.times) or [0]
        return {"p50_ms": round(times[len(times) // 2] * 1000, 1),
                "worst_ms": round(times[-1] * 1000, 1), "asked": len(self.times),
                "failed": self.failures}


def pinging(attack):
    """PINGs of a client that is connected before the attack; each comes in two pieces, as larger
    frames do."""
    state = {"peer": attack.login("watch", "127.0.9.9")}
    body = pb.Ping(next_ms=60000).SerializeToString()
    whole = frame(0x40, body, 9)

    def act():
        try:
            state["peer"].socket.sendall(whole[:5])
            state["peer"].socket.sendall(whole[5:])
            state["peer"].expect(pb.Pong)
        except REFUSALS:
            state["peer"] = attack.login("watch", "127.0.9.9")
            raise

    return act


def asking(port):
    """/livez, over a connection of its own each time."""
    def act():
        api = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        api.request("GET", "/livez")
        api.getresponse().read()
        api.close()

    return act


def entering(attack):
    """Logins of a new device, from an address that attacks nobody."""
    return lambda: attack.login(f"late{os.urandom(4).hex()}", "127.0.8.8").close()


# The attacks: each gives the step that its process repeats.

def busy(_attack, _number):
    """Nothing against the server: processor time alone."""
    return lambda: sum(range(100_000))


def flood(peer, content):
    """Sends the bytes for ever and throws the answers away."""
    secure = peer.socket
    secure.setblocking(False)
    state = {"rest": memoryview(content)}

    def step():
        select.select([secure], [secure], [], 0.1)
        try:
            count = secure.send(state["rest"])
            state["rest"] = state["rest"][count:] or memoryview(content)
        except ssl.SSLWantWriteError:
            pass
        try:
            while True:
                if not secure.recv(65536):
                    raise OSError("closed")
        except ssl.SSLWantReadError:
            pass

    return step


def frame(kind, content, request=1):
    header = len(content).to_bytes(3, "big") + bytes([kind, 0, 0]) + request.to_bytes(2, "big")
    return header + content


MERGED_NUMBER, MERGED_OPERATION = bytes([0x08, 1]), bytes([0x52, 5, 0x12, 3]) + b"abc"


def merge(attack, number):
    """A MUTATE of 56 KB that begins its operation anew 8,000 times (H2)."""
    body = MERGED_NUMBER + MERGED_OPERATION * 8000
    return flood(attack.login(f"merge{number}"), frame(0x20, body))


def stranger_merge(attack, _number):
    """A DELTA whose entry begins anew 1,000 times, by somebody who never logs in (H2)."""
    entry = pb.Entry(message=pb.Message(parts=[pb.Part(mime_type="a/b")]))
    merged = entry.SerializeToString() * 1000
    number = pb.Delta.DESCRIPTOR.fields_by_name["entries"].number
    size = bytes([len(merged) & 0x7F | 0x80, len(merged) >> 7])
    delta = frame(0x11, bytes([number << 3 | 2]) + size + merged)

    def step():
        peer = Peer(attack.given, f"127.0.3.{1 + os.getpid() % 200}")
        peer.connect()
        peer.socket.sendall(delta)
        peer.last_code()
        peer.socket.close()

    return step


def deep_json(attack, _number):
    """A publish whose push data is 500 deep, eight times beside itself (H3)."""
    deep = "[" * 500 + "]" * 500
    data = "{" + ",".join(f'"k{n}":{deep}' for n in range(8)) + "}"
    backend = Backend(attack.given)
    room = backend.create("ben", "anna")
    body = ('{"sender":"ben","parts":[{"mime_type":"text/plain","text":"x"}],'
            f'"push":{{"body":"x","data":{data}}}}}')

    def step():
        backend.connection.request(
            "POST", f"/v1/conversations/{room}/messages", body,
            {"authorization": f"Bearer {backend.key}", "content-type": "application/json"})
        backend.connection.getresponse().read()

    return step


def digest(attack, number):
    """DIGEST without end, by a user of many conversations who blocks many (H4)."""
    peer = attack.login(f"digest{number}")
    if not peer.objects:
        prepare(peer, CONVERSATIONS, BLOCKS)
    while peer.sync().more:
        pass

    def step():
        body = pb.Digest()
        body.cursor.epoch, body.cursor.seq = peer.cursor
        answered(peer, body)

    return step


def answered(peer, body):
    """Asks, and reads until the answer is there, or a refusal: then it is asked again at once."""
    request = peer.ask(body)
    while True:
        frame = peer.read()
        if frame is None or isinstance(frame[0], pb.Close):
            raise OSError("closed")
        if frame[1] == request:
            return
        if isinstance(frame[0], pb.Delta):
            peer.apply(frame[0])


def prepare(peer, conversations, blocks):
    """As many conversations of the user's own, and users who are blocked."""
    for number in range(conversations):
        peer.numbers = max(peer.numbers, peer.welcome.mutation_floor) + 1
        peer.send(pb.Mutation(number=peer.numbers, create_conversation=pb.CreateConversation(
            conversation=os.urandom(16), participants=["ben"])), 1)
        peer.expect(pb.MutationResult)
    for number in range(blocks):
        peer.numbers += 1
        peer.send(pb.Mutation(number=peer.numbers, block_user=pb.BlockUser(
            user=f"blocked{number}", blocked=True)), 1)
        peer.expect(pb.MutationResult)


def fetch(attack, number):
    """FETCH in a conversation where all is of a sender who is blocked (H4)."""
    user = f"fetch{number}"
    if user not in PREPARED:
        PREPARED[user] = Backend(attack.given).create(user, "blocked")
        publish_many(attack, PREPARED[user], HIDDEN)
    peer = attack.login(user)
    peer.numbers = peer.welcome.mutation_floor + 1
    peer.send(pb.Mutation(number=peer.numbers, block_user=pb.BlockUser(
        user="blocked", blocked=True)), 1)
    peer.expect(pb.MutationResult)
    name = bytes.fromhex(PREPARED[user].replace("-", ""))
    return lambda: answered(peer, pb.Fetch(conversation=name))


def publish_many(attack, room, count):
    """Without waiting for each answer: 64 requests at a time on one connection."""
    body = json.dumps({"sender": "blocked", "parts": [{"mime_type": "text/plain", "text": "x"}]})
    head = (f"POST /v1/conversations/{room}/messages HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {attack.given.api_key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    request = (head + body).encode()
    lanes = []
    for _ in range(64):
        lane = socket.create_connection(("127.0.0.1", attack.given.api), timeout=60)
        lane.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lanes.append(lane)
    for _ in range(count // len(lanes)):
        for lane in lanes:
            lane.sendall(request)
        for lane in lanes:
            lane.recv(65536)
    for lane in lanes:
        lane.close()


def refused(attack, number):
    """Frames of 8 bytes, each refused (H5)."""
    return flood(attack.login(f"refused{number}"), SIGNAL * 6400)


def pings(attack, number):
    """PINGs without end (H5)."""
    return flood(attack.login(f"pings{number}"), PING * 6400)


def acks(attack, number):
    """ACKs without end, which are answered by nothing (H5)."""
    return flood(attack.login(f"acks{number}"), ACK * 6400)


def stranger_pings(attack, _number):
    """HELLO, and PINGs by somebody who never logs in (H5)."""
    peer = Peer(attack.given)
    peer.connect()
    peer.send(peer.hello())
    return flood(peer, PING * 6400)


def keep(make, most):
    """Makes one after the other, holds the newest; as many as that before others look."""
    held = collections.deque(maxlen=most)
    end = time.monotonic() + FILLED_S
    while len(held) < most and time.monotonic() < end:
        try:
            held.append(make())
        except REFUSALS:
            time.sleep(0.01)

    def step():
        held.append(make())
        if len(held) == most:
            time.sleep(0.005)

    return step


def spread(number, count):
    """An address of the attackers': 12 of them, as a small botnet would have."""
    return f"127.0.{20 + number % 4}.{1 + count % 3}"


def silent(attack, number):
    """Sockets that say nothing, of 12 addresses (H6)."""
    counted = iter(range(1 << 40))
    return keep(lambda: attack.raw(spread(number, next(counted))), 3000)


def handshakes(attack, number):
    """Handshakes that are begun and left, from the machine's own address (H6)."""
    hello = attack.client_hello()

    def make():
        plain = attack.raw()
        plain.sendall(hello)
        return plain

    return keep(make, 3000)


def challenged(attack, number):
    """HELLO and no AUTHENTICATE, of one address (H7)."""
    def make():
        peer = Peer(attack.given, "127.0.0.1")
        peer.connect()
        peer.send(peer.hello())
        return peer.socket

    return keep(make, 3000)


def half_frames(attack, number):
    """Half a frame of 250 KB on each of 200 sessions of few users (H8)."""
    half = bytes([3, 0xF0, 0, 0x10, 0, 0, 0, 1]) + bytes(250 << 10)
    counted = iter(range(1 << 40))

    def make():
        peer = attack.login(f"half{number}-{next(counted) % 10}")
        peer.socket.sendall(half)
        return peer

    return keep(make, 150)


# By the kind of what is attacked: decoding, the API's bodies, reads, frames, handshakes, places,
# half frames.
ATTACKS = {
    "quiet": None, "busy": busy, "merge": merge,
    "stranger's merge": stranger_merge, "deep json": deep_json, "digest": digest,
    "fetch": fetch, "refused": refused, "pings": pings, "acks": acks,
    "stranger's pings": stranger_pings, "silent": silent, "handshakes": handshakes,
    "challenged": challenged, "half frames": half_frames,
}


def column(value):
    return f"{value['p50_ms']:>8.1f} {value['worst_ms']:>8.1f} {value['failed']:>5}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rouse", required=True, help="the server's executable")
    parser.add_argument("--seconds", type=float, default=10, help="of each attack")
    parser.add_argument("--attackers", type=int, default=2, help="processes that attack")
    parser.add_argument("--only", default="", help="names of attacks, parts of them are enough")
    parser.add_argument("--json", action="store_true", help="one object an attack and line")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if not given.json:
        print(f"{'':<21}" + "".join(
            f"{what + ': p50':>9} {'worst':>8} {'fail':>5}" for what in ("ping", "livez", "login"))
            + "  server (ms; cores)")
    for name, attacker in ATTACKS.items():
        if given.only and not any(word in name for word in given.only.split(",")):
            continue
        # Each on a server of its own, so that none lives on what another left.
        server = Server(given.rouse, ["limits.connections = 1000"] if name == "challenged" else [])
        try:
            found = Siege(server, given.seconds, given.attackers).measure(name, attacker)
        finally:
            server.stop()
        if given.json:
            print(json.dumps(found), flush=True)
        else:
            print(f"{name:<21} {column(found['ping'])} {column(found['livez'])} "
                  f"{column(found['login'])} {found['server_cores']:>7.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
