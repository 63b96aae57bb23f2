#!/usr/bin/python3
"""Holds the files for containers to what they have to be: Kubernetes' own schemas (of the PyPI
package kubernetes-validate, as JSON), names that refer to each other, the paths of probes, and
settings that the program has. Prints `manifests: ok`.

usage: manifests.py --rouse PROGRAM --deploy FOLDER --schemas FOLDER --folder EMPTY-FOLDER
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml

PROBLEMS = []


def check(condition, what):
    if not condition:
        PROBLEMS.append(what)


def against_schema(document, schemas):
    """Kubernetes' strict schema: nothing unknown, nothing of another type."""
    group, _, version = document["apiVersion"].rpartition("/")
    name = "-".join(part for part in (document["kind"], group.split(".")[0], version) if part)
    path = schemas / f"{name.lower()}.json"
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    with open(schemas / "_definitions.json", encoding="utf-8") as file:
        definitions = json.load(file)
    # By the place from which the schemas say they are, which nobody asks.
    resolver = jsonschema.RefResolver(schema["$id"], schema, store={definitions["$id"]: definitions})
    validator = jsonschema.Draft202012Validator(schema, resolver=resolver)
    for error in validator.iter_errors(document):
        place = "/".join(str(part) for part in error.absolute_path)
        PROBLEMS.append(f"{document['kind']} {place}: {error.message[:200]}")


def settings(words, environment, where, rouse):
    """The program takes these settings: a key or a variable that it does not know is a mistake."""
    known = {name: value for name, value in environment.items() if name.startswith("ROUSE_")}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("ROUSE_")}
    done = subprocess.run(
        [rouse, "serve", "--print-config", *words], env=plain | known, capture_output=True,
        text=True, timeout=60)
    check(done.returncode == 0, f"{where}: {done.stderr}")


def pod_of(document):
    return document["spec"]["template"]["spec"]


def kubernetes(deploy, schemas, rouse):
    documents = []
    for name in ("migrate.yaml", "rouse.yaml"):
        with open(deploy / "kubernetes" / name, encoding="utf-8") as file:
            documents += [one for one in yaml.safe_load_all(file) if one]
    for document in documents:
        against_schema(document, schemas)
        check(document["metadata"]["namespace"] == "rouse", f"{document['kind']}: no namespace")
    of_kind = {}
    for document in documents:
        of_kind.setdefault(document["kind"], []).append(document)
    node = of_kind["Deployment"][0]
    labels = node["spec"]["template"]["metadata"]["labels"].items()
    check(node["spec"]["selector"]["matchLabels"].items() <= labels, "selector of the deployment")
    container = pod_of(node)["containers"][0]
    ports = {port["name"] for port in container["ports"]}
    for service in of_kind["Service"]:
        check(service["spec"]["selector"].items() <= labels, f"{service['metadata']}: selector")
        for port in service["spec"]["ports"]:
            check(port["targetPort"] in ports, f"{service['metadata']['name']}: {port}")
    budget = of_kind["PodDisruptionBudget"][0]["spec"]["selector"]["matchLabels"]
    check(budget.items() <= labels, "selector of the disruption budget")
    for probe, path in (
            ("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        asked = container[probe]["httpGet"]
        check(asked == {"path": path, "port": "api"}, f"{probe}: {asked}")
    text = of_kind["ConfigMap"][0]["data"]["rouse.conf"]
    drain = int(re.search(r"timers\.drain = (\d+)s", text).group(1))
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    grace = pod_of(node)["terminationGracePeriodSeconds"]
    check(grace >= pause + drain + 10, f"{grace} s of grace for {pause} s and {drain} s")
    for document in of_kind["Deployment"] + of_kind["Job"]:
        pod = pod_of(document)
        volumes = {volume["name"] for volume in pod["volumes"]}
        for one in pod["containers"]:
            for mount in one["volumeMounts"]:
                check(mount["name"] in volumes, f"{document['kind']}: no volume {mount['name']}")
            check(one["securityContext"]["readOnlyRootFilesystem"], "a root that can be written")
            check(one["securityContext"]["capabilities"] == {"drop": ["ALL"]}, "capabilities")
            environment = {
                variable["name"]: "postgresql://rouse@db/rouse" for variable in one["env"]}
            settings([], environment, document["kind"], rouse)
    with open("rouse.conf", "w", encoding="utf-8") as file:
        file.write(text)
    settings(["--config", "rouse.conf"], {}, "ConfigMap", rouse)
    return len(documents)


def compose(deploy, rouse):
    folder = deploy / "container"
    with open(folder / "compose.yaml", encoding="utf-8") as file:
        found = yaml.safe_load(file)
    services = found["services"]
    check({"node-1", "node-2", "node-3", "haproxy", "postgres", "apns", "prometheus"}
          <= services.keys(), f"services: {list(services)}")
    for name, service in services.items():
        for other in service.get("depends_on", []):
            check(other in services, f"{name} depends on {other}")
        for network in service["networks"]:
            check(network in found["networks"], f"{name}: network {network}")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if not source.startswith("."):
                check(source in found["volumes"], f"{name}: volume {source}")
            elif not source.startswith("./tls/"):
                check((folder / source).is_file(), f"{name}: no {source}")
        settings(
            ["--config", str(folder / "rouse.conf")], service.get("environment", {}), name, rouse)
    proxies = services["node-1"]["environment"]["ROUSE_LISTEN_PROXY_NETWORKS"]
    subnet = found["networks"]["rouse"]["ipam"]["config"][0]["subnet"]
    check(proxies == subnet, f"PROXY headers are taken from {proxies}, HAProxy is in {subnet}")
    names = subprocess.run(
        [rouse, "apns-simulator", "--help"], capture_output=True, text=True, check=True).stdout
    for word in services["apns"]["command"]:
        check(not word.startswith("--") or word in names, f"the simulator has no {word}")
    with open(folder / "prometheus.yml", encoding="utf-8") as file:
        targets = yaml.safe_load(file)["scrape_configs"][0]["static_configs"][0]["targets"]
    check(targets == [f"node-{number}:7480" for number in (1, 2, 3)], f"{targets}")
    return len(services)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--rouse", "--deploy", "--schemas", "--folder"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    deploy = pathlib.Path(arguments.deploy).resolve()
    schemas = pathlib.Path(arguments.schemas).resolve()
    os.chdir(arguments.folder)
    documents = kubernetes(deploy, schemas, arguments.rouse)
    services = compose(deploy, arguments.rouse)
    for problem in PROBLEMS:
        print(problem)
    if PROBLEMS:
        return 1
    print(f"manifests: ok ({documents} documents, {services} services)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
