"""Compares a transcript of real exchanges with an OpenAPI description, both ways.

usage: check_openapi.py backend-api.yaml transcript.json

Every documented (method, path, status) must occur in the transcript, and every exchange must be
documented: status, media type, headers, and the body by its schema. Bodies of requests that
were answered 2xx must fit the request's schema, and so must the examples; bodies that are noted as
misshapen must have been refused, and must not fit it.

Schemas of answers are open, so that clients made from them take fields of later versions; here
they are closed: what the server says must be in the file. The file must also be one that
generators of clients understand.
"""

import copy
import json
import re
import sys

import jsonschema
import yaml

METHODS = ("get", "put", "post", "delete", "patch")


class Checker:
    def __init__(self, document):
        self.document = document
        self.closed = copy.deepcopy(document["components"])
        for schema in schemas_in(self.closed):
            if "properties" in schema:
                schema.setdefault("additionalProperties", False)
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

    def errors(self, instance, schema):
        schema = copy.deepcopy(schema)
        for one in schemas_in(schema):
            if "properties" in one:
                one.setdefault("additionalProperties", False)
        whole = {**schema, "components": self.closed}
        return list(jsonschema.Draft202012Validator(whole).iter_errors(instance))

    def validate(self, instance, schema, where):
        for error in self.errors(instance, schema):
            place = "/".join(str(part) for part in error.absolute_path)
            self.problems.append(f"{where}: {place or 'the body'}: {error.message}")

    def reached(self, value, names):
        """Adds the names of the schemas that a part of the file refers to."""
        for schema in schemas_in(value):
            name = schema.get("$ref", "").removeprefix("#/components/schemas/")
            if name in self.document["components"]["schemas"] and name not in names:
                names.add(name)
                self.reached(self.document["components"]["schemas"][name], names)
            elif schema.get("$ref", "").startswith("#/components/responses/"):
                self.reached(self.resolve(schema), names)

    def clients(self):
        """What generators of clients need of the file, and what their clients need of it later."""
        schemas = self.document["components"]["schemas"]
        asked, answered = set(), set()
        for _, _, item in self.templates:
            for method in METHODS:
                operation = item.get(method, {})
                self.reached(operation.get("requestBody", {}), asked)
                self.reached(operation.get("responses", {}), answered)
        for name in schemas:
            if name.removeprefix("New") in schemas and name.startswith("New"):
                self.problems.append(f"{name}: in Go the name of a function that makes another")
        for name in asked:
            for schema in schemas_in(schemas[name]):
                if "properties" in schema and schema.get("additionalProperties") is not False:
                    self.problems.append(f"{name}: a request takes fields that it does not name")
        for name in answered - asked:
            for schema in schemas_in(schemas[name]):
                if schema.get("additionalProperties") is False:
                    self.problems.append(f"{name}: an answer that can never get a new field")
        for schema in schemas_in(self.document):
            if ("enum" in schema or "const" in schema) and "type" not in schema:
                self.problems.append(f"no type: {schema}")
            choices = schema.get("oneOf", []) + schema.get("anyOf", [])
            if any("type" not in choice and "$ref" not in choice for choice in choices):
                self.problems.append(f"a choice between conditions, not types: {choices}")

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
        if not operation or not exchange["requestBody"]:
            return
        if exchange["status"] < 300 or exchange["isMisshapen"]:
            media = self.resolve(operation["requestBody"])["content"]["application/json"]
            asked = json.loads(exchange["requestBody"])
        if exchange["isMisshapen"]:
            if exchange["status"] != 400:
                self.problems.append(f"{where}: a misshapen body was not refused")
            if not self.errors(asked, media["schema"]):
                self.problems.append(f"{where}: refused, and right by the file: {asked}")
        elif exchange["status"] < 300:
            self.validate(asked, media["schema"], f"{where}: request")

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
        media = response["content"].get(kind) or response["content"].get("*/*")
        if media is None:
            self.problems.append(f"{where}: {kind or 'no media type'} is not in the file")
            return
        body = exchange["body"]
        if kind.endswith("json"):
            body = json.loads(body)
            if kind == "application/problem+json" and body.get("status") != exchange["status"]:
                self.problems.append(f"{where}: the body says status {body.get('status')}")
        self.validate(body, media["schema"], where)


def schemas_in(value):
    """Every object below a value; the contents of examples are none of the file's own."""
    if isinstance(value, dict):
        yield value
        for name, inner in value.items():
            if name not in ("example", "examples"):
                yield from schemas_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas_in(inner)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        checker = Checker(yaml.safe_load(file))
    with open(sys.argv[2], encoding="utf-8") as file:
        transcript = json.load(file)
    checker.examples()
    checker.clients()
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
