#!/usr/bin/python3
"""A server is replaced behind a socket that its supervisor holds: nobody is refused meanwhile.

usage: handover.py --port P --ca FILE ... -- SERVER [ARGUMENT ...]

Plays the supervisor: passes a listening socket (LISTEN_FDS), hears READY, WATCHDOG and STOPPING
(NOTIFY_SOCKET), ends the server and starts it again, while clients connect all the time.
"""
import argparse
import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

split = sys.argv.index("--")
parser = argparse.ArgumentParser()
parser.add_argument("--ca", required=True)
given, _ = parser.parse_known_args(sys.argv[1:split])
COMMAND = sys.argv[split + 1:]
folder = tempfile.mkdtemp()
held = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(2)]
PORT, API = (one.getsockname()[1] for one in held)
# Copies out of the way first: one of the two may be descriptor 3 or 4 itself.
copies = [os.dup2(one.fileno(), 100 + index) for index, one in enumerate(held)]
for index, copy in enumerate(copies):
    os.dup2(copy, 3 + index, inheritable=True)
mailbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
mailbox.bind(folder + "/notify")
notices = queue.Queue()
servers = []


def listen():
    """Takes notices as they come: a full mailbox would lose some."""
    while True:
        notices.put(mailbox.recv(4096))


threading.Thread(target=listen, daemon=True).start()


def start():
    """The server, with the socket as descriptor 3; returns it when it has said READY."""
    environment = dict(os.environ, LISTEN_FDS="2", LISTEN_FDNAMES="devices:api",
                       NOTIFY_SOCKET=folder + "/notify", WATCHDOG_USEC="400000")
    server = subprocess.Popen(
        ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *COMMAND], env=environment,
        stdout=subprocess.DEVNULL, close_fds=False)
    servers.append(server)
    hear(b"READY=1")
    return server


def hear(wanted):
    """Waits for a notice; others on the way are signs of life."""
    while True:
        notice = notices.get(timeout=60)
        if notice == wanted:
            return
        assert notice == b"WATCHDOG=1", notice


context = ssl.create_default_context(cafile=given.ca)
context.set_alpn_protocols(["rouse/1"])


def connect():
    """Connects and ends the handshake; returns the seconds it took."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", PORT), timeout=60) as raw:
        with context.wrap_socket(raw, server_hostname="localhost") as secure:
            assert secure.selected_alpn_protocol() == "rouse/1"
    return time.monotonic() - started


class Crowd(threading.Thread):
    """Connects one time after the other, until it is told to end."""

    def __init__(self):
        super().__init__(daemon=True)
        self.took, self.failures, self.ends = [], [], False

    def run(self):
        while not self.ends:
            try:
                self.took.append(connect())
            except OSError as error:
                self.failures.append(repr(error))


def ready():
    """What the held port of the backend API says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{API}/readyz", timeout=60) as answer:
        return answer.status


def story():
    first = start()
    hear(b"WATCHDOG=1")
    hear(b"WATCHDOG=1")
    connect()
    crowd = [Crowd() for _ in range(4)]
    for one in crowd:
        one.start()
    assert ready() == 200
    first.send_signal(signal.SIGTERM)
    hear(b"STOPPING=1")
    assert first.wait(60) == 0
    # Nobody listens now; who connects waits in the socket.
    waiting = Crowd()
    waiting.start()
    second = start()
    connect()
    assert ready() == 200
    for one in crowd + [waiting]:
        one.ends = True
        one.join(60)
    failures = [failure for one in crowd for failure in one.failures] + waiting.failures
    assert not failures, failures
    took = [seconds for one in crowd for seconds in one.took] + waiting.took
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 0
    print(f"{len(took)} connections, the longest took {max(took):.2f} s")
    print("handover: ok")


try:
    story()
finally:
    for server in servers:
        if server.poll() is None:
            server.kill()
