#!/usr/bin/python3
"""A backend whose receiver is not to be relied on: it answers 500 now and then, hangs, dies and
comes back, and so does the server. In the end it must have every event, in order once repeats
are dropped, each signed. Prints `webhooks: ok`.

usage: webhooks.py --rouse PROGRAM --folder EMPTY-FOLDER
"""
import argparse
import hashlib
import hmac
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../Deploy/sdk/python"))
from rouse_backend import BadDelivery, verify_webhook  # noqa: E402, it stands beside this

# Nothing here waits this long unless something is broken.
PATIENCE = 120


class Receiver:
    """Keeps what it took, and answers as `mood` says."""

    def __init__(self):
        self.port = 0
        self.server = None
        self.lock = threading.Condition()
        self.mood = lambda number: 200
        self.secrets = []
        self.requests = 0
        self.deliveries = []
        self.events = []
        self.ids = set()
        self.repeats = 0
        self.problems = []
        self.hung = 0

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                receiver.take(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def take(self, request):
        body = request.rfile.read(int(request.headers["content-length"]))
        with self.lock:
            self.requests += 1
            status = self.mood(self.requests)
            self.check(request.headers, body)
            if status in (None, 200):
                self.keep(json.loads(body), request.headers)
            if status is None:
                self.hung += 1
            self.lock.notify_all()
        if status is None:
            # Taken, and nobody is told: the sender must come again.
            time.sleep(PATIENCE)
            return
        request.send_response(status)
        request.send_header("content-length", "0")
        request.end_headers()

    def check(self, headers, body):
        parts = [part.split("=", 1) for part in headers["rouse-signature"].split(",")]
        moment = dict(parts)["t"]
        given = [value for name, value in parts if name == "v1"]
        wanted = [
            hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
            for secret in self.secrets]
        if given != wanted:
            self.problems.append(f"signed {given}, not {wanted}")
        if abs(time.time() - int(moment)) > 300:
            self.problems.append(f"signed at {moment}")
        # As a backend does that has the Python client.
        try:
            if verify_webhook(body, headers, self.secrets) != json.loads(body):
                self.problems.append("the Python client read another delivery")
        except BadDelivery as problem:
            self.problems.append(f"the Python client: {problem}")

    def keep(self, document, headers):
        if headers["rouse-delivery"] != document["delivery"]:
            self.problems.append("the header names another delivery")
        self.deliveries.append(document)
        if document["dropped"]:
            self.problems.append(f"{document['dropped']} dropped")
        for event in document["events"]:
            if event["id"] in self.ids:
                self.repeats += 1
                continue
            self.ids.add(event["id"])
            if self.events and event["number"] <= self.events[-1]["number"]:
                self.problems.append(f"event {event['number']} out of order")
            self.events.append(event)

    def wait(self, what, until):
        with self.lock:
            assert self.lock.wait_for(until, PATIENCE), f"waited in vain for {what}"

    def messages(self):
        return [event["message_id"] for event in self.events
                if event["kind"] == "message.created"]


class Server:
    """`rouse serve`, to be killed and started again on the same store."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.process = None
        self.settings = {
            "store.path": f"{folder}/rouse.db", "admin.socket": f"{folder}/admin",
            "tls.certificate_file": f"{folder}/tls/server.pem",
            "tls.key_file": f"{folder}/tls/server.key", "listen.port": "0", "api.port": "0",
            "log.level": "debug", "webhooks.allow_networks": "127.0.0.1/32",
            "webhooks.retry": "1", "webhooks.retry_max": "1", "webhooks.timeout": "2",
        }
        self.rouse("dev", "certificates", f"{folder}/tls")
        names = os.listdir(f"{folder}/tls")
        for setting, end in (("tls.certificate_file", "server.pem"),
                             ("tls.key_file", "server.key")):
            assert end in names, names
            self.settings[setting] = f"{folder}/tls/{end}"

    def start(self, **settings):
        words = [self.program, "serve", "--json", "--with-parent"]
        given = {**self.settings, **{key.replace("__", "."): value
                                     for key, value in settings.items()}}
        for key, value in given.items():
            words += ["--set", f"{key}={value}"]
        with open(f"{self.folder}/server.log", "ab") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline()
        assert line, "the server did not start"
        addresses = json.loads(line)
        self.api = addresses.get("api_port", addresses.get("apiPort"))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)

    def rouse(self, *words):
        done = subprocess.run(
            [self.program, *words], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"rouse {words}: {done.stderr}"
        return done.stdout.strip()

    def admin(self, *words):
        return self.rouse(*words, "--socket", f"{self.folder}/admin")

    def ask(self, method, path, body, key):
        connection = http.client.HTTPConnection("127.0.0.1", self.api, timeout=PATIENCE)
        connection.request(
            method, path, json.dumps(body) if body is not None else None,
            {"authorization": f"Bearer {key}", "content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status < 300, (method, path, answer.status, text)
        return json.loads(text) if text and path != "/metrics" else text


class Story:
    def __init__(self, given):
        self.receiver = Receiver()
        self.receiver.start()
        self.server = Server(given.rouse, given.folder)
        self.server.start()
        self.server.admin("app", "create", "chat")
        self.key = self.server.admin("app", "api-key", "create", "chat")
        secret = self.server.admin(
            "app", "webhook", "add", "chat", "--url", f"http://127.0.0.1:{self.receiver.port}/h")
        self.receiver.secrets = [secret]
        self.seen_secrets = [secret]
        self.hook = json.loads(
            self.server.admin("app", "webhook", "list", "chat", "--json")
        )["webhooks"][0]["id"]
        self.conversation = self.server.ask(
            "POST", "/v1/conversations", {"participants": ["anna", "bert"]}, self.key)["id"]
        self.sent = []

    def publish(self, count):
        for _ in range(count):
            body = {"parts": [{"mime_type": "text/plain", "text": f"line {len(self.sent)}"}]}
            answer = self.server.ask(
                "POST", f"/v1/conversations/{self.conversation}/messages", body, self.key)
            self.sent.append(answer["id"])

    def caught_up(self, what):
        self.receiver.wait(what, lambda: self.receiver.messages() == self.sent)

    def show(self):
        return json.loads(
            self.server.admin("app", "webhook", "show", "chat", self.hook, "--json"))

    def state(self, wanted):
        for _ in range(PATIENCE * 10):
            found = self.show()
            if found["state"] == wanted:
                return found
            time.sleep(0.1)
        raise AssertionError(f"{found} is not {wanted}")

    def failures(self):
        self.receiver.mood = lambda number: 500 if number % 3 == 2 else 200
        for _ in range(4):
            self.publish(10)
            self.caught_up("events between failures")
        event = self.receiver.events[1]
        assert event["message"]["parts"][0]["text"] == "line 0", event
        assert self.receiver.events[0]["kind"] == "conversation.created"

    def killed_server(self):
        """Between the delivery and its answer, and between a change and its delivery."""
        repeats = self.receiver.repeats
        self.receiver.mood = lambda number: None
        hung = self.receiver.hung
        self.publish(5)
        self.receiver.wait("a delivery that hangs", lambda: self.receiver.hung > hung)
        self.publish(5)
        self.server.kill()
        self.receiver.mood = lambda number: 200
        self.server.start()
        self.caught_up("events after kill -9")
        assert self.receiver.repeats > repeats, "the delivery that hung was not sent again"

    def dead_receiver(self):
        self.receiver.stop()
        self.publish(5)
        self.receiver.start()
        self.caught_up("events after the receiver came back")

    def rotation(self):
        new = self.server.admin("app", "webhook", "rotate", "chat", self.hook)
        self.seen_secrets.append(new)
        self.receiver.secrets = [new, self.receiver.secrets[0]]
        self.publish(2)
        self.caught_up("events with both secrets")
        self.server.admin("app", "webhook", "rotate", "chat", self.hook, "--end")
        self.receiver.secrets = [new]
        self.publish(2)
        self.caught_up("events with the new secret")

    def deactivation(self):
        self.server.stop()
        self.server.start(webhooks__deactivate_after="2")
        self.receiver.mood = lambda number: 500
        self.publish(3)
        found = self.state("failed")
        assert "attempts failed" in found["reason"] and found["last_status"] == 500, found
        self.publish(3)
        self.receiver.mood = lambda number: 200
        self.server.admin("app", "webhook", "set", "chat", self.hook, "--active", "yes")
        self.caught_up("events of the time it was off")
        self.receiver.mood = lambda number: 410
        self.publish(1)
        self.state("gone")
        self.receiver.mood = lambda number: 200
        self.server.admin("app", "webhook", "set", "chat", self.hook, "--active", "yes")
        self.caught_up("events after 410")

    def tried_out(self):
        """The test comes to the one webhook, though it asks for deletions alone, and is signed."""
        quiet = Receiver()
        quiet.start()
        body = {"url": f"http://127.0.0.1:{quiet.port}/q", "events": ["message.deleted"]}
        made = self.server.ask("POST", "/v1/webhooks", body, self.key)
        quiet.secrets = [made["secret"]]
        hook = f"/v1/webhooks/{made['id']}"
        self.publish(1)
        self.caught_up("a message that the quiet one does not ask for")
        told = self.server.ask("POST", f"{hook}/test", None, self.key)
        quiet.wait("the test", lambda: len(quiet.events) == 1)
        event = quiet.events[0]
        assert event.keys() == {"id", "number", "kind", "at"}, event
        assert (event["kind"], event["id"], event["number"]) == (
            "webhook.test", told["id"], told["number"]), (event, told)
        # What came of it is told as of any delivery, and by the command line, too.
        for mood, wanted in ((200, None), (404, "the receiver answered 404")):
            quiet.mood = lambda number, mood=mood: mood
            if mood != 200:
                self.server.admin("app", "webhook", "test", "chat", made["id"])
            for _ in range(PATIENCE * 10):
                found = self.server.ask("GET", hook, None, self.key)
                if found.get("last_status") == mood:
                    break
                time.sleep(0.1)
            assert found.get("last_error") == wanted and found["state"] == "active", found
        assert found["attempts"] >= 1 and "last_success_at" in found, found
        quiet.mood = lambda number: 200
        quiet.wait("the second test, which was refused at first", lambda: len(quiet.events) == 2)
        assert not quiet.problems, quiet.problems
        assert all(event["kind"] != "webhook.test" for event in self.receiver.events)
        self.server.ask("DELETE", hook, None, self.key)
        quiet.stop()

    def forbidden_address(self):
        with socket.create_server(("127.0.0.2", 0)) as listening:
            listening.settimeout(0.1)
            port = listening.getsockname()[1]
            self.server.admin(
                "app", "webhook", "set", "chat", self.hook, "--url", f"http://127.0.0.2:{port}/")
            self.publish(1)
            for _ in range(PATIENCE * 10):
                found = self.show()
                if found.get("last_error") == "the address is not permitted":
                    break
                time.sleep(0.1)
            else:
                raise AssertionError(f"{found}")
            try:
                listening.accept()
                raise AssertionError("the server connected to 127.0.0.2")
            except TimeoutError:
                pass
        self.server.admin(
            "app", "webhook", "set", "chat", self.hook, "--url",
            f"http://127.0.0.1:{self.receiver.port}/", "--active", "yes")
        self.caught_up("events after the address was put right")

    def secrets(self):
        metrics = self.server.ask("GET", "/metrics", None, self.key)
        assert b'rouse_webhook_deliveries_total{answer="2xx"}' in metrics, metrics
        with open(f"{self.server.folder}/server.log", "rb") as log:
            log = log.read()
        assert b"event=webhook.delivered" in log and b"event=webhook.deactivated" in log
        for secret in self.seen_secrets:
            assert secret.encode() not in log and secret.encode() not in metrics

    def tell(self):
        for act in (self.failures, self.killed_server, self.dead_receiver, self.rotation,
                    self.deactivation, self.tried_out, self.forbidden_address, self.secrets):
            act()
            assert not self.receiver.problems, (act.__name__, self.receiver.problems[:5])
        self.server.stop()
        print("webhooks: ok")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rouse", required=True)
    parser.add_argument("--folder", required=True)
    story = Story(parser.parse_args())
    try:
        story.tell()
    finally:
        if story.server.process.poll() is None:
            story.server.kill()
