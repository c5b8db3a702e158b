#!/usr/bin/env python3
"""Writes tests/data/format/NAME.blocks and NAME.values for every storage format.

NAME.blocks holds raw blocks, NAME.values their dequantisation by the `gguf` package as little-endian float32. Blocks are
random ones with finite scales; extreme ones: scales 0, -0, denormal, smallest normal and largest, with codes of all zeros,
all ones and ramps; for MXFP4 and NVFP4 every scale there is; for grids every entry. NAME.hostile.blocks and .values are the
same of scales that are infinite or NaN. The seed is fixed: the files in the repository are what `pip install gguf` 0.19.0
gives. The package has no Q1_0: its decoder here is written from ggml's definition (bit 1 is d, bit 0 is -d). FP8's values are
those of `pip install ml_dtypes` 0.6.0, of every code.
"""

import pathlib

import gguf
import ml_dtypes
import numpy as np

# Byte offsets of the halves that are scales or minima.
HALVES = {
    "F32": [], "F16": [], "BF16": [],
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "Q2_K": [80, 82], "Q3_K": [108], "IQ4_NL": [0], "IQ4_XS": [0], "IQ3_XXS": [0], "IQ3_S": [0],
    "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ1_S": [0], "IQ1_M": ["nibbles"],
    "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [], "NVFP4": [], "Q1_0": [0],
}
BYTE_SCALES = {"MXFP4": 1, "NVFP4": 4}  # at the front of the block
EXTREME_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF]
HOSTILE_HALVES = [0x7C00, 0xFC00, 0x7E00, 0xFDFF]
SCALARS = 512  # blocks of formats of one element
RANDOM_BLOCKS = 40
RANDOM_BLOCKS_OF_GRIDS = 16


def random_halves(random, count):
    """Finite halves of both signs, all exponents alike."""
    return random.integers(0, 0x7C00, count).astype(np.uint16) | (random.integers(0, 2, count) << 15).astype(np.uint16)


def set_halves(blocks, offset, halves):
    halves = np.asarray(halves, "<u2")
    if offset == "nibbles":  # IQ1_M: four bits of the scale on top of each of the last four 16-bit words
        words = blocks[:, 48:56].copy().view("<u2")
        words = (words & 0x0FFF) | (halves[:, None] >> np.array([0, 4, 8, 12], np.uint16)) << 12
        blocks[:, 48:56] = words.astype("<u2").view(np.uint8)
    else:
        blocks[:, offset : offset + 2] = halves.view(np.uint8).reshape(-1, 2)


def patterns(name, halves):
    """A block of regular codes for each of `halves`."""
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    ramp = np.arange(size) * 37 % 256
    codes = [np.zeros(size), np.full(size, 0xFF), ramp, 255 - ramp]
    blocks = np.array([codes[i % len(codes)] for i in range(len(halves))]).astype(np.uint8)
    for j, offset in enumerate(HALVES[name]):
        set_halves(blocks, offset, np.roll(halves, -3 * j))
    return blocks


def random_blocks(name, random, count):
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for offset in HALVES[name]:
        set_halves(blocks, offset, random_halves(random, count))
    return blocks


def pack(bits, shift):
    """The last axis as fields of one number, `shift` bits apart."""
    return np.sum(bits << shift * np.arange(bits.shape[-1]), axis=-1)


def every_entry(name, random):
    """Random blocks whose vectors are all entries of the grid in turn."""
    entries, vectors = {
        "IQ3_XXS": (256, 64), "IQ3_S": (512, 64), "IQ2_XXS": (256, 32), "IQ2_XS": (512, 32), "IQ2_S": (1024, 32),
        "IQ1_S": (2048, 32),
    }[name]
    index = np.arange(entries).reshape(-1, vectors)
    blocks = random_blocks(name, random, len(index))
    low, high = index & 255, index >> 8
    if name == "IQ2_XXS":
        blocks[:, 2:].reshape(-1, 8, 8)[:, :, :4] = low.reshape(-1, 8, 4)
    elif name == "IQ2_XS":
        words = blocks[:, 2:66].copy().view("<u2")
        blocks[:, 2:66] = ((words & 0xFE00) | index).astype("<u2").view(np.uint8)
    else:
        blocks[:, 2 : 2 + vectors] = low
    if name == "IQ3_S":
        blocks[:, 66:74] = pack(high.reshape(-1, 8, 8), 1)
    elif name == "IQ2_S":
        blocks[:, 66:74] = pack(high.reshape(-1, 8, 4), 2)
    elif name == "IQ1_S":
        words = blocks[:, 34:50].copy().view("<u2")
        blocks[:, 34:50] = ((words & 0xF000) | pack(high.reshape(-1, 8, 4), 3)).astype("<u2").view(np.uint8)
    return blocks


def make_blocks(name, random):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    if elements == 1:
        return random.integers(0, 256, (SCALARS, size), dtype=np.uint8)
    if name in BYTE_SCALES:
        scales = np.arange(256, dtype=np.uint8).reshape(-1, BYTE_SCALES[name])
        blocks = random_blocks(name, random, len(scales))
        blocks[:, : scales.shape[1]] = scales
        return blocks
    extreme = patterns(name, EXTREME_HALVES)
    if not name.startswith(("IQ1", "IQ2", "IQ3")):
        return np.concatenate([extreme, random_blocks(name, random, RANDOM_BLOCKS)])
    blocks = np.concatenate([extreme, random_blocks(name, random, RANDOM_BLOCKS_OF_GRIDS)])
    # IQ1_M has the grid of IQ1_S.
    return blocks if name == "IQ1_M" else np.concatenate([blocks, every_entry(name, random)])


def dequantize(name, blocks):
    if name == "Q1_0":
        d = blocks[:, :2].copy().view("<f2").astype(np.float32)
        bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little")
        return np.where(bits == 1, d, -d)
    with np.errstate(invalid="ignore", over="ignore"):
        return gguf.quants.dequantize(blocks.reshape(1, -1), gguf.GGMLQuantizationType[name])


def write(folder, name, suffix, blocks):
    (folder / f"{name}{suffix}.blocks").write_bytes(blocks.tobytes())
    (folder / f"{name}{suffix}.values").write_bytes(dequantize(name, blocks).astype("<f4").tobytes())


def main():
    folder = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "format"
    folder.mkdir(parents=True, exist_ok=True)
    codes = np.arange(512).astype(np.uint8)
    (folder / "FP8.blocks").write_bytes(codes.tobytes())
    (folder / "FP8.values").write_bytes(codes.view(ml_dtypes.float8_e4m3fn).astype("<f4").tobytes())
    for name in HALVES:
        write(folder, name, "", make_blocks(name, np.random.default_rng(2024)))
        if HALVES[name]:
            write(folder, name, ".hostile", patterns(name, HOSTILE_HALVES))


if __name__ == "__main__":
    main()
