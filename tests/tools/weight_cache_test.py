"""End-to-end tests of prepared weights: `eider prepare`, `eider cache`, and starts that use what they left.

Usage: weight_cache_test.py PROGRAM FULL_DISK_LIBRARY [unittest flags...]. EIDER_KILLS=100 kills a prepare that often
(8 by default).
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import cli_test
import tiny_model
from cli_test import FAILURE, USAGE, CommandLineTest, eider

FULL_DISK = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
SECTIONS = 3  # of the tiny model: two layers and what is outside of them


class WeightCacheTest(CommandLineTest):
    """Base: a cache directory of the test's own, and the tiny model's answer without any."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.expected = cls.hash_of(cls.ask("--no-weight-cache"))

    def setUp(self) -> None:
        self.cache = self.path / self.id().rsplit(".", 1)[-1]

    @classmethod
    def ask(cls, *flags: str, env: dict | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([cli_test.PROGRAM, "run", "-m", cls.model, "--raw", "-p", "Hello", "-n", "4", "--seed",
                               "1", "-c", "512", "--json", *map(str, flags)], capture_output=True, text=True,
                              timeout=120, check=False, env={**os.environ, **(env or {})})

    @staticmethod
    def hash_of(finished: subprocess.CompletedProcess) -> str:
        assert finished.returncode == 0, finished
        return json.loads(finished.stdout)["logits_hash"]

    def start(self, *flags: str, env: dict | None = None) -> str:
        """A start with the cache must give the same logits; what it said on stderr beside the statistics."""
        finished = self.ask("--weight-cache", self.cache, *flags, env=env)
        self.assertEqual(self.hash_of(finished), self.expected)
        return "".join(line + "\n" for line in finished.stderr.splitlines()
                       if not line.startswith(("prompt:", "answer:")))

    def prepare(self, *flags: str, env: dict | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([cli_test.PROGRAM, "prepare", "-m", self.model, "--weight-cache", self.cache, *flags],
                              capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, **(env or {})})

    def mount_tmpfs(self, options: str) -> None:
        """On the cache directory; skips the test where that is not allowed."""
        self.cache.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.cache], capture_output=True,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest("may not mount a tmpfs")
        self.addCleanup(subprocess.run, ["umount", self.cache], check=True)

    def files(self) -> list[dict]:
        finished = eider("cache", "ls", "--weight-cache", self.cache, "--json")
        self.assertEqual(finished.returncode, 0, finished)
        return json.loads(finished.stdout)["files"]

    def file(self) -> pathlib.Path:
        return pathlib.Path(self.files()[0]["path"])


