#!/usr/bin/python3
"""What an operator deploys and watches, with a real Prometheus: a server with traffic of every
kind, scraped by the configuration of Deploy/prometheus; then each query of the dashboard and of the
rules is asked. Each must parse, name only metrics that the server has, and have data unless it is
about what a healthy server has none of. Prints `watched: ok`.

usage: watched.py --rouse PROGRAM --deploy FOLDER --folder EMPTY-FOLDER
"""
import argparse
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

# Nothing here waits this long unless something is broken.
PATIENCE = 150

# Counters with labels have no series before the first event, and a healthy server has none of
# these. Everything else must have data.
NONE_WHEN_HEALTHY = {
    "rouse_tls_failures_total": "every handshake succeeds",
    "rouse_rate_limited_total": "nobody asks too much",
    "rouse_connections_gave_way_total": "places are free",
}


# What the traffic surely makes, beside what the dashboard asks.
MADE = ["rouse_publish_applied_seconds_count{app=\"shop\"} > 0"] + [
    f"rouse_publish_told_seconds_count{{app=\"shop\",by=\"{by}\"}} > 0"
    for by in ("frame", "wake", "alert")]


class Receiver(http.server.BaseHTTPRequestHandler):
    # Of each delivery its headers and its body.
    taken = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Receiver.taken.append((self.headers, json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Failure(Exception):
    pass


class Scene:
    """The server, the simulator with two phones, and Prometheus."""

    def __init__(self, rouse, folder, deploy="", settings=(), tracer=()):
        self.rouse_path, self.deploy, self.folder = rouse, deploy, folder
        self.settings, self.tracer = settings, tracer
        self.processes = []
        os.chdir(folder)

    def rouse(self, *words):
        done = subprocess.run(
            [self.rouse_path, *words], capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise Failure(f"rouse {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def start(self, name, words, says=None):
        """Runs it until `stop`; with `says`, the first line it prints is JSON with that key."""
        with open(f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE if says else log, stderr=log)
        self.processes.append(process)
        if not says:
            return None
        line = process.stdout.readline().decode()
        if says not in line:
            raise Failure(f"{name} did not start: {open(f'{name}.log', encoding='utf-8').read()}")
        return json.loads(line)

    def tell(self, **command):
        return json.loads(
            self.rouse("apns-simulator", "tell", "--control", "apns.sock", json.dumps(command)))

    def post(self, path, body, **headers):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.api}{path}", json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"} | headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def begin(self):
        self.rouse("dev", "certificates", "tls")
        for name in ("issuer", "push"):
            self.rouse("dev", "key", f"keys/{name}")
        self.configure(self.settings)
        server = self.start(
            "server",
            [*self.tracer, self.rouse_path, "serve", "--config", "rouse.conf", "--json", "--with-parent"],
            "api_port")
        self.api = server["api_port"]
        config = ["--config", "rouse.conf"]
        self.rouse("app", "create", "shop", "--grace", "2", *config)
        self.rouse("app", "issuer-key", "add", "shop", "--kid", "dev", "--key",
                   "keys/issuer.pub.pem", *config)
        self.key = self.rouse("app", "api-key", "create", "shop", *config)
        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self.rouse("app", "webhook", "add", "shop", "--url",
                   f"http://127.0.0.1:{receiver.server_port}/", *config)
        simulator = self.start(
            "apns",
            [self.rouse_path, "apns-simulator", "--certificates", "apns", "--control",
             "apns.sock", "--directory", "phones", "--json"], "production")
        self.tell(cmd="app_add", topic="org.example.shop", team="TEAM123456")
        with open("keys/push.pub.pem", encoding="utf-8") as file:
            self.tell(cmd="key_add", kid="DEVELOP001", team="TEAM123456", publicKey=file.read())
        self.rouse("app", "push", "set", "shop", "--environment", "production", "--key",
                   "keys/push.pem", "--key-id", "DEVELOP001", "--team", "TEAM123456", "--topic",
                   "org.example.shop", "--host", "localhost", "--port",
                   str(simulator["production"]), "--trust", "apns/authority.pem", *config)
        for number, user in enumerate(("anna", "ben"), 1):
            self.tell(
                cmd="device_create", device=user, topic="org.example.shop", user=user, app="shop",
                deviceId=f"00000000-0000-4000-8000-00000000000{number}", host="127.0.0.1",
                serverName="localhost", port=server["device_port"],
                trust=os.path.abspath("tls/ca.pem"),
                issuerKey=os.path.abspath("keys/issuer.pem"), issuerKid="dev")
            self.tell(cmd="device_open", device=user)
        # Before its first session the server has no push token of a phone: what suspends one would
        # wait for a push in vain.
        end = time.monotonic() + PATIENCE
        while "\nrouse_sessions_open 2\n" not in text_of(self):
            if time.monotonic() > end:
                raise Failure("the phones did not connect")
            time.sleep(0.1)
        self.room = self.post("/v1/conversations", {"participants": ["anna", "ben"]})["id"]

    def configure(self, settings):
        lines = ("tls.certificate_file = tls/server.pem", "tls.key_file = tls/server.key",
                 "listen.port = 0", "api.port = 0", "webhooks.allow_networks = 127.0.0.0/8",
                 "digest.sample = 1", *settings)
        with open("rouse.conf", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def begin_watching(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.prometheus = free.getsockname()[1]
        with open(f"{self.deploy}/prometheus/prometheus.yml", encoding="utf-8") as file:
            text = file.read()
        for before, after in (("localhost:7480", f"127.0.0.1:{self.api}"), (": 15s", ": 1s")):
            if before not in text:
                raise Failure(f"prometheus.yml does not hold {before}")
            text = text.replace(before, after)
        with open("prometheus.yml", "w", encoding="utf-8") as file:
            file.write(text)
        with open(f"{self.deploy}/prometheus/rouse.rules.yml", encoding="utf-8") as file:
            rules = file.read()
        with open("rouse.rules.yml", "w", encoding="utf-8") as file:
            file.write(rules)
        self.start("prometheus", [
            "/usr/bin/prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
            f"--web.listen-address=127.0.0.1:{self.prometheus}"])

    def ask(self, path, **words):
        """An answer of Prometheus, or the words in which it refuses."""
        query = urllib.parse.urlencode(words)
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.prometheus}{path}?{query}", timeout=30) as answer:
                return json.load(answer)["data"], None
        except urllib.error.HTTPError as error:
            return None, error.read().decode()

    def wait_until_watched(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                found, _ = self.ask("/api/v1/query", query='up{job="rouse"} == 1')
                if found and found["result"]:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise Failure(f"Prometheus scrapes nothing: {open('prometheus.log').read()[-2000:]}")

    def stop(self):
        # The server goes first: who ends the phones before lets it wait for their return.
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


class Traffic(threading.Thread):
    """Messages, and a phone that sleeps now and then; until `stop`."""

    def __init__(self, scene):
        super().__init__(daemon=True)
        self.scene = scene
        self.stopping = threading.Event()
        self.failure = None

    def run(self):
        try:
            number = 0
            while not self.stopping.wait(0.1):
                number += 1
                body = {
                    "sender": "anna", "parts": [{"mime_type": "text/plain", "text": f"{number}"}],
                    "push": {"body": f"{number}"}}
                if number % 10 == 5:
                    body["urgency"] = "urgent"
                self.scene.post(f"/v1/conversations/{self.scene.room}/messages", body)
                if number % 200 == 20:
                    self.scene.tell(cmd="device_suspend", device="ben")
        except Exception as error:  # Told by the main thread.
            self.failure = error


def text_of(scene):
    with urllib.request.urlopen(f"http://127.0.0.1:{scene.api}/metrics", timeout=30) as answer:
        return answer.read().decode()


def metrics_of(scene):
    """The names of the series that the server has, by its lines of help."""
    names = {"up"}
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text_of(scene), re.M):
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" \
            else {name}
    return names


def named_in(expression):
    """Metrics in an expression: names outside of strings, labels' lists and ranges."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}", " ", bare)
    return set(re.findall(r"\b(?:rouse|process)_[a-z0-9_]+|\bup\b", bare))


def queries(deploy):
    """(where it stands, the expression), with the dashboard's variables filled in."""
    found = []
    with open(f"{deploy}/grafana/rouse.json", encoding="utf-8") as file:
        board = json.load(file)
    for note in board["annotations"]["list"]:
        found.append((f"dashboard, note {note['name']}", note["expr"]))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            inner = re.fullmatch(r"label_values\((.+), \w+\)", variable["query"]["query"])
            found.append((f"dashboard, variable {variable['name']}", inner.group(1)))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            found.append((f"dashboard, {panel['title']}", target["expr"]))
    found += [("what the traffic makes", expression) for expression in MADE]
    for number, (place, expression) in enumerate(found):
        for name, value in (("$__rate_interval", "1m"), ("$instance", ".*"), ("$app", ".*")):
            expression = expression.replace(name, value)
        if "$" in expression:
            raise Failure(f"{place}: a variable that nothing fills in: {expression}")
        found[number] = (place, expression)
    return found


def main():
    parser = argparse.ArgumentParser()
    for name in ("--rouse", "--deploy", "--folder"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    scene = Scene(
        os.path.abspath(arguments.rouse), arguments.folder, os.path.abspath(arguments.deploy))
    problems = []
    try:
        scene.begin()
        scene.begin_watching()
        scene.wait_until_watched()
        traffic = Traffic(scene)
        traffic.start()
        asked = queries(scene.deploy)
        waiting = dict(enumerate(asked))
        end = time.monotonic() + PATIENCE
        while waiting and time.monotonic() < end and not problems and not traffic.failure:
            time.sleep(1)
            for number, (place, expression) in list(waiting.items()):
                found, refusal = scene.ask("/api/v1/query", query=expression)
                if refusal:
                    problems.append(f"{place}: {refusal}: {expression}")
                    del waiting[number]
                elif any(one["value"][1] != "NaN" for one in found["result"]) \
                        or named_in(expression) & NONE_WHEN_HEALTHY.keys():
                    del waiting[number]
                elif place == "dashboard, note Restarts":
                    # It has data when something restarts; that it parses is enough.
                    del waiting[number]
        if traffic.failure:
            problems.append(f"the traffic ended: {traffic.failure!r}")
        problems += [f"{place}: no data: {text}" for place, text in waiting.values()]
        rules, _ = scene.ask("/api/v1/rules")
        alerts = [rule for group in rules["groups"] for rule in group["rules"]]
        if len(alerts) < 10:
            problems.append(f"{len(alerts)} rules")
        for rule in alerts:
            place = f"rule {rule['name']}"
            asked.append((place, rule["query"]))
            if rule["health"] != "ok":
                problems.append(f"{place}: {rule}")
            if rule["state"] == "firing":
                problems.append(f"{place} fires on a healthy server: {rule['alerts']}")
        known = metrics_of(scene)
        for place, expression in asked:
            unknown = named_in(expression) - known
            if unknown or not named_in(expression):
                problems.append(f"{place}: no such metric {sorted(unknown)}: {expression}")
        traffic.stopping.set()
        traffic.join()
        print(f"queries: {len(asked)}, rules: {len(alerts)}, metrics: {len(known)}")
    finally:
        scene.stop()
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(1)
    print("watched: ok")


if __name__ == "__main__":
    main()
