#!/usr/bin/python3
"""One trace from a publish to everything that comes of it: the log as JSON, the device that is
connected, the push to the one that sleeps, the webhook and `rouse explain` name it; a publish
without one leaves none, and the log holds no text, no key and nothing of a query. Then SIGHUP
turns the log back into text without a line for each request. Prints `followed: ok`.

usage: followed.py --rouse PROGRAM --folder EMPTY-FOLDER
"""
import argparse
import json
import os
import signal
import sys
import time
import urllib.request

import watched

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def lines():
    with open("server.log", encoding="utf-8") as file:
        return file.read().splitlines()


def records():
    return [json.loads(line) for line in lines()]


def wait_for(what, found):
    """Until `found` finds something; that."""
    end = time.monotonic() + watched.PATIENCE
    while time.monotonic() < end:
        result = found()
        if result:
            return result
        time.sleep(0.05)
    raise watched.Failure(f"{what} did not come: {lines()[-20:]}")


def message(text):
    return {"sender": "anna", "parts": [{"mime_type": "text/plain", "text": text}],
            "push": {"body": text}}


def main():
    parser = argparse.ArgumentParser()
    for name in ("--rouse", "--folder"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    scene = watched.Scene(
        os.path.abspath(arguments.rouse), arguments.folder,
        settings=("log.level = debug", "log.format = json", "log.access = on"))
    try:
        scene.begin()
        scene.tell(cmd="device_suspend", device="ben")
        path = f"/v1/conversations/{scene.room}/messages"

        # First, so that the push which wakes the sleeping phone is for this one.
        traced = scene.post(
            path, message("followed-text"), traceparent=PARENT, **{"x-request-id": "mine"})["id"]
        for event in ("message.told", "message.applied", "push.accepted"):
            found = wait_for(event, lambda: [
                one for one in records() if one["event"] == event and one.get("trace") == TRACE])
            if event != "push.accepted":
                assert any(one["user"] == "anna" for one in found), found
                assert all(isinstance(one["ms"], int) for one in found), found
        delivery = wait_for("the webhook", lambda: [
            (headers, event) for headers, body in watched.Receiver.taken
            for event in body["events"] if event.get("message_id") == traced])
        assert delivery[0][1]["traceparent"] == PARENT, delivery
        assert delivery[0][0]["traceparent"] == PARENT, delivery[0][0].items()
        plain = scene.post(path, message("unfollowed-text"), traceparent="00-00-00-00")["id"]
        others = wait_for("the other one", lambda: [
            (headers, event) for headers, body in watched.Receiver.taken
            for event in body["events"] if event.get("message_id") == plain])
        assert "traceparent" not in others[0][1], others

        explained = scene.rouse(
            "explain", "--app", "shop", "--message", traced, "--config", "rouse.conf")
        assert f"trace {TRACE}" in explained, explained
        explained = scene.rouse(
            "explain", "--app", "shop", "--message", plain, "--config", "rouse.conf")
        assert "trace" not in explained, explained

        request = urllib.request.Request(
            f"http://127.0.0.1:{scene.api}/v1/messages/{traced}/explain?user=nobody-we-know",
            headers={"Authorization": f"Bearer {scene.key}"})
        urllib.request.urlopen(request, timeout=30).read()
        urllib.request.urlopen(f"http://127.0.0.1:{scene.api}/readyz", timeout=30).read()
        answered = wait_for("the access line", lambda: [
            one for one in records()
            if one["event"] == "api.answered" and "explain" in one["route"] and "app" in one
            and one["level"] == "info" and one["route"].startswith("/v1")])
        assert set(answered[0]) == {
            "time", "level", "event", "request", "app", "method", "route", "status", "bytes",
            "ms"}, answered
        mine = [one for one in records()
                if one["event"] == "api.answered" and one["request"] == "mine"]
        assert len(mine) == 1 and mine[0]["trace"] == TRACE, mine
        assert mine[0]["status"] == 201 and mine[0]["bytes"] > 100, mine
        assert mine[0]["route"] == "/v1/conversations/{conversation}/messages", mine
        health = [one for one in records() if one.get("route") == "/readyz"]
        assert all(one["level"] == "debug" for one in health), health
        whole = "\n".join(lines())
        for secret in ("followed-text", "unfollowed-text", "nobody-we-know", scene.key):
            assert secret not in whole, secret

        scene.configure(("log.level = info", "log.format = text", "log.access = off"))
        before = len(lines())
        os.kill(scene.processes[0].pid, signal.SIGHUP)
        wait_for("the reload", lambda: [
            line for line in lines()[before:] if "event=settings.reloaded" in line])
        before = len(lines())
        scene.post(path, message("3"), **{"x-request-id": "later"})
        scene.configure(("log.level = info", "log.format = text", "log.access = on"))
        os.kill(scene.processes[0].pid, signal.SIGHUP)
        wait_for("the reload", lambda: [
            line for line in lines()[before:] if "event=settings.reloaded" in line])
        scene.post(path, message("4"), **{"x-request-id": "latest"})
        wait_for("the line in text", lambda: [
            line for line in lines()[before:] if "event=api.answered request=latest" in line])
        assert not any("request=later" in line for line in lines()), lines()[before:]
    finally:
        scene.stop()
    print("followed: ok")


if __name__ == "__main__":
    sys.exit(main())
