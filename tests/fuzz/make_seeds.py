#!/usr/bin/env python3
"""Writes the inputs that the fuzz targets of the readers start from: tests/fuzz/seeds/<target>/*. They are committed;
run this only to change them. Needs the gguf and xxhash packages."""
import json
import pathlib
import struct

import gguf
import numpy as np
import xxhash

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


def safetensors(tensors):
    header, data = {}, b""
    for tensor, (dtype, shape, content) in tensors.items():
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors_seed(name, tensors):
    (SEEDS / "safetensors_fuzz" / name).write_bytes(safetensors(tensors))


# In the order of directory_fuzz.cpp.
DIRECTORY_FILES = ["config.json", "model.safetensors", "model.safetensors.index.json", "a.safetensors", "b.safetensors",
                   "tokenizer.json", "tokenizer_config.json", "generation_config.json", "special_tokens_map.json",
                   "chat_template.json", "modules.json", "1_Pooling/config.json"]


def directory_seed(name, files):
    parts = []
    for file, content in files.items():
        content = content if isinstance(content, bytes) else json.dumps(content, separators=(",", ":")).encode()
        parts.append(struct.pack("<BI", DIRECTORY_FILES.index(file), len(content)) + content)
    (SEEDS / "directory_fuzz" / name).write_bytes(b"".join(parts))


def small_directory_model(model_type, experts=0):
    """The configuration and BF16 tensors of one layer, sizes of 2 and HIDDEN."""
    config = {"model_type": model_type, "vocab_size": 2, "hidden_size": HIDDEN, "intermediate_size": 2,
              "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 2,
              "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [2, HIDDEN], "model.norm.weight": [HIDDEN],
              layer + "input_layernorm.weight": [HIDDEN], layer + "post_attention_layernorm.weight": [HIDDEN],
              layer + "self_attn.q_proj.weight": [4, HIDDEN], layer + "self_attn.k_proj.weight": [2, HIDDEN],
              layer + "self_attn.v_proj.weight": [2, HIDDEN], layer + "self_attn.o_proj.weight": [HIDDEN, 4]}
    if model_type != "llama":
        shapes |= {layer + "self_attn.q_norm.weight": [2], layer + "self_attn.k_norm.weight": [2]}
    if model_type == "gemma3_text":
        config |= {"sliding_window": 8, "sliding_window_pattern": 2}
        shapes |= {layer + "pre_feedforward_layernorm.weight": [HIDDEN],
                   layer + "post_feedforward_layernorm.weight": [HIDDEN]}
    if experts:
        config |= {"num_experts": experts, "num_experts_per_tok": 1, "moe_intermediate_size": 2}
        shapes |= {layer + "mlp.gate.weight": [experts, HIDDEN], layer + "mlp.experts.gate_up_proj": [experts, 4, HIDDEN],
                   layer + "mlp.experts.down_proj": [experts, HIDDEN, 2]}
    else:
        shapes |= {layer + "mlp.gate_proj.weight": [2, HIDDEN], layer + "mlp.up_proj.weight": [2, HIDDEN],
                   layer + "mlp.down_proj.weight": [HIDDEN, 2]}
    return config, {name: ("BF16", shape, bytes(2 * int(np.prod(shape)))) for name, shape in shapes.items()}


