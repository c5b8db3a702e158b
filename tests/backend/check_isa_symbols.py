#!/usr/bin/env python3
"""Checks that files compiled for an instruction set define no function that the linker may merge with another file's copy.

An inline function compiled in several files is kept once, perhaps as the copy for the wider CPU, and then called on the
narrower one. So whatever such a file defines must lie in the namespace of its instruction set.

Usage: check_isa_symbols.py ARCHIVE
"""
import re
import subprocess
import sys

MERGED = re.compile(r"^[0-9a-f]+ ([WVu]) (.*)$")  # weak functions, weak objects, unique objects
ISA = re.compile(r"eider::(reference::fma|cpu::(scalar|avx2|avx2_vnni|avx512|neon|neon_dot))::")


def main() -> int:
    listing = subprocess.run(["nm", "-C", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    members = re.split(r"^(\S+\.o):$", listing, flags=re.MULTILINE)
    checked, shared = 0, []
    for member, symbols in zip(members[1::2], members[2::2]):
        defined = [line for line in symbols.splitlines() if re.match(r"^[0-9a-f]+ ", line)]
        if not any(" T " in line and ISA.search(line) for line in defined) and member != "kernels_fma.cpp.o":
            continue
        checked += 1
        shared += [f"{member} shares {match[2]}" for line in defined
                   if (match := MERGED.match(line)) and not ISA.search(match[2])]
    print("\n".join(shared) or f"{checked} files share nothing")
    return 1 if shared or checked < 4 else 0


if __name__ == "__main__":
    sys.exit(main())
