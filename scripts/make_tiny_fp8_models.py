#!/usr/bin/env python3
"""Makes tiny qwen3 and qwen3_moe checkpoints in FP8, as published ones look, with reference logits.

  make_tiny_fp8_models.py FOLDER

Every projection is e4m3 in blocks of 128 x 128, of which the last ones are ragged: fp32 scales in the dense model, powers
of two (E8M0) in the mixture of experts. Embeddings, norms, router and head are BF16. NAME/logits holds float32
[tokens, vocab_size]: those of the dequantised model, computed in float64. fp8_models.json holds the tokens.
"""

import argparse
import json
import pathlib
import struct

import numpy as np

from make_tiny_models import HEAD_DIM, RMS_EPS, ROPE_BASE, Forward, Model, choose_tokens, random_weights

BLOCK = 128
LARGEST = 448.0

SHAPE = {"hidden_size": 144, "num_heads": 3, "intermediate_size": 160}
MODELS = [Model("qwen3_fp8", (), **SHAPE), Model("qwen3_moe_fp8", (), num_experts=3, **SHAPE)]

LAYER_NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate_inp": "mlp.gate",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
END_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def published_name(name: str, expert: int) -> str:
    """blk.0.ffn_up_exps.weight of expert 2: model.layers.0.mlp.experts.2.up_proj.weight"""
    parts = name.split(".")
    if parts[0] != "blk":
        return f"{END_NAMES[parts[0]]}.weight"
    part = LAYER_NAMES[parts[2].removesuffix("_exps")]
    if parts[2].endswith("_exps"):
        part = part.replace("mlp.", f"mlp.experts.{expert}.")
    return f"model.layers.{parts[1]}.{part}.weight"


def e4m3_values() -> np.ndarray:
    """Of the 127 finite codes without a sign, ascending."""
    code = np.arange(127)
    exponent, mantissa = code >> 3, code & 7
    return np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))


def to_bf16(values: np.ndarray) -> np.ndarray:
    """Bits, rounded to nearest even."""
    bits = values.astype("<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def quantize(weight: np.ndarray, powers_of_two: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, scales and dequantised values of a matrix; scales as they are on disk, E8M0 or fp32."""
    values = e4m3_values()
    rows, columns = weight.shape
    shape = (-(-rows // BLOCK), -(-columns // BLOCK))
    codes, dequantised = np.empty(weight.shape, np.uint8), np.empty(weight.shape, np.float64)
    scales = np.empty(shape, np.uint8 if powers_of_two else "<f4")
    for at in np.ndindex(shape):
        block = tuple(slice(i * BLOCK, (i + 1) * BLOCK) for i in at)
        largest = np.abs(weight[block]).max() / LARGEST
        scales[at] = 127 + np.ceil(np.log2(largest)) if powers_of_two else largest
        scale = 2.0 ** (float(scales[at]) - 127) if powers_of_two else np.float64(scales[at])
        magnitude = np.abs(weight[block]) / scale
        code = np.searchsorted((values[1:] + values[:-1]) / 2, magnitude)
        negative = weight[block] < 0
        codes[block] = code + 128 * negative
        dequantised[block] = np.where(negative, -1, 1) * values[code] * scale
    return codes, scales, dequantised


def config(model: Model) -> dict:
    fields = {"architectures": ["Qwen3MoeForCausalLM" if model.num_experts else "Qwen3ForCausalLM"],
              "model_type": "qwen3_moe" if model.num_experts else "qwen3", "vocab_size": model.vocab_size,
              "hidden_size": model.hidden_size, "intermediate_size": model.intermediate_size,
              "num_hidden_layers": model.num_layers, "num_attention_heads": model.num_heads,
              "num_key_value_heads": model.num_kv_heads, "head_dim": HEAD_DIM, "hidden_act": "silu",
              "max_position_embeddings": 512, "rms_norm_eps": RMS_EPS, "rope_theta": ROPE_BASE,
              "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    if model.num_experts:
        fields |= {"num_experts": model.num_experts, "num_experts_per_tok": model.num_experts_per_tok,
                   "moe_intermediate_size": model.intermediate_size, "norm_topk_prob": True}
    return fields | {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                             "weight_block_size": [BLOCK, BLOCK]}}


def write_safetensors(path: pathlib.Path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    header, data = {}, b""
    for name, (dtype, values) in tensors.items():
        begin = len(data)
        data += values.tobytes()
        header[name] = {"dtype": dtype, "shape": values.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_model(model: Model, seed: int, folder: pathlib.Path) -> list[int]:
    random = np.random.default_rng(seed)
    on_disk: dict[str, tuple[str, np.ndarray]] = {}
    weights: dict[str, np.ndarray] = {}
    powers_of_two = model.num_experts > 0
    for name, weight in random_weights(model, random).items():
        if not name.startswith("blk.") or weight.ndim == 1 or "ffn_gate_inp" in name:
            bits = to_bf16(weight)
            on_disk[published_name(name, 0)] = "BF16", bits
            weights[name] = (bits.astype("<u4") << 16).view("<f4").astype(np.float64)
            continue
        dequantised = []
        for expert, matrix in enumerate(weight.reshape(-1, *weight.shape[-2:])):
            codes, scales, values = quantize(matrix.astype(np.float64), powers_of_two)
            published = published_name(name, expert)
            on_disk[published] = "F8_E4M3", codes
            on_disk[f"{published}_scale_inv"] = "F8_E8M0" if powers_of_two else "F32", scales
            dequantised.append(values)
        weights[name] = np.stack(dequantised).reshape(weight.shape)
    tokens = choose_tokens(model, weights, random)
    out = folder / model.name
    out.mkdir(parents=True, exist_ok=True)
    write_safetensors(out / "model.safetensors", on_disk)
    (out / "config.json").write_text(json.dumps(config(model), indent=1) + "\n")
    Forward(model, weights, tokens).logits.astype("<f4").tofile(out / "logits")
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    lines = [f"{json.dumps(model.name)}: {json.dumps(make_model(model, 2026 + i, folder))}" for i, model in enumerate(MODELS)]
    (folder / "fp8_models.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
