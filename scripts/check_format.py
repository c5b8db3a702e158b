#!/usr/bin/env python3
"""Checks that src/, tests/ and bench/ are formatted as .clang-format says. Versions of clang-format disagree, so any but
14 is skipped (exit 77, which ctest counts as skipped). Exits 1 with one line per file that differs."""
import pathlib
import re
import shutil
import subprocess
import sys

VERSION = "14"
SKIPPED = 77


def main() -> int:
    program = shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
    found = program and re.search(r"version (\d+)", subprocess.run([program, "--version"], capture_output=True,
                                                                   text=True, check=True).stdout)
    if not found or found.group(1) != VERSION:
        print(f"SKIP: clang-format {VERSION} is not installed")
        return SKIPPED
    root = pathlib.Path(__file__).resolve().parent.parent
    files = [path for folder in ("src", "tests", "bench") for path in sorted((root / folder).rglob("*"))
             if path.suffix in {".h", ".cpp"}]
    checked = subprocess.run([program, "--dry-run", *map(str, files)], capture_output=True, text=True, check=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", checked.stderr, re.MULTILINE)))
    for path in wrong:
        print(f"{pathlib.Path(path).relative_to(root)}: differs from .clang-format; run clang-format -i on it")
    if not wrong:
        print(f"{len(files)} files are formatted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
