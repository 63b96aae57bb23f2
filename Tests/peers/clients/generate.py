"""Generates clients of the backend API with two generators, in the languages asked for.

usage: generate.py OUT LANGUAGE...

LANGUAGE: python (openapi-python-client), and of openapi-generator pydantic, typescript, go, swift
and kotlin. Each goes into a folder of OUT of that name. The description they are made from is that
of an older server: an answer has a field less, so that what is then published is also read by a
client that does not know all the server says. Runs in the environment of Deploy/peers.
"""

import json
import pathlib
import subprocess
import sys

import openapi_generator_cli
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Of openapi-generator: its own name of a language, and what is asked of it.
GENERATORS = {
    "pydantic": ("python", {"packageName": "rouse_pydantic"}),
    "typescript": ("typescript-fetch", {}),
    "go": ("go", {"packageName": "rouse", "withGoMod": "false"}),
    "swift": ("swift6", {"projectName": "Rouse"}),
    "kotlin": ("kotlin", {
        "packageName": "rouse", "library": "jvm-vertx", "serializationLibrary": "gson"}),
}


def older(text):
    """The description without `receipts_off` of a conversation that was made."""
    document = yaml.safe_load(text)
    conversation = document["components"]["schemas"]["Conversation"]
    del conversation["properties"]["receipts_off"]
    conversation["required"].remove("receipts_off")
    made = document["paths"]["/v1/conversations"]["post"]["responses"]["201"]
    made["content"]["application/json"].pop("examples", None)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def main():
    out, languages = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    description = out / "description.yaml"
    description.write_text(
        older((ROOT / "Protocol/backend-api.yaml").read_text(encoding="utf-8")), encoding="utf-8")
    running = []
    if "python" in languages:
        settings = out / "openapi-python-client.yaml"
        settings.write_text("package_name_override: rouse_attrs\npost_hooks: []\n"
            "content_type_overrides:\n  application/yaml: text/plain\n")
        running.append(subprocess.Popen([
            sys.executable, "-m", "openapi_python_client", "generate", "--path", description,
            "--config", settings, "--meta", "none", "--overwrite", "--fail-on-warning",
            "--output-path", out / "python" / "rouse_attrs"]))
        (out / "python").mkdir(exist_ok=True)
    plans = []
    for language in languages:
        if language not in GENERATORS:
            continue
        name, properties = GENERATORS[language]
        plan = out / f"{language}.json"
        plan.write_text(json.dumps({
            "inputSpec": str(description), "outputDir": str(out / language),
            "generatorName": name, "globalProperties": {
                "apiTests": "false", "modelTests": "false", "apiDocs": "false",
                "modelDocs": "false"},
            # Answers may get new fields.
            "additionalProperties": {
                **properties, "disallowAdditionalPropertiesIfNotPresent": False,
                "hideGenerationTimestamp": True}}))
        plans.append(plan)
    if plans:
        jar = pathlib.Path(openapi_generator_cli.__file__).with_name("openapi-generator.jar")
        running.append(subprocess.Popen([
            "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", jar, "batch",
            "--fail-fast", *plans], stdout=subprocess.DEVNULL))
    sys.exit(max([one.wait() for one in running], default=0))


if __name__ == "__main__":
    main()
