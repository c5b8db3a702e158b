"""Writes a tiny llama model, or a gemma3 one with a sliding window, with a byte-level tokenizer as a GGUF file: random
weights, one token a byte, and three control tokens. What it says is noise, but it says it through every part of the
program."""
import json
import pathlib
import random
import struct

CONTEXT_LENGTH = 1 << 24
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE = 32, 2, 8, 8, 64, 64

CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
                 "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
                 "{% endif %}")

UINT32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5
TENSOR_F32, TENSOR_I32, ALIGNMENT = 0, 26, 32
NORMAL, CONTROL = 1, 3


def byte_alphabet() -> list[str]:
    """The character that stands for each byte in byte-level BPE vocabularies (GPT-2's table)."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in visible else chr(next(others)) for byte in range(256)]


def token_id(text: str) -> int:
    """The id of a control token, or of a single byte."""
    return CONTROL_TOKENS.index(text) if text in CONTROL_TOKENS else len(CONTROL_TOKENS) + text.encode()[0]


def encode(text: str) -> list[int]:
    """What the tokenizer must give for text without control tokens: its bytes."""
    return [len(CONTROL_TOKENS) + byte for byte in text.encode()]


def string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def array(kind: int, packed: list[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(packed)) + b"".join(packed)


def metadata(chat_template: str | None, window: int | None) -> list[tuple[str, int, bytes]]:
    tokens = CONTROL_TOKENS + byte_alphabet()
    types = [CONTROL] * len(CONTROL_TOKENS) + [NORMAL] * 256

    def uint32(value: int) -> tuple[int, bytes]:
        return UINT32, struct.pack("<I", value)

    entries = {
        "general.architecture": (STRING, string("llama" if window is None else "gemma3")),
        "llama.block_count": uint32(LAYERS),
        "llama.context_length": uint32(CONTEXT_LENGTH),
        "llama.embedding_length": uint32(HIDDEN),
        "llama.feed_forward_length": uint32(INTERMEDIATE),
        "llama.attention.head_count": uint32(HEADS),
        "llama.attention.head_count_kv": uint32(KV_HEADS),
        "llama.attention.key_length": uint32(HEAD_DIM),
        "llama.attention.value_length": uint32(HEAD_DIM),
        "llama.attention.layer_norm_rms_epsilon": (FLOAT32, struct.pack("<f", 1e-5)),
        "llama.rope.dimension_count": uint32(HEAD_DIM),
        "llama.rope.freq_base": (FLOAT32, struct.pack("<f", 10000.0)),
        "llama.vocab_size": uint32(len(tokens)),
        "tokenizer.ggml.model": (STRING, string("gpt2")),
        "tokenizer.ggml.pre": (STRING, string("smollm")),
        "tokenizer.ggml.tokens": (ARRAY, array(STRING, [string(token) for token in tokens])),
        "tokenizer.ggml.token_type": (ARRAY, array(INT32, [struct.pack("<i", kind) for kind in types])),
        "tokenizer.ggml.merges": (ARRAY, array(STRING, [])),
        "tokenizer.ggml.bos_token_id": uint32(token_id("<|im_start|>")),
        "tokenizer.ggml.eos_token_id": uint32(token_id("<|im_end|>")),
        "tokenizer.ggml.add_bos_token": (BOOL, b"\0"),
    }
    if chat_template is not None:
        entries["tokenizer.chat_template"] = (STRING, string(chat_template))
    if window is not None:  # in the first of the two layers
        entries = {key.replace("llama.", "gemma3."): entry for key, entry in entries.items()}
        entries["gemma3.attention.sliding_window"] = uint32(window)
        entries["gemma3.attention.sliding_window_pattern"] = uint32(LAYERS)
    return [(key, kind, value) for key, (kind, value) in entries.items()]


def tensor_shapes(window: int | None = None) -> dict[str, tuple[int, ...]]:
    """Names and shapes in PyTorch order."""
    shapes = {"token_embd.weight": (len(CONTROL_TOKENS) + 256, HIDDEN), "output_norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (HIDDEN,),
            f"blk.{layer}.attn_q.weight": (HEADS * HEAD_DIM, HIDDEN),
            f"blk.{layer}.attn_k.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"blk.{layer}.attn_v.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"blk.{layer}.attn_output.weight": (HIDDEN, HEADS * HEAD_DIM),
            f"blk.{layer}.ffn_norm.weight": (HIDDEN,),
            f"blk.{layer}.ffn_gate.weight": (INTERMEDIATE, HIDDEN),
            f"blk.{layer}.ffn_up.weight": (INTERMEDIATE, HIDDEN),
            f"blk.{layer}.ffn_down.weight": (HIDDEN, INTERMEDIATE),
        }
        if window is not None:
            shapes |= {
                f"blk.{layer}.attn_q_norm.weight": (HEAD_DIM,),
                f"blk.{layer}.attn_k_norm.weight": (HEAD_DIM,),
                f"blk.{layer}.post_attention_norm.weight": (HIDDEN,),
                f"blk.{layer}.post_ffw_norm.weight": (HIDDEN,),
            }
    return shapes


def parameters() -> int:
    total = 0
    for shape in tensor_shapes().values():
        total += shape[0] * (shape[1] if len(shape) == 2 else 1)
    return total


def tensor_values(generator: random.Random, shape: tuple[int, ...]) -> list[float]:
    if len(shape) == 1:
        return [1.0] * shape[0]
    return [generator.gauss(0, shape[1] ** -0.5) for _ in range(shape[0] * shape[1])]


def model_bytes(chat_template: str | None = CHAT_TEMPLATE, window: int | None = None,
                indices: list[int] | None = None) -> bytes:
    """The whole file. The same bytes every time. `window`: the sliding window of a gemma3 model, None: a llama one;
    `indices`: the elements of a tensor of that name, None: there is none."""
    generator = random.Random(1)
    entries = metadata(chat_template, window)
    shapes = tensor_shapes(window)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(shapes) + (indices is not None), len(entries))
    for key, kind, value in entries:
        header += string(key) + struct.pack("<I", kind) + value
    data = b""
    for name, shape in shapes.items():
        elements = shape[0] * (shape[1] if len(shape) == 2 else 1)
        values = tensor_values(generator, shape)
        header += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        header += struct.pack("<IQ", TENSOR_F32, len(data))
        data += struct.pack(f"<{elements}f", *values)
        data += bytes(-len(data) % ALIGNMENT)
    if indices is not None:
        header += string("indices") + struct.pack("<IQIQ", 1, len(indices), TENSOR_I32, len(data))
        data += struct.pack(f"<{len(indices)}i", *indices)
        data += bytes(-len(data) % ALIGNMENT)
    return header + bytes(-len(header) % ALIGNMENT) + data


PUBLISHED_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "attn_norm": "input_layernorm",
                   "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
                   "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
                   "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def published_tensor(name: str, values: list[float]) -> tuple[str, list[float]]:
    """A tensor of the llama file as its lab would publish it: q and k rows of each head in half-split order."""
    *layer, kind, weight = name.split(".")
    if kind in ("attn_q", "attn_k"):
        rows = [values[begin:begin + HIDDEN] for begin in range(0, len(values), HIDDEN)]
        values = [value for head in range(0, len(rows), HEAD_DIM) for side in (0, 1)
                  for row in rows[head + side:head + HEAD_DIM:2] for value in row]
    prefix = f"model.layers.{layer[1]}." if layer else ""
    return f"{prefix}{PUBLISHED_NAMES[kind]}.{weight}", values


def published_bytes(name: str, shape: tuple[int, ...], values: list[float], fp8: bool) -> list[tuple[str, str, list, bytes]]:
    """Names, dtypes, shapes and bytes of the tensors that hold one. `fp8`: matrices of layers are random codes of e4m3
    with one scale."""
    if not fp8 or len(shape) == 1 or "layers" not in name:
        return [(name, "F32", list(shape), struct.pack(f"<{len(values)}f", *values))]
    codes = bytes((index * 7919 + len(values)) % 127 | (128 if value < 0 else 0) for index, value in enumerate(values))
    scale = struct.pack("<f", shape[1] ** -0.5 / 100)
    return [(name, "F8_E4M3", list(shape), codes), (name + "_scale", "F32", [1], scale)]


def write_directory(directory: pathlib.Path, fp8: bool = False) -> None:
    """The llama model as a Hugging Face directory, or one of its shape in FP8."""
    directory.mkdir(exist_ok=True)
    for old in directory.iterdir():
        old.unlink()
    generator = random.Random(1)
    header, data = {}, b""
    for gguf_name, shape in tensor_shapes().items():
        name, values = published_tensor(gguf_name, tensor_values(generator, shape))
        for part, dtype, dims, packed in published_bytes(name, shape, values, fp8):
            header[part] = {"dtype": dtype, "shape": dims, "data_offsets": [len(data), len(data) + len(packed)]}
            data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    tokens = CONTROL_TOKENS + byte_alphabet()
    added = [{"id": i, "content": token, "special": True, "normalized": False} for i, token in enumerate(CONTROL_TOKENS)]
    files = {
        "config.json": {"model_type": "llama", "vocab_size": len(tokens), "hidden_size": HIDDEN,
                        "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
                        "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "max_position_embeddings": CONTEXT_LENGTH,
                        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True},
        "tokenizer.json": {"added_tokens": added, "decoder": {"type": "ByteLevel"},
                           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
                           "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": []}},
        "tokenizer_config.json": {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "chat_template": CHAT_TEMPLATE},
    }
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content))
