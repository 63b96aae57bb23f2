#!/usr/bin/python3
"""Strangers and clients that try to keep the server from serving others.

usage: attacks.py KIND --port P --ca FILE --app APP --key FILE --kid KID [--host H] [--api PORT]

KIND is one of the functions below whose names begin with `attack_`. Each prints what it saw; its
last line ends with `ok` when the others were served.
"""
import collections
import http.client
import itertools
import select
import socket
import ssl
import sys
import threading
import time

from client import Client, arguments, identity_token, pb

# An ACK, a FETCH of nothing, and a PING: frames of 8 bytes.
ACK = bytes([0, 0, 0, 0x13, 0, 0, 0, 0])
SIGNAL = bytes([0, 0, 0, 0x30, 0, 0, 0, 3])
PING = bytes([0, 0, 0, 0x40, 0, 0, 0, 7])


class Peer(Client):
    """A client at an address of its own."""

    def __init__(self, given, source="127.0.0.1", **more):
        super().__init__(given.port, given.ca, given.app, given.host, **more)
        self.source = source

    def dial(self):
        self.plain = socket.socket()
        self.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.plain.bind((self.source, 0))
        self.plain.settimeout(30)
        self.plain.connect(self.address)

    def connect(self):
        self.dial()
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols(["rouse/1"])
        self.socket = context.wrap_socket(self.plain, server_hostname="localhost")
        self.plain_number = self.socket.fileno()
        self.received = b""

    def last_code(self):
        """The code of the CLOSE that ends the connection; None: it ended without one."""
        code = None
        try:
            while True:
                frame = self.read()
                if frame is None:
                    return code
                if isinstance(frame[0], pb.Close):
                    code = frame[0].code
        except OSError:
            return code


class Attack:
    """What all kinds of attack need."""

    def __init__(self, given):
        self.given = given
        with open(given.key, encoding="utf-8") as file:
            self.issuer = file.read()

    def login(self, user, source="127.0.0.1"):
        peer = Peer(self.given, source)
        peer.login(self.signer(user))
        return peer

    def signer(self, user):
        given = self.given
        return lambda nonce: identity_token(self.issuer, given.kid, given.app, user, nonce)

    def client_hello(self):
        """The first bytes of a TLS handshake."""
        context = ssl.create_default_context(cafile=self.given.ca)
        context.set_alpn_protocols(["rouse/1"])
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        half = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            half.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def raw(self, source="127.0.0.1"):
        peer = Peer(self.given, source)
        peer.dial()
        return peer.plain


class Flood(threading.Thread):
    """Sends the same bytes again and again, throws away what comes, and comes back when closed."""

    def __init__(self, enter, content):
        super().__init__(daemon=True)
        self.enter, self.content, self.sent, self.is_over, self.entered = enter, content, 0, False, 0
        self.start()

    def run(self):
        while not self.is_over:
            try:
                peer = self.enter()
            except (OSError, RuntimeError):
                time.sleep(0.01)
                continue
            self.entered += 1
            try:
                self.flood(peer.socket)
            except (OSError, ssl.SSLError):
                pass
            peer.socket.close()

    def flood(self, secure):
        secure.setblocking(False)
        rest = memoryview(self.content)
        while not self.is_over:
            select.select([secure], [secure], [], 0.1)
            try:
                count = secure.send(rest)
                self.sent += count
                rest = rest[count:] or memoryview(self.content)
            except ssl.SSLWantWriteError:
                pass
            try:
                while secure.recv(65536):
                    pass
                return
            except ssl.SSLWantReadError:
                pass


