#!/usr/bin/python3
"""200 peers of each kind that hold what they can, at once: the server closes each, its memory stays
below a stated figure, and others are served meanwhile. What it closed them with it counts itself.

usage: flood.py --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY
                --server PID [--host H]

Prints `KIND CODES COUNT` for each kind: how many connections it must count with these reasons.
"""
import os
import socket
import ssl
import threading
import time

from client import Backend, Client, arguments, identity_token, pb

PEERS = 200
# What 800 such peers may cost the server's process more than before: a stopped reader the window of
# unacknowledged DELTAs (256 KiB) and what frames and records add, the others a few KiB.
# Besides what the connections may hold, the rows that the writer keeps in memory (P7).
GROWTH_BYTES_MAX = (96 + 32) << 20
if os.environ.keys() & {"ASAN_OPTIONS", "TSAN_OPTIONS"}:
    # Deploy/test --sanitize: a sanitizer remembers several bytes for each one.
    GROWTH_BYTES_MAX *= 8
# More than a window for each stopped reader.
MESSAGES = 24
MESSAGE_BYTES = 15_000
PATIENCE_S = 150


def resident(process):
    with open(f"/proc/{process}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch(threading.Thread):
    """The largest memory seen."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.most, self.is_over = process, 0, False
        self.start()

    def run(self):
        while not self.is_over:
            self.most = max(self.most, resident(self.process))
            time.sleep(0.05)


class Peer(Client):
    """A client at an address of its own."""

    context = None

    def __init__(self, given, number, **more):
        super().__init__(given.port, given.ca, given.app, given.host, **more)
        self.source = f"127.0.{1 + number // 100}.{1 + number % 100}"

    def dial(self, segment=0, buffer=0):
        self.plain = socket.socket()
        if segment:
            # As over a real network: the server's kernel then takes tens of KiB, not megabytes.
            self.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
            self.plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.plain.bind((self.source, 0))
        self.plain.settimeout(60)
        self.plain.connect(self.address)

    def connect(self, **options):
        self.dial(**options)
        if Peer.context is None:
            Peer.context = ssl.create_default_context(cafile=self.ca)
            Peer.context.set_alpn_protocols(["rouse/1"])
        self.socket = Peer.context.wrap_socket(self.plain, server_hostname="localhost")
        self.received = b""

    def last_code(self):
        """The code of the CLOSE that ends the connection; None: it ended without."""
        code = None
        self.socket.settimeout(PATIENCE_S)
        try:
            while True:
                frame = self.read()
                if frame is None:
                    return code
                if isinstance(frame[0], pb.Close):
                    code = frame[0].code
        except OSError:
            return code


class StoppedReader(Peer):
    """A phone in the foreground whose app hangs."""

    def connect(self):
        super().connect(segment=1000, buffer=4096)


def expect_all(name, peers, code):
    for peer in peers:
        found = peer.last_code()
        assert found == code, f"{name}: {code} was expected: {found}"
    print(name, code, len(peers), flush=True)


def ended(peer):
    """Whether the server has closed the socket, whatever it still sent before."""
    peer.plain.settimeout(PATIENCE_S)
    try:
        while peer.plain.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()

    def signer(user):
        return lambda nonce: identity_token(key, given.kid, given.app, user, nonce)

    backend = Backend(given)
    witness = Peer(given, 399)
    witness.login(signer("witness"))
    before = resident(given.server)
    watch = Watch(given.server)

    readers = [StoppedReader(given, n, features=["live"]) for n in range(PEERS)]
    for number, reader in enumerate(readers):
        reader.login(signer(f"reader{number}"))
    halves = [Peer(given, n) for n in range(PEERS)]
    for number, half in enumerate(halves):
        half.login(signer(f"half{number}"))
    conversation = backend.create(*[f"reader{n}" for n in range(PEERS)])
    for number in range(MESSAGES):
        status, answer = backend.publish(
            conversation, "reader0", f"{number}".ljust(MESSAGE_BYTES))
        assert status == 201, answer
    # Now nobody of them reads; those who are half way promise a frame within a second.
    for half in halves:
        half.send(pb.Ping(next_ms=1000), 9)
        half.socket.sendall(bytes([0, 0x40, 0, 0x10, 0, 0, 0, 1]) + bytes(8 << 10))

    silent = [Peer(given, n) for n in range(PEERS)]
    for peer in silent:
        peer.connect()
    starts = [Peer(given, n) for n in range(PEERS)]
    for peer in starts:
        peer.connect()
        # A HELLO that is promised to have 16 KiB, and half of it.
        peer.socket.sendall(bytes([0, 0x40, 0, 0x01, 0, 0, 0, 0]) + bytes(8 << 10))
    expect_all("silent", silent, 5007)
    expect_all("half-HELLO", starts, 5007)
    # Without a ClientHello.
    plain = [Peer(given, n) for n in range(PEERS)]
    for peer in plain:
        peer.dial()

    expect_all("half-SYNC", halves, 5003)
    log_end = time.monotonic() + PATIENCE_S
    while sessions(backend) > 1:
        assert time.monotonic() < log_end, f"{sessions(backend)} sessions are still open"
        time.sleep(0.5)
    # A slow machine publishes for so long that the first messages are overdue before the window
    # is full.
    print("stopped", "1003,5009", PEERS, flush=True)
    assert all(ended(peer) for peer in plain), "a connection without TLS was kept"
    print("no-TLS", "tls-deadline", PEERS, flush=True)

    growth = watch.most - before
    watch.is_over = True
    assert growth < GROWTH_BYTES_MAX, f"the server grew by {growth >> 10} KiB"
    late = Peer(given, 398)
    late.login(signer("late"))
    late.close()
    print(f"grew by {growth >> 10} KiB at most; others are still served: ok")


def sessions(backend):
    """Sessions open at the server, by its metrics."""
    backend.connection.close()  # the server ends what was idle for long
    _, text = backend.call("GET", "/metrics")
    for line in text.decode().splitlines():
        if line.startswith("rouse_sessions_open "):
            return int(float(line.split()[1]))
    raise AssertionError("no rouse_sessions_open")


if __name__ == "__main__":
    main(arguments(__doc__))
