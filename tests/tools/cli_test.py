#!/usr/bin/env python3
"""End-to-end tests of the eider program: what a person at a shell sees. python3's standard library only.

Usage: cli_test.py PROGRAM [unittest flags...]. With EIDER_MODELS set to a folder that holds
SmolLM2-135M-Instruct.Q4_1.gguf, and ../shared beside the repository, the real model is asked too.
"""
import json
import math
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import tiny_model

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "data" / "golden"
PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
FAILURE, USAGE, INTERRUPTED = 1, 2, 130


def eider(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=120,
                          check=False)


def safetensors_header(path: pathlib.Path) -> tuple[dict, bytes]:
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:8 + length]), content[8 + length:]


def read_rows(path: pathlib.Path, name: str) -> list[tuple[float, ...]]:
    """A float32 matrix of a safetensors file."""
    header, data = safetensors_header(path)
    entry = header[name]
    rows, columns = entry["shape"]
    begin = entry["data_offsets"][0]
    return [struct.unpack_from(f"<{columns}f", data, begin + 4 * columns * row) for row in range(rows)]


class CommandLineTest(unittest.TestCase):
    """Base: a tiny model in a folder of its own, and what a failure must look like."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        cls.model = cls.path / "tiny.gguf"
        cls.model.write_bytes(tiny_model.model_bytes())

    def assert_fails(self, finished: subprocess.CompletedProcess, code: int, *mentioned: str) -> None:
        self.assertEqual(finished.returncode, code, finished)
        self.assertEqual(finished.stdout, "")
        lines = finished.stderr.splitlines()
        self.assertEqual(len(lines), 1, finished.stderr)
        self.assertTrue(lines[0].startswith("error: "), lines[0])
        for text in mentioned:
            self.assertIn(str(text), lines[0])

    def run_json(self, *arguments: str, stdin: str = "") -> dict:
        """`eider run --json` on the tiny model."""
        finished = eider("run", "-m", self.model, "-c", "4096", "--json", *arguments, stdin=stdin)
        self.assertEqual(finished.returncode, 0, finished)
        return json.loads(finished.stdout)


class UsageTest(CommandLineTest):
    def test_wrong_flags_are_named(self) -> None:
        run = ("run", "-m", self.model, "-p", "x")
        for arguments, mentioned in [
            ((), ("run, chat, serve, tokenize, inspect, perplexity, bench, prepare or cache",)),
            (("walk",), ("walk",)),
            (("run", "-p", "x"), ("--model",)),
            ((*run, "--frobnicate"), ("--frobnicate",)),
            ((*run, "extra"), ("extra",)),
            ((*run, "-n"), ("--predict",)),
            ((*run, "-n", "many"), ("--predict", "'many'", "-1 to")),
            ((*run, "-n", "12x"), ("--predict", "'12x'")),
            ((*run, "-n", "-2"), ("--predict", "'-2'")),
            ((*run, "-n", ""), ("--predict", "''")),
            ((*run, "-c", "0"), ("--ctx-size", "'0'", "1 to")),
            ((*run, "-c", "99999999999999999999"), ("--ctx-size", "99999999999999999999")),
            ((*run, "-t", "0"), ("--threads", "'0'", "1 to")),
            ((*run, "-ub", "0"), ("--ubatch-size", "'0'", "1 to")),
            ((*run, "--kv-type", "q8"), ("--kv-type", "'q8'", "f16 or f32")),
            ((*run, "--backend", "gpu"), ("--backend", "'gpu'", "cpu or reference")),
            ((*run, "--temp", "-1"), ("--temp", "'-1'", "0 to")),
            ((*run, "--temp", "nan"), ("--temp", "'nan'")),
            ((*run, "--top-k", "-1"), ("--top-k", "'-1'", "0 to")),
            ((*run, "--top-p", "1.1"), ("--top-p", "'1.1'", "0 to 1")),
            ((*run, "--min-p", "2"), ("--min-p", "'2'", "0 to 1")),
            ((*run, "--typical", "x"), ("--typical", "'x'", "0 to 1")),
            ((*run, "--repeat-penalty", "0"), ("--repeat-penalty", "'0'")),
            ((*run, "--frequency-penalty", "inf"), ("--frequency-penalty", "'inf'")),
            ((*run, "--presence-penalty", "1,5"), ("--presence-penalty", "'1,5'")),
            ((*run, "--repeat-last-n", "-2"), ("--repeat-last-n", "'-2'", "-1 to")),
            ((*run, "--logit-bias", "5"), ("--logit-bias", "'5'", "15043+1.5")),
            ((*run, "--logit-bias", "a+1"), ("--logit-bias", "'a+1'")),
            ((*run, "--logit-bias", "5++1"), ("--logit-bias", "'5++1'")),
            ((*run, "--samplers", "top_k;magic"), ("--samplers", "magic", "top_k")),
            ((*run, "--seed", "-5"), ("--seed", "'-5'", "0 to")),
            ((*run, "--seed", "0x10"), ("--seed", "'0x10'")),
            ((*run, "-f", "x"), ("--file", "--prompt")),
            ((*run, "--raw", "--system", "x"), ("--raw", "--system")),
            (("inspect", "-m", self.model, "-n", "5"), ("-n",)),
            (("perplexity", "-m", self.model), ("--file", "--ids", "exactly one")),
            ((*run, "-r", ""), ("--stop", "''")),
            (("perplexity", "-m", self.model, "-f", "a", "--ids", "b"), ("--file", "--ids")),
            (("perplexity", "-m", self.model, "--ids", "b", "--tokens", "1"), ("--tokens", "'1'", "2 to")),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(eider(*arguments), USAGE, "--help", *mentioned)

    def test_help_and_version(self) -> None:
        for arguments, mentioned in [
            (("--help",), ("run", "chat", "inspect", "perplexity", "Examples")),
            (("run", "--help"), ("--temp", "--ctx-size", "-ub", "--samplers", "Examples", "Sampling", "Engine")),
            (("chat", "--help"), ("--system", "--temp", "Examples")),
            (("tokenize", "--help"), ("--jsonl", "--template-args", "Examples")),
            (("inspect", "--help"), ("--ctx-size", "Examples")),
            (("perplexity", "--help"), ("--ids", "Examples")),
            (("--version",), ("eider 0.", "compiler: ", "instruction set")),
        ]:
            with self.subTest(arguments=arguments):
                finished = eider(*arguments)
                self.assertEqual((finished.returncode, finished.stderr), (0, ""))
                for text in mentioned:
                    self.assertIn(text, finished.stdout)
                if "--help" in arguments:
                    self.assertLessEqual(max(map(len, finished.stdout.splitlines())), 80)

    def open_terminal(self) -> tuple[int, int]:
        try:
            return pty.openpty()
        except OSError as problem:
            self.skipTest(f"no pseudo-terminal here: {problem}")

    def test_no_prompt_at_a_terminal(self) -> None:
        controller, terminal = self.open_terminal()
        with open(terminal, "rb") as stdin:
            finished = subprocess.run([PROGRAM, "run", "-m", str(self.model)], stdin=stdin, capture_output=True,
                                      text=True, timeout=120, check=False)
        os.close(controller)
        self.assert_fails(finished, USAGE, "--prompt", "no prompt", "-p TEXT")

    def test_colour_only_where_it_is_wanted(self) -> None:
        def stderr_at_terminal(**variables: str) -> bytes:
            controller, terminal = self.open_terminal()
            environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            with subprocess.Popen([PROGRAM, "walk"], stderr=terminal, env=environment | variables) as process:
                process.wait(timeout=120)
            os.close(terminal)
            shown = os.read(controller, 4096)
            os.close(controller)
            return shown

        self.assertIn(b"\x1b[31m", stderr_at_terminal(TERM="xterm"))
        self.assertNotIn(b"\x1b", stderr_at_terminal(TERM="xterm", NO_COLOR="1"))
        self.assertNotIn(b"\x1b", stderr_at_terminal(TERM="dumb"))


class WrongFileTest(CommandLineTest):
    def write(self, name: str, content: bytes) -> pathlib.Path:
        path = self.path / name
        path.write_bytes(content)
        return path

    def test_models_that_are_none(self) -> None:
        whole = self.model.read_bytes()
        (self.path / "empty_folder").mkdir(exist_ok=True)
        for path in [
            self.path / "missing.gguf",
            self.path / "empty_folder",
            pathlib.Path("/dev/null"),
            self.write("empty.gguf", b""),
            self.write("text.gguf", b"this is no model\n" * 100),
            self.write("magic_only.gguf", b"GGUF"),
            self.write("count.gguf", whole[:8] + b"\xff" * 16 + whole[24:]),
            *(self.write(f"torn_{size}.gguf", whole[:size]) for size in (20, 200, 5000, len(whole) - 100)),
        ]:
            for command in (("run", "-p", "x"), ("inspect",)):
                with self.subTest(path=path.name, command=command[0]):
                    self.assert_fails(eider(*command, "-m", path), FAILURE, path)

    def test_no_file_makes_it_crash(self) -> None:
        whole = bytearray(self.model.read_bytes())
        for position in range(0, 6000, 97):
            torn = bytearray(whole)
            torn[position] ^= 0xFF
            path = self.write("flipped.gguf", torn)
            with self.subTest(position=position):
                self.assertIn(eider("inspect", "-m", path).returncode, (0, FAILURE))

    def test_run_needs_a_tokenizer(self) -> None:
        self.assert_fails(eider("run", "-m", GOLDEN / "llama", "-p", "x"), FAILURE, "tokenizer", GOLDEN / "llama")

    def test_prompt_files(self) -> None:
        self.assert_fails(eider("run", "-m", self.model, "-f", self.path / "none.txt"), FAILURE, "none.txt")
        self.assert_fails(eider("run", "-m", self.model, "-f", self.path), FAILURE, self.path)
        self.assert_fails(eider("run", "-m", self.model, "--raw", "-p", ""), FAILURE, "empty")
        self.assert_fails(eider("run", "-m", self.model, "--raw", stdin=""), FAILURE, "empty")

    def test_ids_files(self) -> None:
        for content, mentioned in [(b"", "JSON array"), (b"{}", "JSON array"), (b"[1, 2", "JSON array"), (b"[1]", "2"),
                                   (b"[1, -1]", "item 1"), (b"[1, 100000]", "item 1"), (b"[1, 2.5]", "item 1"),
                                   (b'["a", 2]', "item 0"), (b"[" * 100000, "JSON array")]:
            with self.subTest(content=content[:20]):
                path = self.write("ids.json", content)
                self.assert_fails(eider("perplexity", "-m", GOLDEN / "llama", "--ids", path), FAILURE, path, mentioned)


class RunTest(CommandLineTest):
    def test_json(self) -> None:
        answer = self.run_json("--raw", "-p", "Hello", "-n", "12", "--ignore-eos", "--seed", "5")
        self.assertEqual(answer["prompt_ids"], tiny_model.encode("Hello"))
        self.assertEqual(answer["prompt_tokens"], 5)
        self.assertEqual(len(answer["ids"]), 12)
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(answer["seed"], 5)
        self.assertRegex(answer["logits_hash"], "^[0-9a-f]{16}$")
        for key in ("ttft_ms", "prompt_tok_s", "decode_tok_s", "tpot_ms", "weights_gb_s"):
            self.assertGreater(answer[key], 0, key)
        spoken = bytes(token - len(tiny_model.CONTROL_TOKENS) for token in answer["ids"]
                       if token >= len(tiny_model.CONTROL_TOKENS))
        self.assertEqual(answer["text"], spoken.decode(errors="replace"))

    def test_text_goes_to_stdout_and_the_rest_to_stderr(self) -> None:
        arguments = ("--raw", "-p", "Hello", "-n", "12", "--ignore-eos", "--seed", "5")
        finished = eider("run", "-m", self.model, "-c", "4096", "--logits-hash", *arguments)
        answer = self.run_json(*arguments)
        self.assertEqual(finished.stdout.rstrip("\n"), answer["text"].rstrip("\n"))
        self.assertIn(answer["logits_hash"], finished.stderr)
        for text in ("TTFT", "TPOT", "tok/s", "GB/s"):
            self.assertIn(text, finished.stderr)
        self.assertNotIn("\x1b", finished.stderr)

    def test_seeds(self) -> None:
        arguments = ("-p", "Hello", "-n", "24", "--ignore-eos", "--temp", "1.5")
        drawn = self.run_json(*arguments)
        again = self.run_json(*arguments, "--seed", drawn["seed"])
        other = self.run_json(*arguments, "--seed", drawn["seed"] + 1)
        for key in ("text", "ids", "logits_hash"):
            self.assertEqual(drawn[key], again[key])
            self.assertNotEqual(drawn[key], other[key])
        finished = eider("run", "-m", self.model, "-c", "4096", *arguments)
        self.assertRegex(finished.stderr, r"(?m)^seed: \d+$")

    def test_bits_depend_on_neither_threads_nor_chunks(self) -> None:
        hashes = {self.run_json("-p", "word " * 60, "-n", "8", "--temp", "0", "-t", threads, "-ub", chunk)["logits_hash"]
                  for threads in (1, 2, 3) for chunk in (1, 32, 512)}
        self.assertEqual(len(hashes), 1)

    def test_kv_types_differ(self) -> None:
        hashes = {self.run_json("-p", "Hello", "-n", "8", "--temp", "0", "--kv-type", kind)["logits_hash"]
                  for kind in ("f16", "f32")}
        self.assertEqual(len(hashes), 2)

    def test_prompt_sources(self) -> None:
        prompt = self.path / "prompt.txt"
        prompt.write_text("Hello\nyou\n")
        expected = self.run_json("-p", "Hello\nyou", "-n", "4", "--temp", "0")
        self.assertEqual(self.run_json("-n", "4", "--temp", "0", stdin="Hello\nyou\n")["ids"], expected["ids"])
        self.assertEqual(self.run_json("-n", "4", "--temp", "0", "-f", prompt)["ids"], expected["ids"])
        self.assertEqual(self.run_json("-n", "4", "--temp", "0", "-f", "-", stdin="Hello\nyou\n")["ids"],
                         expected["ids"])

    def test_chat_template(self) -> None:
        start, end = tiny_model.token_id("<|im_start|>"), tiny_model.token_id("<|im_end|>")

        def message(role: str, text: str) -> list[int]:
            return [start, *tiny_model.encode(f"{role}\n{text}"), end, *tiny_model.encode("\n")]

        opening = [start, *tiny_model.encode("assistant\n")]
        chat = self.run_json("-p", "Hi", "-n", "1")
        self.assertEqual(chat["prompt_ids"], message("user", "Hi") + opening)
        chat = self.run_json("-p", "Hi", "-n", "1", "--system", "Be brief")
        self.assertEqual(chat["prompt_ids"], message("system", "Be brief") + message("user", "Hi") + opening)

    def test_no_chat_template(self) -> None:
        path = self.path / "plain.gguf"
        path.write_bytes(tiny_model.model_bytes(chat_template=None))
        finished = eider("run", "-m", path, "-c", "512", "-p", "Hi", "-n", "1", "--json")
        self.assertEqual(json.loads(finished.stdout)["prompt_ids"], tiny_model.encode("Hi"))
        self.assertIn("no chat template", finished.stderr)
        self.assert_fails(eider("run", "-m", path, "-p", "Hi", "--system", "x"), FAILURE, "--system", "no chat template")

    def test_wrong_chat_template(self) -> None:
        path = self.path / "wrong.gguf"
        path.write_bytes(tiny_model.model_bytes(chat_template="{% for message in %}"))
        self.assert_fails(eider("run", "-m", path, "-p", "Hi"), FAILURE, "chat template", "line 1", "--raw")

    def test_logit_bias_and_ends(self) -> None:
        letter, end = tiny_model.token_id("a"), tiny_model.token_id("<|im_end|>")
        favoured = self.run_json("-p", "x", "-n", "5", "-l", f"{end}-inf", "-l", f"{letter}+1000")
        self.assertEqual((favoured["text"], favoured["finish_reason"]), ("aaaaa", "length"))
        ended = self.run_json("-p", "x", "--logit-bias", f"{end}+1000")
        self.assertEqual((ended["text"], ended["ids"], ended["finish_reason"]), ("", [end], "stop"))
        ignored = self.run_json("-p", "x", "-n", "5", "--ignore-eos", "--logit-bias", f"{end}+1000")
        self.assertEqual(ignored["finish_reason"], "length")
        stopped = self.run_json("-p", "x", "-n", "9", "--logit-bias", f"{letter}+1000", "-r", "b", "-r", "aaa")
        self.assertEqual((stopped["text"], stopped["finish_reason"]), ("", "stop"))
        self.assert_fails(eider("run", "-m", self.model, "-c", "512", "-p", "x", "--logit-bias", "100000+1"), FAILURE,
                          "100000")

    def test_context_is_full(self) -> None:
        self.assert_fails(eider("run", "-m", self.model, "-c", "16", "-p", "word " * 20, "--seed", "1"), FAILURE, "16")
        finished = eider("run", "-m", self.model, "-c", "64", "--raw", "-p", "x" * 60, "--ignore-eos", "--json")
        answer = json.loads(finished.stdout)
        self.assertEqual((finished.returncode, answer["finish_reason"]), (0, "length"))
        self.assertLessEqual(len(answer["ids"]), 5)

    def test_memory(self) -> None:
        per_token = (2 * 4 * tiny_model.LAYERS * tiny_model.KV_HEADS * tiny_model.HEAD_DIM)
        needed = per_token * tiny_model.CONTEXT_LENGTH
        with open("/proc/meminfo", encoding="ascii") as meminfo:
            if int(re.search(r"MemTotal: +(\d+)", meminfo.read()).group(1)) * 1024 > needed:
                self.skipTest(f"this machine has more than the {needed} bytes that the test must not fit in")
        flags = ("-m", self.model, "--kv-type", "f32")
        finished = eider("run", *flags, "-p", "x", "-c", tiny_model.CONTEXT_LENGTH)
        self.assert_fails(finished, FAILURE, "--ctx-size", "GiB", "fits")
        largest = re.search(r"at most (\d+) fits", finished.stderr).group(1)
        self.assertGreater(int(largest), 0)
        lowered = eider("run", *flags, "-p", "x", "-n", "1", "--json")
        self.assertEqual(lowered.returncode, 0, lowered)
        self.assertRegex(lowered.stderr, r"(?m)^warning: .*using -c \d+$")

    def test_context_beyond_the_models_own(self) -> None:
        ids = self.path / "many.json"
        ids.write_text(json.dumps([5] * 8))
        config = json.loads((GOLDEN / "llama" / "config.json").read_text())
        finished = eider("inspect", "-m", GOLDEN / "llama", "--json")
        self.assertEqual(json.loads(finished.stdout)["max_position_embeddings"], config["max_position_embeddings"])


class EndingTest(CommandLineTest):
    ENDLESS = ("-p", "x", "--ignore-eos", "--seed", "1")

    def start(self, *arguments: str, **streams) -> subprocess.Popen:
        return subprocess.Popen([PROGRAM, "run", "-m", str(self.model), "-c", "1000000", *self.ENDLESS, *arguments],
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", **streams)

    def test_interrupt(self) -> None:
        with self.start(stdout=subprocess.PIPE) as process:
            self.assertNotEqual(process.stdout.read(1), "")  # the answer has begun
            process.send_signal(signal.SIGINT)
            _, messages = process.communicate(timeout=120)
        self.assertEqual(process.returncode, INTERRUPTED, messages)
        self.assertIn("cancelled", messages)

    def test_interrupt_with_json(self) -> None:
        with self.start("--json", stdout=subprocess.PIPE) as process:
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
            text, messages = process.communicate(timeout=120)
        self.assertEqual(process.returncode, INTERRUPTED, messages)
        self.assertEqual(json.loads(text)["finish_reason"], "cancelled")

    def test_stdout_is_closed(self) -> None:
        with self.start(stdout=subprocess.PIPE) as process:
            process.stdout.read(1)
            process.stdout.close()
            messages = process.stderr.read()
            process.wait(timeout=120)
        self.assertEqual(process.returncode, FAILURE, messages)
        self.assertRegex(messages, "(?m)^error: standard output: Broken pipe$")

    def test_disk_is_full(self) -> None:
        with open("/dev/full", "w", encoding="ascii") as full, self.start("-n", "4", stdout=full) as process:
            _, messages = process.communicate(timeout=120)
        self.assertEqual(process.returncode, FAILURE, messages)
        self.assertIn("standard output: No space left", messages)


class InspectTest(CommandLineTest):
    def test_tiny_model(self) -> None:
        context = 1000
        flags = ("inspect", "-m", self.model, "-c", context, "--kv-type", "f32", "--json", "--backend")
        shown = json.loads(eider(*flags, "reference").stdout)
        self.assertEqual(shown["architecture"], "llama")
        self.assertEqual(shown["parameters"], tiny_model.parameters())
        self.assertEqual(shown["formats"], [{"format": "F32", "tensors": len(tiny_model.tensor_shapes()),
                                             "parameters": tiny_model.parameters(),
                                             "bytes": 4 * tiny_model.parameters()}])
        self.assertEqual(shown["tokenizer"], {"model": "gpt2", "pre_tokenizer": "smollm", "tokens": 259,
                                              "end_tokens": [tiny_model.token_id("<|im_end|>")], "chat_template": True})
        self.assertEqual(shown["sampling"], {})
        positions = 128 * math.ceil(context / 128)
        memory = shown["memory"]
        self.assertEqual(memory["kv_cache"],
                         positions * 2 * 4 * tiny_model.LAYERS * tiny_model.KV_HEADS * tiny_model.HEAD_DIM)
        self.assertEqual(memory["weights"], 4 * tiny_model.parameters())
        self.assertEqual(memory["total"], memory["kv_cache"] + memory["weights"] + memory["working"])
        # The cpu backend packs weights, and those need no memory where the file is mapped.
        packing = json.loads(eider(*flags, "cpu").stdout)["memory"]
        self.assertLess(packing["weights"], memory["weights"])
        self.assertGreater(packing["weights"] + packing["working"], memory["weights"])
        # Tied embeddings: the head reads all of the table, the embedding one row of it.
        self.assertEqual(shown["bytes_per_token"], 4 * (tiny_model.parameters() + tiny_model.HIDDEN))
        self.assertGreater(shown["barriers_per_token"], shown["num_hidden_layers"])

    def test_goldens(self) -> None:
        for name in ("llama", "qwen3_moe", "gemma3"):
            with self.subTest(name=name):
                header, _ = safetensors_header(GOLDEN / name / "model.safetensors")
                header.pop("__metadata__", None)
                shown = json.loads(eider("inspect", "-m", GOLDEN / name, "--json").stdout)
                self.assertEqual(shown["parameters"], sum(math.prod(entry["shape"]) for entry in header.values()))
                self.assertIsNone(shown["tokenizer"])

    def test_data_tensors(self) -> None:
        path = self.path / "indices.gguf"
        path.write_bytes(tiny_model.model_bytes(indices=list(range(512))))
        shown = json.loads(eider("inspect", "-m", path, "--json").stdout)
        self.assertEqual(shown["data_tensors"], [{"name": "indices", "type": "I32", "shape": [512], "bytes": 2048}])
        self.assertEqual(shown["parameters"], tiny_model.parameters())
        self.assertRegex(eider("inspect", "-m", path).stdout, r'(?m)^I32 +2.0 KiB +\[512\] +"indices"$')
        ids = ("--raw", "-p", "x", "-n", "3", "--temp", "0")
        self.assertEqual(eider("run", "-m", path, *ids).stdout, eider("run", "-m", self.model, *ids).stdout)

    def test_text(self) -> None:
        finished = eider("inspect", "-m", self.model, "-c", "1000")
        for text in ("llama", "F32", "bytes per token", "tokenizer", "chat template", "context of 1000", "threads"):
            self.assertIn(text, finished.stdout)


class PerplexityTest(CommandLineTest):
    def test_goldens(self) -> None:
        """The nll of the reference's own logits, which golden.safetensors holds for every position of a prompt."""
        for name in ("llama", "qwen3_moe", "gemma3"):
            with self.subTest(name=name):
                ids = json.loads((GOLDEN / name / "golden.json").read_text())["prompts"]["short"]["ids"]
                logits = read_rows(GOLDEN / name / "golden.safetensors", "short.logits")
                nll = [math.log(sum(math.exp(logit) for logit in row)) - row[target]
                       for row, target in zip(logits, ids[1:])]
                path = self.path / "ids.json"
                path.write_text(json.dumps(ids))
                finished = eider("perplexity", "-m", GOLDEN / name, "--ids", path, "--kv-type", "f32", "--json")
                self.assertEqual(finished.returncode, 0, finished)
                shown = json.loads(finished.stdout)
                self.assertEqual((shown["tokens"], shown["ids"]), (len(ids), ids))
                self.assertEqual(shown["argmax"], [max(range(len(row)), key=row.__getitem__) for row in logits])
                self.assertEqual(len(shown["nll"]), len(nll))
                for ours, reference in zip(shown["nll"], nll):
                    self.assertAlmostEqual(ours, reference, delta=1e-3)
                self.assertAlmostEqual(shown["perplexity"], math.exp(sum(nll) / len(nll)), delta=0.01 * shown["perplexity"])

    def test_text(self) -> None:
        path = self.path / "text.txt"
        path.write_text("some words, and more words\n" * 10)
        finished = eider("perplexity", "-m", self.model, "-f", path, "--tokens", "100", "--json")
        self.assertEqual(finished.returncode, 0, finished)
        shown = json.loads(finished.stdout)
        self.assertEqual(shown["ids"], tiny_model.encode(path.read_text())[:100])
        self.assertEqual((len(shown["nll"]), len(shown["argmax"])), (99, 100))
        plain = eider("perplexity", "-m", self.model, "-f", path, "--tokens", "100")
        self.assertEqual(plain.stdout, f"perplexity {shown['perplexity']:.4f} over 100 tokens\n")


class RealModelTest(unittest.TestCase):
    def test_smollm2_answers(self) -> None:
        model = pathlib.Path(os.environ.get("EIDER_MODELS", "")) / "SmolLM2-135M-Instruct.Q4_1.gguf"
        truth = ROOT.parent / "shared" / "conformance" / "real_models" / "smollm2-135m-q4_1.json"
        for path in (model, truth):
            if not path.is_file():
                self.skipTest(f"{path} is not here (EIDER_MODELS names the folder of real models)")
        for chat in json.loads(truth.read_text())["chat_greedy"]:
            sure = next((step for step, margin in enumerate(chat["margins"]) if margin < 0.3), 8)
            finished = eider("run", "-m", model, "-p", chat["user"], "--temp", "0", "-n", max(sure, 1), "--json")
            answer = json.loads(finished.stdout)
            self.assertEqual(answer["prompt_ids"], chat["ids"])
            self.assertEqual(answer["ids"][:sure], chat["greedy"][:sure])


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1))