class Watch(threading.Thread):
    """How long the PINGs of another app's client, and /livez, take meanwhile."""

    def __init__(self, attack, seconds):
        super().__init__(daemon=True)
        self.client = attack.login("watch", "127.0.9.9")
        self.given, self.seconds = attack.given, seconds
        self.pings, self.health = [], []
        self.start()

    def run(self):
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            start = time.monotonic()
            self.client.send(pb.Ping(next_ms=60000), 9)
            self.client.expect(pb.Pong)
            self.pings.append(time.monotonic() - start)
            if self.given.api:
                start = time.monotonic()
                api = http.client.HTTPConnection("127.0.0.1", self.given.api, timeout=30)
                api.request("GET", "/livez")
                api.getresponse().read()
                api.close()
                self.health.append(time.monotonic() - start)
            time.sleep(0.15)

    def tell(self, name):
        self.join()
        for what, times in [("ping", self.pings), ("livez", self.health)]:
            if times:
                times.sort()
                print(f"{name}: {what} p50 {times[len(times) // 2] * 1000:.1f} ms, "
                      f"worst {times[-1] * 1000:.1f} ms, {len(times)} asked", flush=True)


def attack_measure(attack):
    """Measures each flood of frames, for 8 s, by as many threads as one process can."""
    Watch(attack, 4).tell("quiet")

    def stranger():
        peer = Peer(attack.given)
        peer.connect()
        peer.send(peer.hello())
        return peer

    numbers = itertools.count()
    for name, enter, frames in [
            ("refused", lambda: attack.login(f"flood{next(numbers)}"), SIGNAL),
            ("pings", lambda: attack.login(f"flood{next(numbers)}"), PING),
            ("acks", lambda: attack.login(f"flood{next(numbers)}"), ACK),
            ("stranger's pings", stranger, PING)]:
        watch = Watch(attack, 8)
        floods = [Flood(enter, frames * 6400) for _ in range(2)]
        watch.tell(name)
        for flood in floods:
            flood.is_over = True
        print(f"{name}: {sum(f.sent for f in floods) >> 10} KiB sent on "
              f"{sum(f.entered for f in floods)} connections", flush=True)
    print("measured: ok")


def attack_logins(attack):
    """Measures logins and PINGs for 8 s each beside sockets that are silent, beside handshakes that
    are begun and left, and beside logins that are, all by one process and without a pause."""
    hello = attack.client_hello()

    def silent():
        return attack.raw()

    def begun():
        plain = attack.raw()
        plain.sendall(hello)
        return plain

    def greeted():
        peer = Peer(attack.given)
        peer.connect()
        peer.send(peer.hello())
        return peer.socket

    for name, attacker in [("silent", silent), ("handshakes", begun), ("no login", greeted)]:
        held, end = collections.deque(maxlen=3000), time.monotonic() + 8
        count = 0

        def run():
            nonlocal count
            while time.monotonic() < end:
                try:
                    held.append(attacker())
                    count += 1
                except OSError:
                    pass

        watch = Watch(attack, 8)
        threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        times = []
        while time.monotonic() < end:
            start = time.monotonic()
            try:
                attack.login("late", "127.0.8.8").close()
            except (OSError, RuntimeError) as error:
                print(f"{name}: no login: {error}", flush=True)
            times.append(time.monotonic() - start)
        watch.tell(name)
        times.sort()
        print(f"{name}: {count} in 8 s; login p50 {times[len(times) // 2] * 1000:.0f} ms, "
              f"worst {times[-1] * 1000:.0f} ms, {len(times)} tried", flush=True)
        held.clear()
    print("measured: ok")


def attack_turns(attack):
    """A long row of frames in one piece does not put off the PINGs of somebody else."""
    flooder, other = attack.login("flooder"), attack.login("other")
    # Frames that are answered by nothing, and a PING behind them.
    sender = threading.Thread(
        target=lambda: flooder.socket.sendall(ACK * 150_000 + PING), daemon=True)
    sender.start()
    for _ in range(10):
        other.send(pb.Ping(next_ms=60000), 5)
        first, _, _ = select.select([flooder.plain_number, other.plain_number], [], [], 60)
        assert first == [other.plain_number], "the frames of one came before PINGs of another"
        other.expect(pb.Pong)
    sender.join()
    flooder.socket.settimeout(120)
    flooder.expect(pb.Pong)
    print("the other was answered first, and the first one whole: ok")


