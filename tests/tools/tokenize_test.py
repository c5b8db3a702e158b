#!/usr/bin/env python3
"""End-to-end tests of `eider tokenize`. python3's standard library only.

Usage: tokenize_test.py PROGRAM [unittest flags...]
"""
import json
import os
import pathlib
import pty
import subprocess
import sys
import unittest

import tiny_model
from cli_test import FAILURE, PROGRAM, USAGE, CommandLineTest, eider


class TokenizeTest(CommandLineTest):
    """`eider tokenize` on the tiny model, whose tokens are bytes."""

    def tokenize(self, *arguments: str, stdin: str = "", **variables: str) -> str:
        finished = subprocess.run([PROGRAM, "tokenize", "-m", str(self.model), *map(str, arguments)], input=stdin,
                                  capture_output=True, text=True, timeout=120, check=False,
                                  env=os.environ | variables)
        self.assertEqual((finished.returncode, finished.stderr), (0, ""), finished)
        return finished.stdout

    def write(self, name: str, content: str) -> pathlib.Path:
        path = self.path / name
        path.write_text(content)
        return path

    def test_text_from_everywhere(self) -> None:
        text = "Hi é\n"
        expected = tiny_model.encode(text)
        for arguments, stdin in [(("-p", text), ""), (("-f", self.write("text", text)), ""), ((), text)]:
            answer = json.loads(self.tokenize("--json", *arguments, stdin=stdin))
            self.assertEqual(answer["ids"], expected)
            self.assertEqual(len(answer["pieces"]), len(expected))
        self.assertEqual(self.tokenize("-p", "a\n"), f"{tiny_model.token_id('a'):>8} a\n"
                                                     f"{tiny_model.token_id(chr(10)):>8} \\n\n")

    def test_special_tokens(self) -> None:
        text = "<|im_end|>"
        special = [tiny_model.token_id(text)]
        self.assertEqual(json.loads(self.tokenize("--json", "-p", text))["ids"], special)
        plain = json.loads(self.tokenize("--json", "--no-parse-special", "-p", text))["ids"]
        self.assertEqual(plain, tiny_model.encode(text))

    def test_json_lines(self) -> None:
        lines = ["a", "", "é\n\"", "x<|im_start|>", " "]
        output = self.tokenize("--jsonl", stdin="".join(json.dumps(line) + "\n" for line in lines))
        ids = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(ids[:3], [tiny_model.encode(line) for line in lines[:3]])
        self.assertEqual(ids[3], [*tiny_model.encode("x"), tiny_model.token_id("<|im_start|>")])
        back = self.tokenize("--jsonl", "--decode", stdin=output)
        self.assertEqual([json.loads(line) for line in back.splitlines()], lines)

    def test_decode(self) -> None:
        ids = tiny_model.encode("a é\n")
        for text in (json.dumps(ids), " ".join(map(str, ids)), ", ".join(map(str, ids)) + "\n"):
            self.assertEqual(self.tokenize("--decode", "-p", text), "a é\n")

    def test_chat(self) -> None:
        messages = self.write("messages.json", '[{"role": "user", "content": "Hi <é>"}]')
        prompt = "<|im_start|>user\nHi <é><|im_end|>\n<|im_start|>assistant\n"
        self.assertEqual(self.tokenize("--chat", messages, "--render"), prompt)
        self.assertEqual(json.loads(self.tokenize("--chat", messages, "--json"))["ids"],
                         json.loads(self.tokenize("-p", prompt, "--json"))["ids"])
        template = self.write("template.jinja", "{{ bos_token }}|{{ eos_token }}|{{ add_generation_prompt }}|{{ x }}|"
                                                "{{ tools | tojson }}|{{ strftime_now('%Y-%m-%d %H:%M') }}")
        tools = self.write("tools.json", '[{"b": 1, "a": 2.0}]')
        rendered = self.tokenize("--chat", messages, "--render", "--chat-template-file", template, "--tools", tools,
                                 "--template-args", '{"add_generation_prompt": false, "eos_token": "E", "x": [1]}',
                                 SOURCE_DATE_EPOCH="86461", TZ="Asia/Tokyo")
        self.assertEqual(rendered, '<|im_start|>|E|False|[1]|[{"b": 1, "a": 2.0}]|1970-01-02 00:01')

    def test_tokenizer_json(self) -> None:
        alphabet = {character: 2 * byte for byte, character in enumerate(tiny_model.byte_alphabet())}
        tokenizer = {"model": {"type": "BPE", "vocab": alphabet | {"ab": 1}, "merges": [["a", "b"]]},
                     "added_tokens": [{"id": 600, "content": "<s>", "special": True, "normalized": False},
                                      {"id": 601, "content": "[X]", "lstrip": True, "rstrip": True}],
                     "normalizer": {"type": "NFC"},
                     "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}}
        folder = self.path / "published"
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        (folder / "tokenizer_config.json").write_text('{"bos_token": "<s>", "add_bos_token": true}')
        (folder / "chat_template.jinja").write_text("{{ bos_token }}{{ messages[0].content }}")

        def ids(path: pathlib.Path, *arguments: str) -> list[int]:
            finished = eider("tokenize", "-m", path, "--json", *arguments)
            self.assertEqual(finished.returncode, 0, finished)
            return json.loads(finished.stdout)["ids"]

        self.assertEqual(ids(folder, "-p", "<s>abc"), [600, 1, alphabet["c"]])
        self.assertEqual(ids(folder, "-p", "a \n[X]\t b"), [alphabet["a"], 601, alphabet["b"]])
        self.assertEqual(ids(folder, "-p", "ab", "--add-special"), [600, 1])
        self.assertEqual(ids(folder / "tokenizer.json", "-p", "ab", "--add-special"), [1])
        messages = self.write("messages.json", '[{"role": "user", "content": "ab"}]')
        self.assertEqual(ids(folder, "--chat", messages), [600, 1])

        for part, content, mentioned in [("normalizer", {"type": "Uppercase"}, "Uppercase"),
                                         ("pre_tokenizer", {"type": "Syllables"}, "Syllables"),
                                         ("decoder", {"type": "Vocoder"}, "decoder"),
                                         ("model", {"type": "WordPiece", "vocab": {}}, "WordPiece"),
                                         ("post_processor", {"type": "BertProcessing"}, "BertProcessing")]:
            wrong = self.write("wrong.json", json.dumps(tokenizer | {part: content}))
            self.assert_fails(eider("tokenize", "-m", wrong, "-p", "x"), FAILURE, wrong, part, mentioned)

    def test_what_goes_wrong_is_named(self) -> None:
        messages = self.write("messages.json", "[]")
        base = ("tokenize", "-m", self.model)
        for arguments, stdin, code, mentioned in [
            (("-p", "x", "-f", "y"), "", USAGE, ("--file", "--prompt")),
            (("-p", "x", "--render"), "", USAGE, ("--render", "--chat")),
            (("-p", "x", "--json", "--jsonl"), "", USAGE, ("--json", "--jsonl")),
            (("--chat", messages, "-p", "x"), "", USAGE, ("--chat", "--prompt")),
            (("--jsonl",), '"a"\n{}\n', FAILURE, ("line 2", "string")),
            (("--jsonl",), '"a"\n"b\n', FAILURE, ("line 2", "JSON")),
            (("--decode", "-p", "1 999999"), "", FAILURE, ("999999",)),
            (("--decode", "-p", "1 -1"), "", FAILURE, ("-1",)),
            (("--decode", "-p", "x"), "", FAILURE, ("ids", "JSON")),
            (("--chat", self.path / "none.json", "--render"), "", FAILURE, ("none.json",)),
            (("--chat", messages, "--render", "--template-args", "5"), "", USAGE, ("--template-args", "object")),
            (("--chat", messages, "--render", "--chat-template-file", self.write("wrong.jinja", "\n{% if %}")), "",
             FAILURE, ("chat template", "line 2")),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_fails(eider(*base, *arguments, stdin=stdin), code, *mentioned)
        self.assert_fails(eider("tokenize", "-m", self.path, "-p", "x"), FAILURE, "tokenizer.json")
        self.assert_fails(eider("tokenize", "-m", "/dev/null", "-p", "x"), FAILURE, "/dev/null")

    def test_colour_only_where_it_is_wanted(self) -> None:
        def shown(**variables: str) -> bytes:
            controller, terminal = pty.openpty()
            environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            with subprocess.Popen([PROGRAM, "tokenize", "-m", str(self.model), "-p", "ab"], stdout=terminal,
                                  env=environment | variables) as process:
                process.wait(timeout=120)
            os.close(terminal)
            output = os.read(controller, 4096)
            os.close(controller)
            return output

        self.assertIn(b"\x1b[", shown(TERM="xterm"))
        self.assertNotIn(b"\x1b", shown(TERM="xterm", NO_COLOR="1"))


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1))
