#!/usr/bin/env python3
"""End-to-end tests of `eider bench`: its figures' form, what it writes, and what it refuses.

Usage: bench_test.py PROGRAM [unittest flags...]
"""
import csv
import html.parser
import io
import json
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

import tiny_model
from cli_test import FAILURE, PROGRAM, USAGE, CommandLineTest

# Small enough for a test; the figures mean nothing then. Most of the time goes into the roofs, so only the tests that look
# at them have them measured.
SMALL = ("-t", "2", "-r", "2", "--cold-mib", "8")
TESTS = ("-p", "8", "-n", "2")


def bench(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, "bench", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False)


class PageReader(html.parser.HTMLParser):
    """What a page has, with its tags checked to close in order."""
    VOID = {"meta"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str, word: str = "") -> int:
        return sum(1 for seen, attributes in self.seen if seen == tag and word in attributes.get("class", "").split())


class BenchTest(CommandLineTest):
    def run_json(self, *arguments: str) -> dict:
        finished = bench(*SMALL, "--json", *arguments)
        self.assertEqual(finished.returncode, 0, finished)
        result = json.loads(finished.stdout)
        self.assertEqual(set(result), {"machine", "kernels", "attention", "models"})
        return result

    def assert_interrupt_ends(self, *arguments: str) -> None:
        process = subprocess.Popen([PROGRAM, "bench", "--cold-mib", "8", *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, output), (FAILURE, ""), errors)
        self.assertIn("interrupted", errors)

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
        finished = bench("-r", "1", "--no-roof", "-m", self.model, *TESTS, "-t", "1,2", "-ub", "4,8", "--json")
        rows = json.loads(finished.stdout)["models"]
        self.assertEqual([(row["threads"], row["n_ubatch"]) for row in rows[::2]], [(1, 4), (1, 8), (2, 4), (2, 8)])

    def test_reference_backend(self) -> None:
        rows = self.run_json("-m", self.model, *TESTS, "--no-roof", "--backend", "reference")["models"]
        self.assertEqual(rows[0]["backend"], "reference")

    def test_kernels(self) -> None:
        flags = ("--kernels", "--format", "q8_0,bf16", "--shapes", "64x256", "--tokens", "1,4")
        result = self.run_json(*flags)
        rows = result["kernels"]
        self.assertEqual({row["isa"] for row in rows}, {result["machine"]["instruction_sets"][0]})
        of_another = self.run_json(*flags, "--isa", "scalar")["kernels"]
        self.assertEqual({row["isa"] for row in of_another}, {"scalar"})
        self.assertEqual((len(rows), len(of_another)), (2 * 2 * 2, 2 * 2 * 2))
        for row in rows + of_another:
            self.assertEqual((row["rows"], row["columns"]), (64, 256))
            self.assertEqual(row["kernel"], "gemv" if row["tokens"] == 1 else "gemm")
            self.assertGreater(row["fraction_of_roof"], 0)
            weights = 64 * 256
            bytes_of_weight = 2 if row["format"] == "BF16" else 34 / 32
            self.assertAlmostEqual(row["gb_s"] / row["gweights_s"] / bytes_of_weight, 1, delta=1e-3)
            self.assertAlmostEqual(row["gop_s"] / row["gweights_s"], 2 * row["tokens"], delta=1e-2)
            self.assertGreater(min(row["products_s"]) * weights, 0)

    def best_isa(self) -> str:
        result = self.run_json("-m", self.model, "-p", "1", "-n", "0", "--no-roof")
        return result["machine"]["instruction_sets"][0]

    def test_attention(self) -> None:
        for heads, kv_heads, head_dim in [(4, 2, 32), (3, 1, 16)]:
            result = self.run_json("--kernels", "--heads", f"{heads}:{kv_heads}x{head_dim}", "-r", "1", "--cold-mib", "32")
            self.assertEqual(result["kernels"], [])
            rows = result["attention"]
            self.assertEqual([(row["heads"], row["kv_type"], row["tokens"], row["position"]) for row in rows],
                             [(heads, kv, *step) for kv in ("F16", "F32")
                              for step in ((1, 4096), (512, 0), (512, 4096))])
            for row in rows:
                keys = sum(row["position"] + 1 + token for token in range(row["tokens"]))
                operations = 4 * heads * head_dim * keys
                stored = 2 * kv_heads * head_dim * (row["position"] + row["tokens"])
                stored *= 2 if row["kv_type"] == "F16" else 4
                self.assertAlmostEqual(row["gop_s"] / row["gb_s"] / (operations / stored), 1, delta=1e-2)
                self.assertGreater(row["fraction_of_roof"], 0)

    def test_models_without_roof(self) -> None:
        for row in self.run_json("-m", self.model, *TESTS, "--no-roof")["models"]:
            self.assertIsNone(row["fraction_of_roof"])
            self.assertIsNone(row["roof"])
            self.assertGreater(row["tok_s"], 0)

    def test_tables(self) -> None:
        text = bench(*SMALL, *TESTS, "-m", self.model).stdout
        self.assertRegex(text.splitlines()[0], "^model +size +params +backend +threads +n_ubatch +test +t/s")
        self.assertRegex(text, r"pp8 +[0-9.]+ ± [0-9.]+ ")
        markdown = bench(*SMALL, *TESTS, "--no-roof", "-m", self.model, "-o", "md").stdout.splitlines()
        self.assertTrue(markdown[0].startswith("| model "))
        self.assertRegex(markdown[1], r"^\| -+ \|( -+: \|)+")
        output = bench(*SMALL, *TESTS, "--no-roof", "-m", self.model, "-o", "csv").stdout
        rows = list(csv.DictReader(io.StringIO(output)))
        self.assertEqual([row["test"] for row in rows[:2]], ["pp8", "tg2"])

    def test_synthetic_model_gives_what_its_file_gives(self) -> None:
        file = self.path / "synthetic.gguf"
        synthetic = ("--synthetic", "qwen3-0.6b", "--layers", "1", "--format", "q4_k")
        written = bench(*synthetic, "--write", file)
        self.assertEqual((written.returncode, written.stdout), (0, ""), written)
        self.assertIn("qwen3-0.6b 1 layers Q4_K", written.stderr)
        self.assertEqual([path.name for path in self.path.glob("synthetic*")], ["synthetic.gguf"])
        rows = self.run_json(*synthetic, "-p", "2", "-n", "1", "--no-roof")["models"]
        of_file = self.run_json("-m", file, "-p", "2", "-n", "1", "--no-roof")["models"]
        for key in ("model_n_params", "model_size", "bytes_per_token", "test"):
            self.assertEqual([row[key] for row in rows], [row[key] for row in of_file])
        run = subprocess.run([PROGRAM, "run", "-m", file, "--raw", "-p", "the", "-n", "3", "--json", "-c", "64"],
                             capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run)
        self.assertEqual(bench(*synthetic, "--write", self.path / "again.gguf", "-t", "3").returncode, 0)
        self.assertEqual(file.read_bytes(), (self.path / "again.gguf").read_bytes())

    def test_logits_hashes_are_of_the_computed_bits(self) -> None:
        tests = ("-m", self.model, *TESTS, "-d", "0,20", "--no-roof")
        hashes = [[row["logits_hash"] for row in self.run_json(*tests, *more)["models"]]
                  for more in ((), ("--backend", "reference"), ("--isa", "scalar", "-ub", "4"), ("--kv-type", "f32"))]
        self.assertEqual(len(set(hashes[0])), 4)
        self.assertEqual(hashes[0], hashes[1])
        self.assertEqual(hashes[0], hashes[2])
        self.assertNotEqual(hashes[0][3], hashes[3][3])  # other keys and values are stored

    def run_ab(self, *arguments: str) -> dict:
        finished = bench("--cold-mib", "8", "--json", *arguments)
        self.assertEqual(finished.returncode, 0, finished)
        return json.loads(finished.stdout)["ab"]

    def test_ab_compares_flags_on_the_same_work(self) -> None:
        compared = self.run_ab("-m", self.model, *TESTS, "-r", "1", "-t", "1", "--pairs", "3",
                               "--ab", "-t 2 -ub '4'", "--backend reference")
        self.assertEqual((compared["a"], compared["b"]), ("-t 2 -ub '4'", "--backend reference"))
        self.assertEqual(compared["pairs"], len(compared["roof_gb_s"]))
        self.assertTrue(3 <= compared["pairs"] <= 6)
        self.assertEqual([test["test"] for test in compared["tests"]], ["pp8", "tg2"])
        for test in compared["tests"]:
            self.assertEqual(test["model"], "tiny.gguf")
            self.assertIs(test["same_answer"], True)
            self.assertEqual(len(test["ratios"]), compared["pairs"] - compared["dropped"])
        other_bits = self.run_ab("-m", self.model, "-p", "0", "-n", "2", "-r", "1", "--pairs", "1", "--ab", "",
                                 "--kv-type f32")
        self.assertIs(other_bits["tests"][0]["same_answer"], False)

    def test_ab_takes_other_programs(self) -> None:
        answer = "cmd:echo the answer; echo '{} tok/s' >&2"
        compared = self.run_ab("--pairs", "2", "--ab", answer.format(8), answer.format(12))
        test = compared["tests"][0]
        self.assertIs(test["same_answer"], True)
        for ratio in test["ratios"]:
            self.assertEqual(ratio, 1.5)
        run = f"cmd:{PROGRAM} run -m {self.model} -c 64 --raw -p hello -n 3 --temp 0 --seed 1"
        compared = self.run_ab("--pairs", "1", "--ab", run, run + " --json")
        self.assertEqual(len(compared["tests"]), 1)
        self.assertIs(compared["tests"][0]["same_answer"], False)  # an answer's text and a hash of logits
        text = bench("--cold-mib", "8", "--pairs", "1", "--ab", "cmd:echo 1 t/s", "cmd:echo 2 t/s", "-o", "md")
        self.assertIn("A: cmd:echo 1 t/s\nB: cmd:echo 2 t/s", text.stdout)
        self.assertIn("not told", text.stdout)

    def test_ab_ends_when_it_was_said_to(self) -> None:
        slow = self.path / "slow"  # from the first pair on
        finished = bench("--cold-mib", "8", "--json", "--pairs", "3", "--ab",
                         f"cmd:test -e {slow} && sleep 1234.5; echo 1 t/s", f"cmd:touch {slow}; echo 2 t/s")
        self.assertEqual(finished.returncode, 0, finished)
        self.assertRegex(finished.stderr, r"3 pairs: at most \d+ s")
        self.assertIn("warning: the time was over: 1 of 3 pairs were run", finished.stderr)
        result = json.loads(finished.stdout)
        self.assertEqual(result["ab"]["pairs"], 1)
        self.assertEqual(result["cut_short"], ["the time was over: 1 of 3 pairs were run"])

    def test_ab_failures_are_one_line(self) -> None:
        good = "cmd:echo 1 tok/s"
        for sides, mentioned in [
            ((good, "cmd:echo alas >&2; exit 3"), ("B: ", "exit code 3: alas")),
            (("cmd:no-such-program", good), ("A: ", "exit code 127", "no-such-program")),
            (("cmd:kill -9 $$", good), ("A: ", "exit code 137")),
            (("cmd:echo fast", good), ("A: ", "prints no speed", "tok/s")),
            (("-m absent.gguf", good), ("A: ", "exit code 1: absent.gguf")),
            ((f"-m {self.model} {' '.join(TESTS)} -r 1", good), ("A measured pp8, tg2, but B measured a speed",)),
            (("cmd:yes", good), ("A: ", "more than 64 MiB")),
        ]:
            with self.subTest(sides=sides):
                self.assert_fails(bench("--cold-mib", "8", "--pairs", "1", "--ab", *sides), FAILURE, *mentioned)

    def test_interrupt_ends_both_sides(self) -> None:
        self.assert_interrupt_ends("--ab", "cmd:sleep 1234.5", "cmd:sleep 1234.5")
        left = subprocess.run(["pgrep", "-f", "^sleep 1234.5"], capture_output=True, text=True, check=False)
        self.assertEqual(left.stdout, "")

    def test_compare_reads_two_results(self) -> None:
        old, new = self.path / "old.json", self.path / "new.json"
        result = self.run_json("-m", self.model, *TESTS)
        old.write_text(json.dumps(result))
        for row in result["models"]:
            row["samples"] = [3 * sample for sample in row["samples"]]
        result["machine"]["cpu"] = "Another"
        result["models"][1]["roof"]["memory_read_gb_s"] *= 2
        new.write_text(json.dumps(result))
        finished = bench("--compare", old, new, "--json")
        self.assertEqual(finished.returncode, 0, finished)
        rows = json.loads(finished.stdout)["rows"]
        self.assertEqual([row["name"].split()[1] for row in rows], ["pp8", "tg2"])
        for row in rows:
            self.assertAlmostEqual(row["ratio"], 3, delta=1e-3)
            self.assertIs(row["same_answer"], True)
            self.assertIs(row["beyond_noise"], False)  # of two samples each
        warnings = finished.stderr.splitlines()
        self.assertEqual(len(warnings), 2, warnings)
        self.assertIn("differ in cpu", warnings[0])
        self.assertIn("1 of 2 rows", warnings[1])
        self.assertIn("too few samples", bench("--compare", old, new).stdout)

        (self.path / "broken.json").write_text("{")
        for second, mentioned in [("absent.json", "absent.json"), (self.path / "broken.json", "is not JSON")]:
            self.assert_fails(bench("--compare", old, second), FAILURE, mentioned)

    def read_page(self, *arguments: str) -> PageReader:
        file = self.path / "page.html"
        finished = bench("--html", file, *arguments)
        self.assertEqual(finished.returncode, 0, finished)
        text = file.read_text()
        page = PageReader()
        page.feed(text)
        page.close()
        self.assertEqual(page.open, [])
        pictures = text.split("<svg")[1:]
        for picture in pictures:
            xml.etree.ElementTree.fromstring("<svg" + picture.split("</svg>")[0] + "</svg>")
        self.assertNotRegex(text, r"(?i)(src|href|url\(|@import|nan\b|\binf\b)")  # it loads nothing, and has no broken numbers
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertEqual(page.count("div", "wide"), page.count("div", "narrow"))
        return page

    def test_page_of_kernels_and_models(self) -> None:
        odd = self.path / "<i>&'\"odd.gguf"
        odd.write_bytes(self.model.read_bytes())
        page = self.read_page(*SMALL, "-m", odd, *TESTS, "-d", "0,20,40", "--kernels", "--format", "q8_0,bf16", "--heads",
                              "4:2x32", "--shapes", "64x256", "--tokens", "1,4", "--isa", self.best_isa(), "--cold-mib", "64")
        self.assertIn("<i>&'\"odd.gguf", page.text)
        self.assertEqual(page.count("i"), 0)
        self.assertEqual(page.count("div", "wide"), 3)  # the roofline; decoding and prompts by depth
        # A dot for each product, a square for each attention, a dot for each depth, twice; and the legends.
        self.assertEqual(page.count("rect", "dot"), 2 * 6)
        self.assertEqual(page.count("circle", "dot"), 2 * (8 + 3 + 3) + 3 + 1 + 1)
        for text in ("operations a byte", "Gop/s", "tok/s", "tokens in the context", "int8 peak", "memory"):
            self.assertIn(text, page.text)

    def test_page_of_a_comparison_and_of_the_machine(self) -> None:
        page = self.read_page("--cold-mib", "8", "--pairs", "3", "--ab", "cmd:echo '2 t/s' '<b>'", "cmd:echo 3 t/s")
        self.assertIn("cmd:echo '2 t/s' '<b>'", page.text)
        self.assertEqual(page.count("b"), 0)
        self.assertIn("B / A", page.text)
        page = self.read_page(*SMALL, "--machine")
        self.assertIn("Arithmetic", page.text)
        self.assert_fails(bench("-m", self.model, "--html", self.path / "absent" / "page.html"), FAILURE, "page.html")

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
            (("--synthetic", "qwen3-4b", "--format", "q9_k"), ("--format", "'q9_k'", "q4_k")),
            (("--kernels", "--shapes", "10by10"), ("--shapes", "'10by10'", "9728x2560")),
            (("--kernels", "--tokens", "0"), ("--tokens", "'0'")),
            (("--kernels", "--heads", "9:2x64"), ("--heads", "'9:2x64'", "32:8x128")),
            (("--kernels", "--heads", "8x64"), ("--heads", "'8x64'")),
            ((*model, "--compare", "a.json", "b.json", "--html", "x"), ("--compare",)),
            (("--layers", "3"), ("--layers", "--synthetic")),
            (("--write", "x.gguf"), ("--write", "--synthetic")),
            (("--synthetic", "qwen3-4b,qwen3-8b", "--write", "x.gguf"), ("--write", "one shape")),
            (("--synthetic", "qwen3-4b", "--write", "x.gguf", "--machine"), ("--write", "measures nothing")),
            ((*model, "--ab", "-t 1"), ("--ab", "2 required")),
            ((*model, "--ab", "-t 1", "-t x"), ("--ab", "'-t x'", "--threads")),
            ((*model, "--ab", "-t '1", ""), ("--ab", "quotes")),
            ((*model, "--ab", "--machine", ""), ("--ab", "--machine is not for a side")),
            (("--ab", "-t 1", "-t 2"), ("--ab", "a side needs a model")),
            ((*model, "--kernels", "--ab", "", ""), ("--ab", "--kernels")),
            ((*model, "--pairs", "0", "--ab", "", ""), ("--pairs", "'0'")),
            (("--compare", "a.json"), ("--compare", "2 required")),
            ((*model, "--compare", "a.json", "b.json"), ("--compare", "measures nothing")),
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
        self.assert_interrupt_ends("-m", str(self.model), "-n", "1000000", "-p", "0")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
