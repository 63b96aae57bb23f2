#!/usr/bin/python3
"""Peers that hold what they can: each is closed with its code, and the memory of the server's
process stays within a stated bound.

usage: abuse.py --port P --ca FILE --app APP --key FILE --kid KID [--host H]

The server under test runs with deadlines of 2 s for HELLO and login.
"""
import os

from client import Client, arguments, identity_token, pb

PEERS = 60
# 60 peers of each kind may cost the server's process so much more than before.
GROWTH_BYTES_MAX = 64 << 20


def resident(port):
    """The resident memory of the process that listens on the port: this program's parent."""
    with open(f"/proc/{os.getppid()}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def closes_with(client, code):
    """Reads to the end; the last frame must be CLOSE with this code (None: any end)."""
    last = None
    try:
        while True:
            frame = client.read()
            if frame is None:
                break
            last = frame[0]
    except OSError:
        pass
    if code is not None:
        assert isinstance(last, pb.Close) and last.code == code, f"{code} was expected: {last}"


def connected(given):
    client = Client(given.port, given.ca, given.app, given.host)
    client.connect()
    return client


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()
    before = resident(given.port)

    silent = [connected(given) for _ in range(PEERS)]
    for client in silent:
        closes_with(client, 5007)
    print("silent after TLS: 5007")

    half = [connected(given) for _ in range(PEERS)]
    for client in half:
        # A header that promises 16 KiB, and half of it.
        client.socket.sendall(bytes([0, 0x40, 0, 0x01, 0, 0, 0, 0]) + bytes(8 << 10))
    for client in half:
        closes_with(client, 5007)
    print("half a HELLO: 5007")

    large = connected(given)
    large.socket.sendall(bytes([0, 0x40, 1, 0x01, 0, 0, 0, 0]))
    closes_with(large, 4001)
    print("a HELLO of 16 KiB and a byte: 4001")

    for first, code in [
            (b"GET / HTTP/1.1\r\n\r\n", None), (bytes([0, 0, 0, 0x7F, 0, 0, 0, 0]), 4008),
            (bytes([0, 0, 0, 0x10, 0, 0, 0, 0]), 5004), (bytes([0, 0, 0, 1, 0, 9, 0, 0]), 5004)]:
        client = connected(given)
        client.socket.sendall(first)
        closes_with(client, code)
    print("garbage, an unknown frame, SYNC before HELLO, a reserved byte: closed")

    unanswered = [connected(given) for _ in range(PEERS)]
    for client in unanswered:
        client.send(client.hello())
    for client in unanswered:
        closes_with(client, 2000)
    print("no answer to CHALLENGE: 2000")

    def signer(user):
        return lambda nonce: identity_token(key, given.kid, given.app, user, nonce)

    growth = resident(given.port) - before
    assert growth < GROWTH_BYTES_MAX, f"the server grew by {growth} bytes"
    alive = Client(given.port, given.ca, given.app, given.host)
    alive.login(signer("alive"))
    alive.close()
    print(f"grew by {growth >> 10} KiB; others are still served; nobody was kept: ok")


if __name__ == "__main__":
    main(arguments(__doc__))
