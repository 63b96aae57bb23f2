#!/usr/bin/python3
"""Looks at a server whose name servers say nothing: the webhooks of one app at a name that nobody
resolves, those of another at an address, and how long a stop takes.

usage: silent_names.py --rouse PROGRAM --folder EMPTY-FOLDER

To be run as `unshare -rmn`, for it takes the name servers away and listens where they were. Prints
`silent names: ok`.
"""
import argparse
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

# The server gives a delivery up after TIMEOUT_S; the system's resolver asks each of NAME_SERVERS
# twice, for 5 s each time.
NAME_SERVERS = 3
TIMEOUT_S = 2
WATCHED_S = 8
SOON_S = 1.5
STOP_S = 5
PATIENCE_S = 60
API = 8080
RECEIVER = 8081


def silence_name_servers(folder):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    names = folder / "resolv.conf"
    addresses = [f"127.0.0.{53 + number}" for number in range(NAME_SERVERS)]
    names.write_text("".join(f"nameserver {address}\n" for address in addresses))
    # What it is a link to may not be there.
    subprocess.run(["mount", "--bind", names, os.path.realpath("/etc/resolv.conf")], check=True)
    sinks = []
    for address in addresses:
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sink.bind((address, 53))
        sinks.append(sink)
    return sinks


def receive(arrivals):
    class Receiver(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            for mark in {word for word in body.replace('"', " ").split() if "mark-" in word}:
                arrivals.setdefault(mark, time.monotonic())
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", RECEIVER), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class Server:
    def __init__(self, program, folder):
        self.program, self.settings = program, folder / "rouse.conf"
        certificates = folder / "certificates"
        subprocess.run([program, "dev", "certificates", certificates], check=True,
                       stdout=subprocess.DEVNULL)
        self.settings.write_text(f"""listen.port = 0
tls.certificate_file = {certificates}/server.pem
tls.key_file = {certificates}/server.key
api.port = {API}
store.path = {folder}/rouse.db
webhooks.allow_networks = 127.0.0.0/8
webhooks.timeout = {TIMEOUT_S}s
webhooks.retry = 1s
""")
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            [program, "serve", "--config", self.settings], stdout=self.log, stderr=self.log)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{API}/readyz").close()
                return
            except (urllib.error.URLError, ConnectionError):
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.1)
        raise AssertionError("the server was not ready in time")

    def command(self, *words):
        return subprocess.run([self.program, *words, "--config", self.settings], check=True,
                              capture_output=True, text=True).stdout.strip()

    def call(self, key, path, body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{API}{path}", json.dumps(body).encode(),
            {"authorization": f"Bearer {key}", "content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def main(given):
    folder = pathlib.Path(given.folder)
    sinks = silence_name_servers(folder)
    arrivals = {}
    receive(arrivals)
    server = Server(given.rouse, folder)
    try:
        look(server, arrivals)
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
    for sink in sinks:
        sink.close()
    print("silent names: ok")


def look(server, arrivals):
    keys, conversations = {}, {}
    for app, url in [("lost", "http://lost.example/"), ("well", f"http://127.0.0.1:{RECEIVER}/")]:
        server.command("app", "create", app)
        keys[app] = server.command("app", "api-key", "create", app)
        server.command("app", "webhook", "add", app, "--url", url)
        conversations[app] = server.call(
            keys[app], "/v1/conversations", {"participants": ["anna", "bob"]})["id"]

    def publish(app, text):
        server.call(keys[app], f"/v1/conversations/{conversations[app]}/messages",
                    {"sender": "anna", "parts": [{"mime_type": "text/plain", "text": text}]})

    sent = {}
    begun = time.monotonic()
    while time.monotonic() < begun + WATCHED_S:
        publish("lost", "hello")
        mark = f"mark-{len(sent)}"
        sent[mark] = time.monotonic()
        publish("well", mark)
        time.sleep(0.25)
    end = time.monotonic() + SOON_S
    while len(arrivals) < len(sent) and time.monotonic() < end:
        time.sleep(0.05)
    late = {mark: arrivals.get(mark, float("inf")) - at for mark, at in sent.items()}
    worst = max(late.values())
    print(f"{len(sent)} events, the last of them there after {worst:.1f} s")
    assert worst < SOON_S, late

    server.process.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    status = server.process.wait(PATIENCE_S)
    took = time.monotonic() - begun
    print(f"stopped in {took:.1f} s with status {status}")
    assert status == 0 and took < STOP_S


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rouse", required=True)
    parser.add_argument("--folder", required=True)
    main(parser.parse_args())
