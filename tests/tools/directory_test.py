"""End-to-end tests of Hugging Face directories: `eider run`, `chat` and `inspect` with no more than -m DIRECTORY.

Usage: directory_test.py PROGRAM [unittest flags...].
"""
import json
import pathlib
import shutil
import sys
import unittest

import tiny_model
from cli_test import FAILURE, CommandLineTest, eider


class DirectoryTest(CommandLineTest):
    """The tiny model as a Hugging Face directory."""

    def setUp(self) -> None:
        self.directory = self.path / "directory"
        tiny_model.write_directory(self.directory)

    def write_json(self, name: str, content: dict) -> None:
        (self.directory / name).write_text(json.dumps(content))

    def answer(self, model: pathlib.Path, *arguments: str) -> dict:
        finished = eider("run", "-m", model, "-c", "4096", "--json", "-p", "Hello", "-n", "24", "--seed", "5", *arguments)
        self.assertEqual(finished.returncode, 0, finished)
        return json.loads(finished.stdout)

    def test_answers_as_the_gguf_file_does(self) -> None:
        ours, file = self.answer(self.directory), self.answer(self.model)
        for key in ("text", "prompt_ids", "ids", "logits_hash", "finish_reason"):
            self.assertEqual(ours[key], file[key])

    def test_advice_for_sampling_is_the_default(self) -> None:
        plain = self.answer(self.directory)
        advised = {"temperature": 1.5, "top_k": 7, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.2}
        flags = ("--temp", "1.5", "--top-k", "7", "--top-p", "0.9", "--min-p", "0.01", "--repeat-penalty", "1.2")
        self.write_json("generation_config.json", advised)
        self.assertEqual(self.answer(self.directory)["ids"], self.answer(self.model, *flags)["ids"])
        defaults = ("--temp", "0.8", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.05", "--repeat-penalty", "1")
        self.assertNotEqual(self.answer(self.directory)["ids"], plain["ids"])
        self.assertEqual(self.answer(self.directory, *defaults)["ids"], plain["ids"])
        shown = eider("inspect", "-m", self.directory)
        self.assertIn("temperature 1.5, top_k 7, top_p 0.9, min_p 0.01, repetition_penalty 1.2", shown.stdout)
        self.assertEqual(json.loads(eider("inspect", "-m", self.directory, "--json").stdout)["sampling"], advised)

    def test_chat_samples_by_advice_too(self) -> None:
        self.write_json("generation_config.json", {"temperature": 1.25})
        shown = eider("chat", "-m", self.directory, "-c", "4096", "--top-k", "9", stdin="/set\n")
        self.assertIn("[1.25]", shown.stderr + shown.stdout)
        self.assertIn("[9]", shown.stderr + shown.stdout)

    def test_end_tokens(self) -> None:
        ends = self.answer(self.directory, "--ignore-eos")["ids"][5]
        self.write_json("generation_config.json", {"eos_token_id": [0, ends]})
        answer = self.answer(self.directory)
        self.assertEqual((answer["ids"][-1], answer["finish_reason"]), (ends, "stop"))
        self.assertLessEqual(len(answer["ids"]), 6)

    def test_wrong_advice_is_named(self) -> None:
        self.write_json("generation_config.json", {"top_p": 2})
        self.assert_fails(eider("run", "-m", self.directory, "-p", "x"), FAILURE, "generation_config.json: top_p: 2")

    def test_pooling_is_shown(self) -> None:
        def pooling() -> str | None:
            return json.loads(eider("inspect", "-m", self.directory, "--json").stdout)["pooling"]

        self.assertEqual(pooling(), "last")
        (self.directory / "1_Pooling").mkdir()
        self.addCleanup(shutil.rmtree, self.directory / "1_Pooling")
        self.write_json("1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
        self.assertEqual(pooling(), "mean")
        self.write_json("1_Pooling/config.json", {"pooling_mode": "attention"})
        self.assertIsNone(pooling())
        self.assertIn("none: 1_Pooling/config.json", eider("inspect", "-m", self.directory).stdout)
        self.answer(self.directory)
        self.write_json("1_Pooling/config.json", {"pooling_mode": 1})
        self.assert_fails(eider("run", "-m", self.directory, "-p", "x"), FAILURE, "1_Pooling/config.json: pooling_mode")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