def directory_seeds():
    config, tensors = small_directory_model("llama")
    config["rope_scaling"] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 32}
    tokenizer = json.loads((SEEDS / "tokenizer_json_fuzz" / "bytes").read_text())
    directory_seed("llama", {"config.json": config, "model.safetensors": safetensors(tensors), "tokenizer.json": tokenizer,
                             "tokenizer_config.json": {"bos_token": "<s>", "add_bos_token": True, "chat_template": "a"},
                             "generation_config.json": {"eos_token_id": [1, 2], "temperature": 0.6, "top_k": 20,
                                                        "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1},
                             "special_tokens_map.json": {"eos_token": {"content": "a"}, "pad_token": "b"},
                             "chat_template.json": {"chat_template": "b"}})
    config, tensors = small_directory_model("qwen3_moe", experts=2)
    names = sorted(tensors)
    shard_of = {name: "ab"[i % 2] + ".safetensors" for i, name in enumerate(names)}
    shards = {shard: safetensors({name: tensors[name] for name in names if shard_of[name] == shard})
              for shard in ("a.safetensors", "b.safetensors")}
    directory_seed("shards", {"config.json": config, "model.safetensors.index.json": {"weight_map": shard_of}} | shards)
    config, tensors = small_directory_model("gemma3_text")
    modules = [{"idx": index, "name": str(index), "path": path, "type": "sentence_transformers.models." + kind}
               for index, (kind, path) in enumerate([("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")])]
    directory_seed("gemma3", {"config.json": config, "model.safetensors": safetensors(tensors), "modules.json": modules,
                              "1_Pooling/config.json": {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}})
    config, tensors = small_directory_model("qwen3")
    scales_shapes = iter([[1, 1], [], [1, 1, 1, 1], [HIDDEN, 1], [2], [2, 1], [1]])
    for name in [name for name in tensors if "_proj" in name]:
        shape, scales_shape = tensors[name][1], next(scales_shapes)
        tensors[name] = ("F8_E4M3", shape, bytes(int(np.prod(shape))))
        scales = np.ones(scales_shape, dtype=np.float32)
        tensors[name + ("_scale_inv" if scales_shape == [1, 1] else "_scale")] = ("F32", scales_shape, scales.tobytes())
    config["quantization_config"] = {"weight_block_size": [128, 128]}
    directory_seed("fp8", {"config.json": config, "model.safetensors": safetensors(tensors)})


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


def session_seed(name, tokens):
    """A session of the target's model: one full and one sliding kind of a layer, a head and two dimensions."""
    kinds = [struct.pack("<4q", 1, 1, 2, window) for window in (0, 100)]
    layout = xxhash.xxh3_64_intdigest(struct.pack("<I", 0) + b"".join(kinds))
    block = bytes(2 * 2 * 128 * 2)
    places = [(kind, index) for kind in (0, 1) for index in range((tokens + 127) // 128)]
    index = struct.pack(f"<{tokens}i", *(i % 64 for i in range(tokens))) + struct.pack("<q", tokens)
    for kind, number in places:
        index += struct.pack("<IIQ", kind, number, xxhash.xxh3_64_intdigest(block))
    index += bytes(-(104 + len(index)) % 4096)
    header = struct.pack("<8sIIQQQQQQQQQQ", b"eiderkvs", 1, 2, 1, 2, layout, 0, 0, tokens, 1, len(places),
                         104 + len(index) + len(places) * len(block), xxhash.xxh3_64_intdigest(index))
    header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
    (SEEDS / "session_file_fuzz" / f"{name}.eiderkv").write_bytes(header + index + len(places) * block)


def connection_seed(name, *requests, read=63, write=63, leaves=False, stops=False):
    """Bytes of a client: at most so many to a read and a write but one, whether it leaves and the server stops."""
    (SEEDS / "http_connection_fuzz" / name).write_bytes(bytes((read, write, leaves + 2 * stops)) + b"".join(requests))


def connection_seeds():
    head = b"POST /x HTTP/1.1\r\nhost: h\r\n"
    get = b"GET /%s HTTP/1.1\r\nhost: h\r\n\r\n"
    chunks = head + b"transfer-encoding: chunked\r\n\r\n%s"
    connection_seed("pipelined", get % b"a", get % b"s", head + b"content-length: 2\r\n\r\nab", get % b"n", get % b"a", read=6)
    connection_seed("lengths", head + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", get % b"a")
    connection_seed("two_lengths", head + b"content-length: 5\r\ncontent-length: 5\r\n\r\nabcde", get % b"a")
    connection_seed("two_codings", head + b"transfer-encoding:\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", get % b"a")
    connection_seed("gzip", head + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", read=1)
    connection_seed("chunks", chunks % b"3;a=b\r\nabc\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\ntrailer: a\r\n\r\n", get % b"s", read=2)
    connection_seed("bad_chunk", chunks % b"3\r\nabcd\r\n0\r\n\r\n", get % b"a")
    connection_seed("bad_chunk_size", chunks % b"fffffffffffffffff\r\n", leaves=True)
    connection_seed("endless_header", head + b"x: y\r\n" * 100)
    connection_seed("large_body", head + b"content-length: 99999\r\n\r\nabc")
    connection_seed("expects", head + b"content-length: 2\r\nexpect: 100-continue\r\n\r\nab", write=3)
    connection_seed("refused", b"POST /no HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc", get % b"a")
    connection_seed("old", b"GET /s HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", b"HEAD /s HTTP/1.0\r\n\r\n", leaves=True)
    connection_seed("dropped", get % b"c", get % b"d", stops=True)
    connection_seed("waits", get % b"w", get % b"a", leaves=True, read=9)


def main():
    for target in ("gguf_fuzz", "safetensors_fuzz", "config_fuzz", "tokenizer_json_fuzz",
                   "directory_fuzz", "session_file_fuzz", "http_connection_fuzz"):
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

    directory_seeds()
    session_seed("short", 3)
    connection_seeds()


if __name__ == "__main__":
    main()
