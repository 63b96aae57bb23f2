#!/usr/bin/python3
"""A test bundle for the tests of Deploy/run-tests: it lists the suites of the file PLAN, and of
each suite's only test `runs()` tells what the plan says of this run of it.

PLAN (environment): JSON, of each suite `Target.Suite` the outcomes of its runs in order: `passed`,
`failed` or `crashed`. The runs so far are counted in files beside it.
"""
import json
import os
import re
import sys

plan = os.environ["PLAN"]
with open(plan, encoding="utf-8") as file:
    suites = json.load(file)
if "--list-tests" in sys.argv:
    print("\n".join(f"{suite}/runs()" for suite in suites))
    sys.exit(0)
wanted = sys.argv[sys.argv.index("--filter") + 1]
suite = next(suite for suite in suites if re.search(wanted, f"{suite}/runs()"))
count = f"{plan}.{suite}"
run = os.path.getsize(count) if os.path.exists(count) else 0
with open(count, "a", encoding="utf-8") as file:
    file.write("x")
outcome = suites[suite][run]
test = f"{suite}/runs()/File.swift:1:1"
records = [
    ("test", {"kind": "function", "id": test, "name": "runs()", "displayName": f"{suite} runs"}),
    ("event", {"kind": "testStarted", "testID": test})]
if outcome != "passed":
    records.append(("event", {
        "kind": "issueRecorded", "testID": test, "issue": {"isKnown": False},
        "messages": [{"symbol": "fail", "text": f"run {run} {outcome}"}]}))
if outcome != "crashed":
    records.append(("event", {"kind": "testEnded", "testID": test}))
with open(sys.argv[sys.argv.index("--event-stream-output-path") + 1], "w") as file:
    for kind, payload in records:
        file.write(json.dumps({"version": 0, "kind": kind, "payload": payload}) + "\n")
print(f"✘ Test run with 1 test {outcome}" if outcome != "passed" else "✔ Test run with 1 test passed")
sys.stdout.flush()
if outcome == "crashed":
    os.abort()
sys.exit(outcome == "failed")
