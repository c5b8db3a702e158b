#!/usr/bin/env python3
"""Writes the inputs that the fuzz targets of the readers start from: tests/fuzz/seeds/<target>/*. They are committed;
run this only to change them. Needs the gguf package."""
import json
import pathlib
import struct

import gguf
import numpy as np

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"
HIDDEN = 4


def gguf_seed(name, architecture, tensors, settle=lambda writer: None):
    writer = gguf.GGUFWriter(SEEDS / "gguf_fuzz" / f"{name}.gguf", architecture)
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(2)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    settle(writer)
    for tensor, shape in tensors.items():
        writer.add_tensor(tensor, np.ones(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def yarn_and_tokenizer(writer):
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(2.0)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["a", "b"])
    writer.add_token_scores([0.0, 1.0])
    writer.add_token_types([1, 3])
    writer.add_bos_token_id(1)


def experts(writer):
    writer.add_expert_count(2)
    writer.add_expert_used_count(1)


def gemma(writer):
    writer.add_sliding_window(8)
    writer.add_array("gemma3.attention.sliding_window_pattern", [True])
    writer.add_custom_alignment(64)


def safetensors_seed(name, tensors):
    header, data = {}, b""
    for tensor, (dtype, shape, content) in tensors.items():
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    (SEEDS / "safetensors_fuzz" / name).write_bytes(struct.pack("<Q", len(text)) + text + data)


def config_seed(name, config):
    (SEEDS / "config_fuzz" / name).write_text(json.dumps(config))


def tokenizer_seed(name, vocab, **parts):
    tokenizer = {"added_tokens": [{"id": 40, "content": "<s>", "special": True, "normalized": False},
                                  {"id": 41, "content": "[X]", "lstrip": True, "rstrip": True, "single_word": True}],
                 "model": {"type": "BPE", "vocab": {token: index for index, token in enumerate(vocab)},
                           "merges": [["a", "b"], ["ab", "c"]], "unk_token": "a", "fuse_unk": True},
                 "post_processor": {"type": "TemplateProcessing", "special_tokens": {"<s>": {"ids": [40]}},
                                    "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}}
    tokenizer["model"] |= parts.pop("model", {})
    (SEEDS / "tokenizer_json_fuzz" / name).write_text(json.dumps(tokenizer | parts, separators=(",", ":")))


def main():
    for target in ("gguf_fuzz", "safetensors_fuzz", "config_fuzz", "tokenizer_json_fuzz"):
        (SEEDS / target).mkdir(parents=True, exist_ok=True)
    embeddings = {"token_embd.weight": (2, HIDDEN)}
    gguf_seed("llama", "llama", embeddings | {"blk.0.attn_q.weight": (4, HIDDEN), "blk.0.attn_k.bias": (2,),
                                              "rope_freqs.weight": (1,)}, yarn_and_tokenizer)
    gguf_seed("qwen3moe", "qwen3moe", embeddings | {"blk.0.ffn_gate_up_exps.weight": (2, 4, HIDDEN),
                                                    "blk.0.ffn_down_exps.weight": (2, HIDDEN, 2),
                                                    "blk.0.attn_qkv.weight": (8, HIDDEN)}, experts)
    gguf_seed("gemma3", "gemma3", embeddings | {"blk.0.ffn_norm.weight": (HIDDEN,)}, gemma)

    safetensors_seed("experts", {"model.norm.weight": ("BF16", [2], b"abcd"),
                                 "model.layers.0.mlp.experts.gate_up_proj": ("F32", [2, 2, 1], bytes(16)),
                                 "scalar": ("I64", [], bytes(8))})
    safetensors_seed("unaligned", {"language_model.model.embed_tokens.weight": ("U8", [1], b"a"),
                                   "b": ("F16", [1, 1], b"bb")})

    config_seed("nested", {"model_type": "gemma3", "text_config": {
        "hidden_size": 8, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}, "layer_types": ["full_attention"]}})
    config_seed("flat", {"model_type": "qwen3_moe", "num_local_experts": 4, "mlp_only_layers": [1], "dtype": "bfloat16",
                         "rope_scaling": {"type": "yarn", "factor": 4.0}, "use_sliding_window": False,
                         "sliding_window": None})

    tokenizer_seed("bytes", ["a", "b", "c", "ab", "abc", "\u0120", "\u0120a"], model={"ignore_merges": True},
                   normalizer={"type": "NFC"}, decoder={"type": "ByteLevel"},
                   pre_tokenizer={"type": "Sequence", "pretokenizers": [
                       {"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|\\p{L}+"}, "behavior": "Isolated"},
                       {"type": "Digits", "individual_digits": True},
                       {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]})
    tokenizer_seed("characters", ["a", "b", "c", "ab", "abc", "\u2581", "<0xC3>", "<0xA9>"],
                   model={"byte_fallback": True, "merges": ["a b", "ab c"]},
                   normalizer={"type": "Sequence", "normalizers": [
                       {"type": "Prepend", "prepend": "\u2581"},
                       {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
                   pre_tokenizer={"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"},
                   decoder={"type": "Sequence", "decoders": [
                       {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                       {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})

    pieces = ["<s>", "<unk>", "a", "b", "ab", "\u2581", "\u2581a", "<0xC3>", "<0xA9>"]
    tokenizer_seed("unigram", pieces, added_tokens=[{"id": 0, "content": "<s>", "special": True, "normalized": False},
                                                    {"id": 9, "content": "[X]", "lstrip": True, "rstrip": True}],
                   model={"type": "Unigram", "unk_id": 1, "byte_fallback": True,
                          "vocab": [[piece, -float(index)] for index, piece in enumerate(pieces)]},
                   normalizer={"type": "Sequence", "normalizers": [
                       {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Strip", "strip_right": False},
                       {"type": "Precompiled", "precompiled_charsmap": "CAAAAAEAAAACAAAAYgA="},
                       {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
                   pre_tokenizer={"type": "Sequence", "pretokenizers": [
                       {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}]},
                   decoder={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"},
                   post_processor={"type": "ByteLevel"})


if __name__ == "__main__":
    main()
