"""Compiles what generate.py made for a language, where it is compiled, and publishes with it.

usage: publish.py OUT LANGUAGE URL KEY

Prints what the client's program prints. A compiler's output is shown only if it fails.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def build(words, folder, **variables):
    made = subprocess.run(
        list(map(str, words)), cwd=folder, env={**os.environ, **variables}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if made.returncode:
        sys.exit(made.stdout[-6000:] or f"{words[0]} ended with {made.returncode}")


def python(out):
    os.environ["PYTHONPATH"] = str(out)
    return [sys.executable, HERE / f"publish_{out.name}.py"]


def typescript(out):
    shutil.copy(HERE / "publish.ts", out)
    (out / "tsconfig.json").write_text(json.dumps({
        "compilerOptions": {
            "target": "es2020", "module": "commonjs", "lib": ["es2020", "dom"], "strict": True,
            # The generator writes for TypeScript 4.9, Debian has 4.8.
            "noImplicitAny": False, "types": [], "outDir": "made"},
        "files": ["publish.ts"]}))
    build(["tsc", "--project", "tsconfig.json"], out)
    return ["node", out / "made" / "publish.js"]


def go(out):
    place = out.parent / "gopath" / "src"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "rouse").exists():
        (place / "rouse").symlink_to(out)
    build(
        ["go", "build", "-o", out.parent / "publish-go", HERE / "publish.go"], out,
        GO111MODULE="off", GOPATH=f"{place.parent}:/usr/share/gocode", CGO_ENABLED="0",
        GOCACHE=str(out.parent / "gocache"), GOFLAGS="")
    return [out.parent / "publish-go"]


def swift(out):
    sources = sorted(out.glob("Sources/**/*.swift"))
    build(
        ["swiftc", "-swift-version", "6", "-parse-as-library", "-j", "2", "-module-name",
         "Publish", "-o", "publish", *sources, HERE / "publish.swift"], out)
    return [out / "publish"]


def main():
    out, language = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    programs = {"python": python, "pydantic": python, "typescript": typescript, "go": go,
                "swift": swift}
    words = programs[language](out / language)
    sys.exit(subprocess.run([*map(str, words), *sys.argv[3:]], check=False).returncode)


if __name__ == "__main__":
    main()
