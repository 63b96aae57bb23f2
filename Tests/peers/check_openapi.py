"""Compares a transcript of real exchanges with an OpenAPI description, both ways.

usage: check_openapi.py backend-api.yaml transcript.json

Every documented (method, path, status) must occur in the transcript, and every exchange must be
documented: status, media type, headers, and the body by its schema. Bodies of requests that
were answered 2xx must fit the request's schema, and so must the examples.
"""

import json
import re
import sys

import jsonschema
import yaml

METHODS = ("get", "put", "post", "delete", "patch")


class Checker:
    def __init__(self, document):
        self.document = document
        self.problems = []
        self.missing = set()
        self.templates = []
        for template, item in document["paths"].items():
            pattern = re.sub(r"\{[a-z_]+\}", "[^/]+", template)
            self.templates.append((re.compile(f"^{pattern}$"), template, item))
            for method in METHODS:
                for status in item.get(method, {}).get("responses", {}):
                    self.missing.add((method.upper(), template, status))
        for section in ("x-before-routing", "x-outside-paths"):
            for status in document[section]:
                self.missing.add((section, "", status))

    def resolve(self, value):
        while isinstance(value, dict) and "$ref" in value:
            here = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                here = here[part]
            value = here
        return value

    def validate(self, instance, schema, where):
        whole = {**schema, "components": self.document["components"]}
        validator = jsonschema.Draft202012Validator(whole)
        for error in validator.iter_errors(instance):
            place = "/".join(str(part) for part in error.absolute_path)
            self.problems.append(f"{where}: {place or 'the body'}: {error.message}")

    def examples(self):
        for _, template, item in self.templates:
            for method in METHODS:
                operation = item.get(method)
                if not operation:
                    continue
                contents = [self.resolve(operation.get("requestBody", {})).get("content", {})]
                for response in operation["responses"].values():
                    contents.append(self.resolve(response).get("content", {}))
                for content in contents:
                    for media in content.values():
                        for name, example in media.get("examples", {}).items():
                            self.validate(
                                example["value"], media["schema"],
                                f"example {name} of {method} {template}")

    def exchange(self, exchange):
        method, status = exchange["method"], str(exchange["status"])
        path = exchange["path"].split("?")[0]
        where = f"{method} {path} -> {status}"
        responses, place, operation = self.find(exchange, method, path)
        response = self.resolve(responses.get(status))
        if response is None:
            self.problems.append(f"{where}: not in the file: {exchange['body'][:200]}")
            return
        self.missing.discard((*place, status))
        self.check_headers(exchange, response, where)
        if method != "HEAD":
            self.check_body(exchange, response, where)
        if operation and exchange["status"] < 300 and exchange["requestBody"]:
            media = self.resolve(operation["requestBody"])["content"]["application/json"]
            self.validate(json.loads(exchange["requestBody"]), media["schema"], f"{where}: request")

    def find(self, exchange, method, path):
        if exchange["isRaw"]:
            return self.document["x-before-routing"], ("x-before-routing", ""), None
        outside = self.document["x-outside-paths"]
        wanted = "get" if method == "HEAD" else method.lower()
        for pattern, template, item in self.templates:
            if not pattern.match(path):
                continue
            operation = item.get(wanted)
            if operation is None:
                return outside, ("x-outside-paths", ""), None
            return operation["responses"], (wanted.upper(), template), operation
        return outside, ("x-outside-paths", ""), None

    def check_headers(self, exchange, response, where):
        for name, header in response.get("headers", {}).items():
            header = self.resolve(header)
            value = exchange["headers"].get(name.lower())
            if value is None:
                if header.get("required"):
                    self.problems.append(f"{where}: no {name}")
            else:
                self.validate(value, header["schema"], f"{where}: {name}")
        if exchange["status"] == 405:
            for pattern, _, item in self.templates:
                if pattern.match(exchange["path"]):
                    methods = {m.upper() for m in METHODS if m in item}
                    methods |= {"HEAD"} if "GET" in methods else set()
                    if set(exchange["headers"]["allow"].split(", ")) != methods:
                        self.problems.append(f"{where}: Allow is {exchange['headers']['allow']}")

    def check_body(self, exchange, response, where):
        kind = exchange["headers"].get("content-type", "").split(";")[0]
        if "content" not in response:
            if kind or exchange["body"]:
                self.problems.append(f"{where}: a body, which is not in the file")
            return
        media = response["content"].get(kind)
        if media is None:
            self.problems.append(f"{where}: {kind or 'no media type'} is not in the file")
            return
        body = exchange["body"]
        if kind.endswith("json"):
            body = json.loads(body)
            if kind == "application/problem+json" and body.get("status") != exchange["status"]:
                self.problems.append(f"{where}: the body says status {body.get('status')}")
        self.validate(body, media["schema"], where)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        checker = Checker(yaml.safe_load(file))
    with open(sys.argv[2], encoding="utf-8") as file:
        transcript = json.load(file)
    checker.examples()
    for exchange in transcript:
        checker.exchange(exchange)
    for method, path, status in sorted(checker.missing):
        checker.problems.append(f"{method} {path} -> {status}: in the file, but it never happened")
    for problem in checker.problems:
        print(problem)
    print(f"{len(transcript)} exchanges, {len(checker.problems)} problems")
    sys.exit(1 if checker.problems else 0)


if __name__ == "__main__":
    main()
