#!/usr/bin/env python3
"""End-to-end tests of `eider bench`: its figures' form, what it writes, and what it refuses.

Usage: bench_test.py PROGRAM [unittest flags...]
"""
import csv
import io
import json
import signal
import subprocess
import sys
import time
import unittest

import tiny_model
from cli_test import FAILURE, PROGRAM, USAGE, CommandLineTest

# Small enough for a test; the figures mean nothing then.
SMALL = ("-t", "2", "-r", "2", "--cold-mib", "8")
TESTS = ("-p", "8", "-n", "2")


def bench(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, "bench", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False)


class BenchTest(CommandLineTest):
    def run_json(self, *arguments: str) -> dict:
        finished = bench(*SMALL, "--json", *arguments)
        self.assertEqual(finished.returncode, 0, finished)
        result = json.loads(finished.stdout)
        self.assertEqual(set(result), {"machine", "kernels", "models"})
        return result

    def test_machine_is_what_is_measured_without_other_wishes(self) -> None:
        result = self.run_json()
        machine = result["machine"]
        self.assertEqual((result["kernels"], result["models"]), ([], []))
        self.assertEqual({row["threads"] for row in machine["bandwidth"]}, {1, 2})
        self.assertEqual({row["access"] for row in machine["bandwidth"]}, {"read", "write", "copy"})
        self.assertEqual({row["cache"] for row in machine["bandwidth"]}, {"cold", "hot"})
        self.assertEqual({row["page_bytes"] for row in machine["bandwidth"]}, {4096, 2 << 20})
        for row in machine["bandwidth"]:
            self.assertGreater(row["gb_s"], 0)
            self.assertEqual(len(row["samples"]), 2)
        self.assertEqual({peak["isa"] for peak in machine["peaks"]}, set(machine["instruction_sets"]))
        self.assertIn("fp32_fma", {peak["operation"] for peak in machine["peaks"]})
        self.assertGreater(machine["threads"][-1]["barrier_ns"], 0)

    def test_models_are_measured_as_llama_bench_names_them(self) -> None:
        models = self.run_json("-m", self.model, "-m", self.model, "-p", "8,3", "-n", "2", "-d", "0,20")["models"]
        expected = ["pp8", "pp3", "tg2", "pp8 @ d20", "pp3 @ d20", "tg2 @ d20"]
        self.assertEqual([row["test"] for row in models], 2 * expected)
        for row in models:
            self.assertEqual(row["model"], "tiny.gguf")
            self.assertEqual(len(row["samples"]), 2)
            self.assertGreaterEqual(row["tok_s"], min(row["samples"]))
            self.assertLessEqual(row["tok_s"], max(row["samples"]))
            self.assertGreater(row["fraction_of_roof"], 0)
            self.assertGreater(row["bytes_per_token"], 0)
            self.assertEqual(row["threads"], 2)
            self.assertEqual(row["model_n_params"], tiny_model.parameters())
        # All weights but one row in place of the whole embedding, which is tied to the head: F32, 4 bytes each.
        # Half-precision keys and values of 1.5 positions on average.
        kv = 2 * tiny_model.LAYERS * tiny_model.KV_HEADS * tiny_model.HEAD_DIM * 2
        self.assertEqual(models[2]["bytes_per_token"],
                         4 * (tiny_model.parameters() + tiny_model.HIDDEN) + int(1.5 * kv))

    def test_every_thread_count_and_batch_has_its_rows(self) -> None:
        finished = bench("-r", "1", "--cold-mib", "8", "-m", self.model, *TESTS, "-t", "1,2", "-ub", "4,8", "--json")
        rows = json.loads(finished.stdout)["models"]
        self.assertEqual([(row["threads"], row["n_ubatch"]) for row in rows[::2]], [(1, 4), (1, 8), (2, 4), (2, 8)])

    def test_reference_backend(self) -> None:
        rows = self.run_json("-m", self.model, *TESTS, "--backend", "reference")["models"]
        self.assertEqual(rows[0]["backend"], "reference")

    def test_kernels(self) -> None:
        result = self.run_json("--kernels", "--format", "q8_0,bf16", "--shapes", "64x256", "--tokens", "1,4")
        isas = result["machine"]["instruction_sets"]
        rows = result["kernels"]
        self.assertEqual(len(rows), 2 * 2 * 2 * len(isas))
        for row in rows:
            self.assertEqual((row["rows"], row["columns"]), (64, 256))
            self.assertEqual(row["kernel"], "gemv" if row["tokens"] == 1 else "gemm")
            self.assertGreater(row["fraction_of_roof"], 0)
            weights = 64 * 256
            bytes_of_weight = 2 if row["format"] == "BF16" else 34 / 32
            self.assertAlmostEqual(row["gb_s"] / row["gweights_s"] / bytes_of_weight, 1, delta=1e-3)
            self.assertAlmostEqual(row["gop_s"] / row["gweights_s"], 2 * row["tokens"], delta=1e-2)
            self.assertGreater(min(row["products_s"]) * weights, 0)

    def test_tables(self) -> None:
        text = bench(*SMALL, *TESTS, "-m", self.model).stdout
        self.assertRegex(text.splitlines()[0], "^model +size +params +backend +threads +n_ubatch +test +t/s")
        self.assertRegex(text, r"pp8 +[0-9.]+ ± [0-9.]+ ")
        markdown = bench(*SMALL, *TESTS, "-m", self.model, "-o", "md").stdout.splitlines()
        self.assertTrue(markdown[0].startswith("| model "))
        self.assertRegex(markdown[1], r"^\| -+ \|( -+: \|)+")
        rows = list(csv.DictReader(io.StringIO(bench(*SMALL, *TESTS, "-m", self.model, "-o", "csv").stdout)))
        self.assertEqual([row["test"] for row in rows[:2]], ["pp8", "tg2"])

    def test_synthetic_model_gives_what_its_file_gives(self) -> None:
        file = self.path / "synthetic.gguf"
        synthetic = ("--synthetic", "qwen3-0.6b", "--layers", "1", "--format", "q4_k")
        written = bench(*synthetic, "--write", file)
        self.assertEqual((written.returncode, written.stdout), (0, ""), written)
        self.assertIn("qwen3-0.6b 1 layers Q4_K", written.stderr)
        self.assertEqual([path.name for path in self.path.glob("synthetic*")], ["synthetic.gguf"])
        rows = self.run_json(*synthetic, "-p", "2", "-n", "1")["models"]
        of_file = self.run_json("-m", file, "-p", "2", "-n", "1")["models"]
        for key in ("model_n_params", "model_size", "bytes_per_token", "test"):
            self.assertEqual([row[key] for row in rows], [row[key] for row in of_file])
        run = subprocess.run([PROGRAM, "run", "-m", file, "--raw", "-p", "the", "-n", "3", "--json", "-c", "64"],
                             capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run)
        self.assertEqual(bench(*synthetic, "--write", self.path / "again.gguf", "-t", "3").returncode, 0)
        self.assertEqual(file.read_bytes(), (self.path / "again.gguf").read_bytes())

    def test_wrong_flags_are_named(self) -> None:
        model = ("-m", self.model)
        for arguments, mentioned in [
            ((*model, "-p", "x"), ("--n-prompt", "'x'", "integers from 0")),
            ((*model, "-p", "1,,2"), ("--n-prompt", "'1,,2'")),
            ((*model, "-n", "-1"), ("--n-gen", "'-1'")),
            ((*model, "-p", "0", "-n", "0"), ("nothing to measure",)),
            ((*model, "-t", "0"), ("--threads", "'0'")),
            ((*model, "-r", "0"), ("--repetitions", "'0'")),
            ((*model, "-o", "xml"), ("--output", "'xml'", "text, md, csv or json")),
            (("--synthetic", "gpt-5"), ("--synthetic", "'gpt-5'", "qwen3-30b-a3b")),
            (("--synthetic", "qwen3-4b", "--format", "q3_k"), ("--format", "'q3_k'", "q4_k")),
            (("--kernels", "--shapes", "10by10"), ("--shapes", "'10by10'", "9728x2560")),
            (("--kernels", "--tokens", "0"), ("--tokens", "'0'")),
            (("--layers", "3"), ("--layers", "--synthetic")),
            (("--write", "x.gguf"), ("--write", "--synthetic")),
            (("--synthetic", "qwen3-4b,qwen3-8b", "--write", "x.gguf"), ("--write", "one shape")),
            (("--synthetic", "qwen3-4b", "--write", "x.gguf", "--machine"), ("--write", "measures nothing")),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(bench(*arguments), USAGE, *mentioned)

    def test_what_cannot_be_measured_is_told_in_one_line(self) -> None:
        for arguments, mentioned in [
            (("-m", self.path / "absent.gguf"), ("absent.gguf",)),
            (("-m", self.model, "--isa", "sse9"), ("--isa", "sse9")),
            (("--kernels", "--isa", "sse9"), ("--isa", "sse9")),
            (("--kernels", "--shapes", "64x100", "--format", "q4_k"), ("Q4_K", "multiple of 256", "100")),
            (("--synthetic", "qwen3-4b", "--layers", "37"), ("qwen3-4b", "37 layers", "has 36")),
            (("--synthetic", "qwen3-0.6b", "--layers", "1", "--write", self.path / "absent" / "x.gguf"),
             ("x.gguf", "No such file")),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(bench(*SMALL, *arguments), FAILURE, *mentioned)

    def test_interrupt_ends_it(self) -> None:
        process = subprocess.Popen([PROGRAM, "bench", "-m", str(self.model), "-n", "1000000", "-p", "0", "--cold-mib", "8"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, output), (FAILURE, ""), errors)
        self.assertIn("interrupted", errors)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