def attack_refused(attack):
    """Who does nothing but what is refused is told to wait."""
    peer = attack.login("refused")
    for _ in range(20):
        peer.send(pb.Signal(), 3)
        body, _ = peer.read()
        assert isinstance(body, pb.Error), body
    peer.socket.sendall(SIGNAL * 1000)
    code = peer.last_code()
    assert code == 1002, code
    print("closed with 1002: ok")


def attack_pings(attack):
    """PINGs without end are closed, a stranger's sooner."""
    stranger = Peer(attack.given)
    stranger.connect()
    stranger.send(stranger.hello())
    stranger.socket.sendall(PING * 8)
    stranger.expect(pb.Challenge)
    for _ in range(8):
        stranger.expect(pb.Pong)
    stranger.socket.sendall(PING * 9)
    code = stranger.last_code()
    assert code == 1002, code
    peer = attack.login("pings")
    peer.socket.sendall(PING * 100)
    for _ in range(100):
        peer.expect(pb.Pong)
    peer.socket.sendall(PING * 1000)
    code = peer.last_code()
    assert code == 1002, code
    print("both closed with 1002: ok")


def attack_silent(attack):
    """Silent sockets of many addresses hold no place that a handshake needs."""
    silent = [attack.raw(f"127.0.{1 + n // 50}.{1 + n % 50}") for n in range(400)]
    peer = attack.login("late", "127.0.8.8")
    peer.close()
    print(f"{len(silent)} silent sockets; logged in: ok")


def attack_handshakes(attack):
    """Handshakes that are begun and left give way to newer ones."""
    left = []
    for number in range(400):
        plain = attack.raw()
        plain.sendall(attack.client_hello())
        left.append(plain)
    start = time.monotonic()
    peer = attack.login("late")
    print(f"logged in beside {len(left)} handshakes after {time.monotonic() - start:.1f} s: ok")
    peer.close()


def attack_places(attack):
    """One address takes all places without logging in: it loses them, not the newcomer.

    The server under test has 40 places.
    """
    friends = [attack.login(f"friend{n}", "127.0.7.7") for n in range(4)]
    held = []
    for _ in range(200):
        peer = Peer(attack.given, "127.0.6.6")
        peer.connect()
        peer.send(peer.hello())
        peer.expect(pb.Challenge)
        held.append(peer)
    newcomer = attack.login("newcomer", "127.0.5.5")
    code = held[0].last_code()
    assert code == 5008, code
    for friend in friends:
        friend.send(pb.Ping(next_ms=60000), 5)
        friend.expect(pb.Pong)
    # Who is logged in keeps the place.
    newcomer.send(pb.Ping(next_ms=60000), 5)
    newcomer.expect(pb.Pong)
    print("the newcomer is in, the oldest of the address was told 5008: ok")


def attack_receiving(attack):
    """Half frames of one user do not end the connections of others.

    The server under test holds 1 MiB of half frames.
    """
    half = bytes([3, 0xF0, 0, 0x10, 0, 0, 0, 1]) + bytes(100 << 10)
    held = []
    for number in range(24):
        peer = attack.login(f"half{number % 3}", "127.0.6.6")
        peer.socket.sendall(half)
        held.append(peer)
    honest = attack.login("honest", "127.0.5.5")
    body = pb.Ping(next_ms=60000).SerializeToString()
    frame = len(body).to_bytes(3, "big") + bytes([0x40, 0, 0, 0, 9]) + body
    honest.socket.sendall(frame[:9])
    attack.login("between", "127.0.5.6").close()
    honest.socket.sendall(frame[9:])
    honest.expect(pb.Pong)
    code = held[0].last_code()
    assert code == 5008, code
    print("a frame in two pieces was taken; the oldest holder was told 5008: ok")


if __name__ == "__main__":
    kind = sys.argv.pop(1)
    globals()[f"attack_{kind}"](Attack(arguments(__doc__)))
