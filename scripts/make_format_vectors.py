#!/usr/bin/env python3
"""Writes tests/data/format/NAME.blocks and NAME.values for every storage format.

NAME.blocks holds raw blocks, NAME.values their dequantisation by the `gguf` package as little-endian float32. Blocks are
random ones with finite scales, and extreme ones: scales 0, -0, denormal, smallest normal and largest, with codes of all
zeros, all ones and ramps. The seed is fixed: the files in the repository are what `pip install gguf` 0.19.0 gives.
"""

import pathlib

import gguf
import numpy as np

# Byte offsets of the halves that are scales or minima.
HALVES = {
    "F32": [], "F16": [], "BF16": [],
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
EXTREME_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF]
SCALARS = 512  # blocks of formats of one element
RANDOM_BLOCKS = 40


def random_halves(random, count):
    """Finite halves of both signs, all exponents alike."""
    return random.integers(0, 0x7C00, count).astype(np.uint16) | (random.integers(0, 2, count) << 15).astype(np.uint16)


def make_blocks(name, random):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    if elements == 1:
        return random.integers(0, 256, (SCALARS, size), dtype=np.uint8)
    ramp = np.arange(size) * 37 % 256
    patterns = [np.zeros(size), np.full(size, 0xFF), ramp, 255 - ramp]
    extreme = []
    for i, half in enumerate(EXTREME_HALVES):
        block = patterns[i % len(patterns)].astype(np.uint8)
        for j, offset in enumerate(HALVES[name]):
            other = EXTREME_HALVES[(i + 3 * j) % len(EXTREME_HALVES)]
            block[offset : offset + 2] = np.array([half if j == 0 else other], "<u2").view(np.uint8)
        extreme.append(block)
    blocks = random.integers(0, 256, (RANDOM_BLOCKS, size), dtype=np.uint8)
    for offset in HALVES[name]:
        blocks[:, offset : offset + 2] = random_halves(random, RANDOM_BLOCKS).astype("<u2").view(np.uint8).reshape(-1, 2)
    return np.concatenate([np.array(extreme), blocks])


def main():
    folder = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "format"
    folder.mkdir(parents=True, exist_ok=True)
    for name in HALVES:
        blocks = make_blocks(name, np.random.default_rng(2024))
        values = gguf.quants.dequantize(blocks.reshape(1, -1), gguf.GGMLQuantizationType[name])
        (folder / f"{name}.blocks").write_bytes(blocks.tobytes())
        (folder / f"{name}.values").write_bytes(values.astype("<f4").tobytes())


if __name__ == "__main__":
    main()