class PrepareTest(WeightCacheTest):
    def test_prepare_then_start(self) -> None:
        finished = self.prepare()
        self.assertEqual(finished.returncode, 0, finished)
        self.assertEqual(finished.stderr, "")
        [entry] = self.files()
        self.assertIn(entry["path"], finished.stdout)
        self.assertEqual(entry["model"], str(self.model.resolve()))
        self.assertEqual((entry["finished"], entry["sections"]), (SECTIONS, SECTIONS))
        before = self.file().read_bytes()
        self.assertEqual(self.start(), "")
        self.assertEqual(self.prepare().returncode, 0)
        self.assertEqual(self.file().read_bytes(), before)

    def test_tiny_models_are_kept_only_where_asked(self) -> None:
        self.assertEqual(self.start(), "")
        self.assertFalse(self.cache.exists())

    def test_default_directory(self) -> None:
        for env, directory in [({"XDG_CACHE_HOME": str(self.cache / "xdg")}, self.cache / "xdg"),
                               ({"XDG_CACHE_HOME": "", "HOME": str(self.cache)}, self.cache / ".cache")]:
            finished = subprocess.run([cli_test.PROGRAM, "prepare", "-m", self.model], capture_output=True, text=True,
                                      timeout=120, check=False, env={**os.environ, **env})
            self.assertEqual(finished.returncode, 0, finished)
            self.assertEqual(len(list((directory / "eider" / "prepared").glob("*.prepared"))), 1)
        finished = subprocess.run([cli_test.PROGRAM, "cache", "ls"], capture_output=True, text=True, check=False,
                                  env={**os.environ, "XDG_CACHE_HOME": "", "HOME": ""})
        self.assert_fails(finished, FAILURE, "--weight-cache")

    def test_damage_is_mended(self) -> None:
        self.prepare()
        good = self.file().read_bytes()
        random.seed(1)
        for place in [0, 9, 30, len(good) - 1, *(random.randrange(len(good)) for _ in range(6))]:
            with self.subTest(place=place):
                damaged = bytearray(good)
                damaged[place] ^= 0x40
                self.file().write_bytes(damaged)
                said = self.start()
                self.assertRegex(said, r"\Awarning: .*; it is prepared anew\n\Z")
                self.assertEqual(self.file().read_bytes(), good)

    def test_a_changed_model_is_prepared_anew(self) -> None:
        self.prepare()
        before = self.file()
        os.utime(self.model, (1, 1))
        self.addCleanup(os.utime, self.model)
        self.assertEqual(self.prepare().returncode, 0)
        self.assertNotEqual(self.file(), before)
        self.assertFalse(before.exists())

    def test_flags(self) -> None:
        run = ("run", "-m", self.model, "-p", "x")
        for arguments, mentioned in [
            ((*run, "--cache-size", "much"), ("--cache-size", "'much'", "20G")),
            ((*run, "--cache-size", "-1"), ("--cache-size", "'-1'")),
            ((*run, "--cache-size", ""), ("--cache-size", "''")),
            ((*run, "--cache-size", "9999T"), ("--cache-size",)),
            ((*run, "--weight-cache", ""), ("--weight-cache", "''")),
            (("prepare",), ("--model",)),
            (("cache",), ("cache",)),
            (("cache", "rm"), ("--all",)),
            (("cache", "rm", "a", "--all"), ("--all",)),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(eider(*arguments), USAGE, *mentioned)
        self.assert_fails(self.prepare("--cache-size", "10K"), FAILURE, "--cache-size", "10.0 KiB")

    def test_a_directory_that_cannot_be_used(self) -> None:
        self.cache.write_text("a file")
        self.assert_fails(self.prepare(), FAILURE, self.cache)


class CacheCommandTest(WeightCacheTest):
    def cache_command(self, *arguments: str) -> subprocess.CompletedProcess:
        return eider("cache", *arguments, "--weight-cache", self.cache)

    def test_ls(self) -> None:
        self.assertEqual(self.cache_command("ls").stdout, f"{self.cache}: 0 files, 0.0 KiB\n")
        self.prepare()
        lines = self.cache_command("ls").stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn(self.file().name[:12], lines[0])
        self.assertIn("finished", lines[0])
        self.assertIn(str(self.model.resolve()), lines[0])

    def test_verify(self) -> None:
        self.prepare()
        path, good = self.file(), self.file().read_bytes()
        self.assertEqual(self.cache_command("verify").stdout, f"{path}: finished\n")
        random.seed(2)
        for place in [3, 100, len(good) - 1, *(random.randrange(len(good)) for _ in range(10))]:
            with self.subTest(place=place):
                damaged = bytearray(good)
                damaged[place] ^= 1
                path.write_bytes(damaged)
                finished = self.cache_command("verify")
                self.assertEqual(finished.returncode, FAILURE, finished)
                self.assertIn(str(path), finished.stdout)
                self.assertEqual(len(finished.stderr.splitlines()), 1)
                self.start()
                self.assertEqual(path.read_bytes(), good)

    def test_rm(self) -> None:
        self.prepare()
        self.assert_fails(self.cache_command("rm", "nothing"), FAILURE, "'nothing'")
        for arguments in [(self.file().name[:8],), (self.model,), ("--all",)]:
            finished = self.cache_command("rm", *arguments)
            self.assertEqual(finished.returncode, 0, finished)
            self.assertEqual(self.files(), [])
            self.prepare()


class FullDiskTest(WeightCacheTest):
    """The disk is full at one write after the other: one line, and nothing half-valid is left."""

    def check(self, env: dict) -> None:
        writes = 0
        for writes in range(1, 100):
            full = {**env, "LD_PRELOAD": FULL_DISK, "EIDER_FAIL_AT": str(writes)}
            finished = self.prepare(env=full)
            if finished.returncode == 0:
                break
            self.assert_fails(finished, FAILURE, self.cache, "cannot write: No space left on device")
            self.assertEqual(self.files(), [])
            self.assertEqual(self.start(env=full), "")
        # The start, each section's data and record, and twice as many waits for the disk.
        self.assertGreater(writes, 3 * SECTIONS)
        self.assertEqual(self.start(), "")

    @unittest.skipUnless(FULL_DISK, "no library")
    def test_every_write(self) -> None:
        self.check({})

    @unittest.skipUnless(FULL_DISK, "no library")
    def test_every_write_where_no_space_can_be_taken_ahead(self) -> None:
        self.check({"EIDER_NO_RESERVE": "1"})

    @unittest.skipUnless(FULL_DISK, "no library")
    def test_a_start_warns_and_goes_on(self) -> None:
        self.prepare()
        content = bytearray(self.file().read_bytes())
        content[-1] ^= 1
        self.file().write_bytes(content)
        for writes in range(1, 6):
            said = self.start(env={"LD_PRELOAD": FULL_DISK, "EIDER_FAIL_AT": str(writes)})
            self.assertIn("No space left on device", said)
            self.assertTrue(all(line.startswith("warning: ") for line in said.splitlines()), said)
            self.prepare()
            self.file().write_bytes(content)

    def test_small_file_system(self) -> None:
        self.mount_tmpfs("size=200k")
        self.assert_fails(self.prepare("--cache-size", "1G"), FAILURE, self.cache, "No space left on device")
        self.assertEqual(list(self.cache.iterdir()), [])


class LargerModelTest(WeightCacheTest):
    """A model that takes some hundred milliseconds to prepare."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.larger = cls.path / "larger.gguf"
        finished = eider("bench", "--synthetic", "qwen3-0.6b", "--layers", "6", "--format", "q4_0", "--write",
                         cls.larger)
        assert finished.returncode == 0, finished
        cls.ids = cls.path / "ids.json"
        cls.ids.write_text("[1, 2, 3, 5, 8, 13, 21]")
        cls.nll = cls.score("--no-weight-cache")

    @classmethod
    def score(cls, *flags: str) -> list[float]:
        finished = eider("perplexity", "-m", cls.larger, "--ids", cls.ids, "--json", *flags)
        assert finished.returncode == 0, finished
        return json.loads(finished.stdout)["nll"]

    def command(self) -> list[str]:
        return [cli_test.PROGRAM, "prepare", "-m", str(self.larger), "--weight-cache", str(self.cache)]

    def finished_sections(self) -> int:
        files = self.files()
        self.assertLessEqual(len(files), 1)
        return files[0]["finished"] if files and not files[0]["problem"] else 0

    def test_kill(self) -> None:
        kills = int(os.environ.get("EIDER_KILLS", "8"))
        random.seed(os.environ.get("EIDER_KILL_SEED", "1"))
        begin = time.monotonic()
        subprocess.run(self.command(), check=True, capture_output=True, timeout=600)
        whole = time.monotonic() - begin
        stages = set()
        killed = before = 0
        shutil.rmtree(self.cache)
        while killed < kills:
            process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, whole))
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            done = self.finished_sections()
            self.assertGreaterEqual(done, before, "a finished section was lost")
            stages.add(done)
            if self.files() and not self.files()[0]["problem"]:
                verified = eider("cache", "verify", "--weight-cache", self.cache)
                self.assertEqual(verified.returncode, 0, verified)
            before = done
            if random.random() < 0.5:  # the next start, after one or more kills
                self.assertEqual(self.score("--weight-cache", self.cache), self.nll)
                self.assertEqual(self.finished_sections(), 7)
                self.assertEqual(self.score("--weight-cache", self.cache), self.nll)
                shutil.rmtree(self.cache)
                before = 0
        print(f"{killed} kills; finished sections seen: {sorted(stages)}", file=sys.stderr)

    def test_two_at_once(self) -> None:
        processes = [subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for _ in range(3)]
        self.assertEqual(self.score("--weight-cache", self.cache), self.nll)
        for process in processes:
            out, err = process.communicate(timeout=600)
            self.assertEqual((process.returncode, err), (0, ""), out)
        self.assertEqual(self.finished_sections(), 7)
        self.assertEqual(eider("cache", "verify", "--weight-cache", self.cache).returncode, 0)
        self.assertEqual(self.score("--weight-cache", self.cache), self.nll)

    def test_a_file_system_without_huge_pages(self) -> None:
        self.mount_tmpfs("size=1g,huge=never")
        subprocess.run(self.command(), check=True, capture_output=True, timeout=600)
        inspected = eider("inspect", "-m", self.larger, "--weight-cache", self.cache, "--json").stdout
        self.assertEqual(json.loads(inspected)["prepared"]["huge_bytes"], 0)
        # The run goes on while its weights move to memory that has them.
        self.assertEqual(self.score("--weight-cache", self.cache), self.nll)

    def test_least_recently_used(self) -> None:
        subprocess.run(self.command(), check=True, capture_output=True, timeout=600)
        size = self.files()[0]["bytes"]
        self.assertEqual(self.prepare("--cache-size", str(2 * size)).returncode, 0)
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(eider("cache", "rm", self.model, "--weight-cache", self.cache).returncode, 0)
        self.assertEqual(self.prepare("--cache-size", str(size)).returncode, 0)
        self.assertEqual([entry["model"] for entry in self.files()], [str(self.model.resolve())])

    def test_inspect(self) -> None:
        arguments = ("inspect", "-m", self.larger, "--weight-cache", self.cache)
        self.assertRegex(eider(*arguments).stdout, r"prepared weights +none yet")
        subprocess.run(self.command(), check=True, capture_output=True, timeout=600)
        self.assertRegex(eider(*arguments).stdout, r"prepared weights +\d.*7 of 7 .*huge pages")
        prepared = json.loads(eider(*arguments, "--json").stdout)["prepared"]
        self.assertEqual(prepared["path"], str(self.file()))
        self.assertEqual((prepared["finished"], prepared["sections"]), (7, 7))
        self.assertTrue(0 <= prepared["huge_bytes"] <= prepared["resident_bytes"] <= prepared["bytes"])


class CheckBehindTest(WeightCacheTest):
    """A model of more than 256 MiB, which is checked while it runs."""

    def test_a_run_that_is_over_before_the_check_waits_for_it(self) -> None:
        large = self.path / "large.gguf"
        written = eider("bench", "--synthetic", "qwen3-4b", "--layers", "1", "--format", "q4_1", "--write", large)
        self.assertEqual(written.returncode, 0, written)
        ids = self.path / "two.json"
        ids.write_text("[1, 2]")
        command = ("perplexity", "-m", large, "--ids", ids, "--weight-cache", self.cache)
        prepared = eider("prepare", "-m", large, "--weight-cache", self.cache)
        self.assertEqual(prepared.returncode, 0, prepared)
        [entry] = self.files()
        self.assertGreater(entry["bytes"], 256 << 20)
        right = eider(*command)
        self.assertEqual((right.returncode, right.stderr), (0, ""))
        with open(entry["path"], "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        damaged = eider(*command)
        self.assertEqual(damaged.returncode, FAILURE, damaged)
        self.assertRegex(damaged.stderr, r"\Aerror: .*damaged, so what was computed is void.*\n\Z")
        again = eider(*command)
        self.assertEqual((again.returncode, again.stdout), (0, right.stdout), again)


class Fp8FormTest(CommandLineTest):
    """How FP8 weights are executed: by the flag, or by what was measured on this machine."""

    def setUp(self) -> None:
        self.cache = self.path / self.id().rsplit(".", 1)[-1]
        self.directory = self.path / "fp8"
        tiny_model.write_directory(self.directory, fp8=True)

    def succeed(self, command: str, *flags: str) -> str:
        finished = eider(command, "-m", self.directory, "--weight-cache", self.cache, *flags)
        self.assertEqual(finished.returncode, 0, finished)
        return finished.stdout

    def logits(self, *flags: str) -> str:
        return json.loads(self.succeed("run", "--raw", "-p", "Hello", "-n", "4", "--seed", "1", "-c", "512", "--json",
                                       *flags))["logits_hash"]

    def chosen(self, *flags: str) -> tuple[str, str]:
        """The form and why, as inspect tells."""
        line = next(line for line in self.succeed("inspect", *flags).splitlines() if line.startswith("fp8 executed as"))
        form, why = line.removeprefix("fp8 executed as").strip().split(" ", 1)
        return form, why

    def test_measured_once(self) -> None:
        form, why = self.chosen()
        self.assertIn(form, ("fp8", "fp9"))
        self.assertEqual(why, "(measured just now)")
        self.assertEqual(self.chosen(), (form, "(measured on such a machine before)"))
        self.assertEqual(json.loads(self.succeed("inspect", "--json"))["fp8_as"], form)
        kept = self.cache / "fp8-as.txt"
        other = "fp9" if form == "fp8" else "fp8"
        kept.write_text(kept.read_text().replace(form + "\n", other + "\n"))
        self.assertEqual(self.chosen()[0], other)
        for damaged in ("", "\n\t\n", "another cpu\tavx1024\t7\tfp9\n", "\0" * 100_000):
            kept.write_text(damaged)
            self.assertEqual(self.chosen()[1], "(measured just now)")
            self.assertEqual(self.chosen()[1], "(measured on such a machine before)")

    def test_forced(self) -> None:
        for form in ("fp8", "fp9"):
            self.assertEqual(self.chosen("--fp8-as", form), (form, "(--fp8-as says so)"))
        self.assertFalse(self.cache.exists())
        self.assert_fails(eider("inspect", "-m", self.directory, "--fp8-as", "fp10"), USAGE, "--fp8-as", "fp8 or fp9")

    def test_directories_that_cannot_be_used(self) -> None:
        self.cache.write_text("a file")
        for _ in range(2):
            self.assertEqual(self.chosen()[1], "(measured just now)")
        self.assertEqual(self.chosen("--no-weight-cache")[1], "(measured just now)")

    def test_forms_are_prepared_apart_and_give_the_same_logits(self) -> None:
        expected = self.logits("--fp8-as", "fp8", "--no-weight-cache")
        self.assertEqual(self.logits("--backend", "reference"), expected)
        self.assertEqual(self.logits("--fp8-as", "fp9", "--no-weight-cache"), expected)
        files = {self.succeed("prepare", "--fp8-as", form).split(":")[0] for form in ("fp8", "fp9")}
        self.assertEqual(len(files), 2)
        for form in ("fp8", "fp9", "fp8"):
            self.assertEqual(self.logits("--fp8-as", form), expected)

    def test_other_models_have_no_form(self) -> None:
        shown = eider("inspect", "-m", self.model, "--weight-cache", self.cache)
        self.assertNotIn("fp8 executed", shown.stdout)
        self.assertFalse(self.cache.exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
