#!/usr/bin/env python3
"""Checks that every folder of src/ includes only folders of a lower layer. Exits 1 with one line per breach."""
import pathlib
import re
import sys

LAYERS = {"base": 0, "format": 1, "tensor": 2, "text": 2, "weights": 3, "ops": 4, "model": 5, "backend": 5,
          "cluster": 6, "runtime": 7, "bench": 8, "serving": 8, "server": 9, "tools": 10}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def main() -> int:
    source = pathlib.Path(__file__).resolve().parent.parent / "src"
    breaches = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
            continue
        folder = path.relative_to(source).parts[0]
        if folder not in LAYERS:
            breaches.append(f"{path}: folder {folder} is not in the list of layers")
            continue
        for included in INCLUDE.findall(path.read_text()):
            other = included.split("/")[0]
            if "/" not in included or other not in LAYERS:
                breaches.append(f'{path}: "{included}" is not a path from src/')
            elif other != folder and LAYERS[other] >= LAYERS[folder]:
                breaches.append(f'{path}: {folder} (layer {LAYERS[folder]}) may not include "{included}" '
                                f"(layer {LAYERS[other]})")
    print("\n".join(breaches) if breaches else "layers are in order")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
