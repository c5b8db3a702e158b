#!/usr/bin/env python3
"""Checks that the kernels compiled for FMA define no function that the linker may merge with another file's copy.

An inline function compiled in several files is kept once, perhaps as the copy for the wider CPU, and then called on the
narrower one. So whatever such a file defines must lie in its own namespace.

Usage: check_isa_symbols.py ARCHIVE
"""
import re
import subprocess
import sys

MERGED = re.compile(r"^[0-9a-f]+ ([WVu]) (.*)$")  # weak functions, weak objects, unique objects


def main() -> int:
    listing = subprocess.run(["nm", "-C", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    members = re.split(r"^(\S+\.o):$", listing, flags=re.MULTILINE)
    symbols = dict(zip(members[1::2], members[2::2])).get("kernels_fma.cpp.o")
    if symbols is None:
        print(f"{sys.argv[1]} has no kernels_fma.cpp.o")
        return 1
    shared = [match[2] for line in symbols.splitlines()
              if (match := MERGED.match(line)) and "eider::reference::fma::" not in match[2]]
    print("\n".join(f"kernels_fma.cpp.o shares {name}" for name in shared) or "kernels_fma.cpp.o shares nothing")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
