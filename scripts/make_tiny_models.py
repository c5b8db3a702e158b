#!/usr/bin/env python3
"""Makes tiny qwen3 and qwen3moe models in llama.cpp's quantised formats, with reference logits.

  make_tiny_models.py --quantize LLAMA_QUANTIZE --logits LLAMA_LOGITS [--every-format] FOLDER

Random weights are quantised by llama.cpp's llama-quantize, every matrix in the type that is wanted of it, with an
importance matrix from a run over random tokens. NAME.logits holds float32 [tokens, vocab_size]: the dequantised model's,
computed here in float64. models.json holds the tokens and how far llama.cpp's own logits are from these (LLAMA_LOGITS is
tests/data/tiny/llama_logits.cpp, linked with libllama). Without --every-format: the files of tests/data/tiny, which mix
the types of a family; with it, one dense and one mixture-of-experts model for each type, all its matrices in that type.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import tempfile

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

HEAD_DIM = 64
RMS_EPS, ROPE_BASE = 1e-6, 1e4
IMATRIX_TOKENS = 256

# A router's score must be this far from the last pick's, in standard deviations of the scores: rounding must not decide.
PICK_MARGIN = 0.2

BEFORE = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
NEW = ["Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "IQ3_XXS", "IQ3_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M", "TQ1_0",
       "TQ2_0", "MXFP4", "NVFP4", "Q1_0"]


@dataclasses.dataclass(frozen=True)
class Model:
    """Its matrices take the types in turn."""
    name: str
    types: tuple[str, ...]
    hidden_size: int = 256
    num_layers: int = 1
    num_heads: int = 4
    num_kv_heads: int = 1
    intermediate_size: int = 256
    num_experts: int = 0  # 0: dense
    num_experts_per_tok: int = 2
    vocab_size: int = 32
    prompt_tokens: int = 48

    @property
    def architecture(self) -> str:
        return "qwen3moe" if self.num_experts else "qwen3"

    def layer_matrices(self) -> dict[str, tuple[int, ...]]:
        q, kv = self.num_heads * HEAD_DIM, self.num_kv_heads * HEAD_DIM
        inner, h = self.intermediate_size, self.hidden_size
        experts, suffix = ((self.num_experts,), "_exps") if self.num_experts else ((), "")
        return {"attn_q": (q, h), "attn_k": (kv, h), "attn_v": (kv, h), "attn_output": (h, q),
                f"ffn_gate{suffix}": (*experts, inner, h), f"ffn_up{suffix}": (*experts, inner, h),
                f"ffn_down{suffix}": (*experts, h, inner)}

    def matrices(self) -> dict[str, tuple[int, ...]]:
        """Shapes, in PyTorch order, of all that is quantised."""
        ends = (self.vocab_size, self.hidden_size)
        shapes = {"token_embd.weight": ends, "output.weight": ends}
        for layer in range(self.num_layers):
            shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in self.layer_matrices().items()}
        return shapes

    def matrix_types(self) -> dict[str, str]:
        return {name: self.types[i % len(self.types)] for i, name in enumerate(self.matrices())}


# What fits into a few kilobytes: a superblock's 256 columns need a down projection of at least that width.
REPOSITORY_MODELS = [
    Model("q2_k_q3_k", ("Q2_K", "Q3_K"), num_experts=2),
    Model("iq4_xs_iq3", ("IQ4_XS", "IQ3_S", "IQ3_XXS"), num_experts=2),
    Model("iq2", ("IQ2_S", "IQ2_XS", "IQ2_XXS"), num_experts=2),
    Model("iq1", ("IQ1_S", "IQ1_M"), num_experts=2),
    Model("tq", ("TQ1_0", "TQ2_0"), num_experts=2),
    Model("iq4_nl_mxfp4_nvfp4", ("IQ4_NL", "MXFP4", "NVFP4"), num_heads=1, intermediate_size=64, num_experts=3),
    Model("q1_0", ("Q1_0",), num_heads=2, intermediate_size=128, num_experts=3),
]


def every_format() -> list[Model]:
    larger = {"num_layers": 2, "num_kv_heads": 2, "vocab_size": 128, "prompt_tokens": 96}
    models = []
    for name in BEFORE + NEW:
        models.append(Model(f"dense_{name}", (name,), intermediate_size=512, **larger))
        models.append(Model(f"moe_{name}", (name,), num_experts=8, **larger))
    return models


def random_weights(model: Model, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal numbers whose rows and columns have spreads of their own; a few rows are outliers."""
    weights = {}
    for name, shape in model.matrices().items():
        rows, columns = shape[-2], shape[-1]
        row_scale = np.exp(0.3 * random.standard_normal((*shape[:-1], 1)))
        row_scale[..., random.integers(0, rows, max(1, rows // 64)), :] *= 2
        column_scale = np.exp(0.2 * random.standard_normal(columns))
        spread = 1.0 if name == "token_embd.weight" else 1.2 / np.sqrt(columns)
        weights[name] = spread * row_scale * column_scale * random.standard_normal(shape)

    def norm(size: int) -> np.ndarray:
        return 1 + 0.1 * random.standard_normal(size)

    weights["output_norm.weight"] = norm(model.hidden_size)
    for layer in range(model.num_layers):
        for name, size in {"attn_norm": model.hidden_size, "ffn_norm": model.hidden_size, "attn_q_norm": HEAD_DIM,
                           "attn_k_norm": HEAD_DIM}.items():
            weights[f"blk.{layer}.{name}.weight"] = norm(size)
        if model.num_experts:
            router = random.standard_normal((model.num_experts, model.hidden_size)) / np.sqrt(model.hidden_size)
            weights[f"blk.{layer}.ffn_gate_inp.weight"] = router
    return {name: values.astype(np.float32) for name, values in weights.items()}


def write_model(path: pathlib.Path, model: Model, weights: dict[str, np.ndarray]) -> None:
    writer = gguf.GGUFWriter(path, model.architecture)
    writer.add_block_count(model.num_layers)
    writer.add_context_length(512)
    writer.add_embedding_length(model.hidden_size)
    writer.add_feed_forward_length(model.intermediate_size)
    writer.add_head_count(model.num_heads)
    writer.add_head_count_kv(model.num_kv_heads)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(RMS_EPS)
    writer.add_rope_freq_base(ROPE_BASE)
    if model.num_experts:
        writer.add_expert_count(model.num_experts)
        writer.add_expert_used_count(model.num_experts_per_tok)
        writer.add_expert_feed_forward_length(model.intermediate_size)
    tokens = [chr(0x100 + i) for i in range(model.vocab_size - 1)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens + [tokens[0] + tokens[1]])
    writer.add_token_types([gguf.TokenType.NORMAL] * model.vocab_size)
    writer.add_token_merges([f"{tokens[0]} {tokens[1]}"])
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def dequantize(data: np.ndarray, kind: Type) -> np.ndarray:
    if kind != Type.Q1_0:
        return gguf.quants.dequantize(data, kind)
    # The package does not know these yet: a half d, then 128 bits, lowest first; 1 is d and 0 is -d.
    blocks = data.reshape(*data.shape[:-1], -1, 18)
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    bits = np.unpackbits(blocks[..., 2:], axis=-1, bitorder="little")
    return np.where(bits == 1, scales, -scales).reshape(*data.shape[:-1], -1)


def read_model(path: pathlib.Path, model: Model) -> dict[str, np.ndarray]:
    """The dequantised weights of a file whose matrices have the types that were asked for."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    for name, wanted in model.matrix_types().items():
        found = tensors[name].tensor_type.name
        if found != wanted:
            raise SystemExit(f"{path}: {name} is {found}, not {wanted}")
    return {name: np.array(dequantize(np.array(tensor.data), tensor.tensor_type), np.float64)
            for name, tensor in tensors.items()}


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float64(np.float32(RMS_EPS))) * weight


def rope(x: np.ndarray) -> np.ndarray:
    """[tokens, heads, HEAD_DIM]; dimension i turns with dimension i + HEAD_DIM / 2."""
    half = HEAD_DIM // 2
    angle = np.arange(len(x))[:, None, None] * ROPE_BASE ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Forward:
    """One run over a prompt, in float64. `squares`: of each matrix, sums of squares of its inputs' columns and how many
    inputs it had, by expert; `pick_margins`: for each token the smallest difference, in standard deviations of the
    scores, of the last expert picked and the next."""

    def __init__(self, model: Model, weights: dict[str, np.ndarray], tokens: np.ndarray) -> None:
        self.model, self.weights = model, weights
        self.squares: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.pick_margins = np.full(len(tokens), np.inf)
        x = weights["token_embd.weight"][tokens].astype(np.float64)
        for layer in range(model.num_layers):
            self.prefix = f"blk.{layer}."
            x = x + self.attention(rms_norm(x, self.weight("attn_norm")))
            y = rms_norm(x, self.weight("ffn_norm"))
            x = x + (self.experts(y) if model.num_experts else self.feed_forward(y))
        self.prefix = ""
        self.logits = self.product("output", rms_norm(x, self.weight("output_norm")))

    def weight(self, name: str) -> np.ndarray:
        return self.weights[f"{self.prefix}{name}.weight"]

    def product(self, name: str, x: np.ndarray, expert: int | None = None) -> np.ndarray:
        weight = self.weight(name)
        count, at = (1, 0) if expert is None else (self.model.num_experts, expert)
        empty = np.zeros((count, x.shape[-1])), np.zeros((count, 1))
        sums, counts = self.squares.setdefault(f"{self.prefix}{name}.weight", empty)
        sums[at] += (x * x).sum(0)
        counts[at] += len(x)
        return x @ (weight if expert is None else weight[expert]).T

    def attention(self, x: np.ndarray) -> np.ndarray:
        model, tokens = self.model, len(x)
        q, k, v = (self.product(name, x).reshape(tokens, -1, HEAD_DIM) for name in ("attn_q", "attn_k", "attn_v"))
        q = rope(rms_norm(q, self.weight("attn_q_norm")))
        k = rope(rms_norm(k, self.weight("attn_k_norm")))
        group = model.num_heads // model.num_kv_heads
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(HEAD_DIM)
        scores[:, np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
        return self.product("attn_output", np.einsum("hij,jhd->ihd", softmax(scores), v).reshape(tokens, -1))

    def feed_forward(self, x: np.ndarray, suffix: str = "", expert: int | None = None) -> np.ndarray:
        gate = self.product(f"ffn_gate{suffix}", x, expert)
        up = self.product(f"ffn_up{suffix}", x, expert)
        return self.product(f"ffn_down{suffix}", gate / (1 + np.exp(-gate)) * up, expert)

    def experts(self, x: np.ndarray) -> np.ndarray:
        scores = x @ self.weight("ffn_gate_inp").T
        used = self.model.num_experts_per_tok
        order = np.argsort(-scores, -1)
        if used < self.model.num_experts:
            ranked = np.take_along_axis(scores, order, -1)
            margins = (ranked[:, used - 1] - ranked[:, used]) / scores.std()
            self.pick_margins = np.minimum(self.pick_margins, margins)
        picks = np.sort(order[:, :used], -1)
        shares = softmax(np.take_along_axis(scores, picks, -1))
        out = np.zeros_like(x)
        for expert in range(self.model.num_experts):
            rows, columns = np.nonzero(picks == expert)
            if len(rows) > 0:
                out[rows] += shares[rows, columns, None] * self.feed_forward(x[rows], "_exps", expert)
        return out


def write_imatrix(path: pathlib.Path, model: Model, weights: dict[str, np.ndarray], random: np.random.Generator) -> None:
    """What llama-imatrix would write after a run over random tokens."""
    tokens = random.integers(0, model.vocab_size, IMATRIX_TOKENS)
    squares = Forward(model, weights, tokens).squares
    # The tool needs one of the embeddings too in some types: all columns alike.
    squares["token_embd.weight"] = (np.ones((1, model.hidden_size)), np.ones((1, 1)))
    writer = gguf.GGUFWriter(path, "imatrix")
    writer.add_type(gguf.GGUFType.IMATRIX)
    writer.add_array("imatrix.datasets", ["random tokens"])
    writer.add_uint32("imatrix.chunk_count", 1)
    writer.add_uint32("imatrix.chunk_size", IMATRIX_TOKENS)
    for name, (sums, counts) in squares.items():
        writer.add_tensor(f"{name}.in_sum2", sums.astype(np.float32))
        writer.add_tensor(f"{name}.counts", counts.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def choose_tokens(model: Model, weights: dict[str, np.ndarray], random: np.random.Generator) -> list[int]:
    """A random prompt in which no pick of an expert is a close one."""
    tokens = random.integers(0, model.vocab_size, model.prompt_tokens)
    for _ in range(1000):
        close = Forward(model, weights, tokens).pick_margins < PICK_MARGIN
        if not close.any():
            return tokens.tolist()
        tokens[close] = random.integers(0, model.vocab_size, close.sum())
    raise SystemExit(f"{model.name}: every prompt has a close pick; another seed?")


def run(command: list[str], folder: pathlib.Path) -> None:
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {finished.stderr[-2000:]}")


def make_model(model: Model, seed: int, tools: argparse.Namespace, folder: pathlib.Path) -> dict:
    random = np.random.default_rng(seed)
    out = (folder / f"{model.name}.gguf").resolve()
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)  # the tools run in it: a file remembers its imatrix by the path given
        weights = random_weights(model, random)
        write_model(scratch / "f32.gguf", model, weights)
        write_imatrix(scratch / "imatrix.gguf", model, weights, random)
        types = [part for name, kind in model.matrix_types().items() for part in ("--tensor-type", f"^{name}$={kind}")]
        run([tools.quantize, "--imatrix", "imatrix.gguf", *types, "f32.gguf", str(out), "Q8_0", "1"], scratch)

        weights = read_model(out, model)
        tokens = choose_tokens(model, weights, random)
        logits = Forward(model, weights, tokens).logits
        run([tools.logits, str(out), "logits", *map(str, tokens)], scratch)
        theirs = np.fromfile(scratch / "logits", "<f4").reshape(logits.shape).astype(np.float64)
    logits.astype("<f4").tofile(folder / f"{model.name}.logits")
    relative = float(np.linalg.norm(theirs - logits) / np.linalg.norm(logits))
    largest = float(np.abs(theirs - logits).max())
    print(f"{model.name:24} llama.cpp: relative {relative:.3e}, largest {largest:.3e} of {np.abs(logits).max():.2f}")
    return {"tokens": tokens, "llama_cpp": {"relative_l2": relative, "largest": largest}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quantize", required=True, type=pathlib.Path, help="llama.cpp's llama-quantize")
    parser.add_argument("--logits", required=True, type=pathlib.Path, help="llama_logits.cpp, built")
    parser.add_argument("--every-format", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.quantize, arguments.logits = str(arguments.quantize.resolve()), str(arguments.logits.resolve())
    arguments.folder.mkdir(parents=True, exist_ok=True)
    models = every_format() if arguments.every_format else REPOSITORY_MODELS
    lines = [f"{json.dumps(model.name)}: {json.dumps(make_model(model, 2026 + i, arguments, arguments.folder))}"
             for i, model in enumerate(models)]
    (arguments.folder / "models.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
