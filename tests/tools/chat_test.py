#!/usr/bin/env python3
"""Tests of `eider chat` as a person at a terminal sees it (through a pseudo-terminal of 80 columns), and as a script
does. python3's standard library only.

Usage: chat_test.py PROGRAM [unittest flags...]
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import tiny_model

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
CTRL_C, CTRL_D, CTRL_R, ENTER, ALT_ENTER, UP = "\x03", "\x04", "\x12", "\r", "\x1b\r", "\x1b[A"
FAILURE, INTERRUPTED = 1, 130
# The tiny model never ends its turn by itself: both tokens that would are banned.
ENDLESS = ("-l", "0-inf", "-l", "2-inf")
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def prompt_tokens(*turns: tuple[str, int]) -> int:
    """Tokens of a prompt: for each turn the user's text and the tokens generated for it (the last one's: 0)."""
    total = 0
    for text, generated in turns:
        user = 1 + len(tiny_model.encode("user\n" + text)) + 2  # <|im_start|> ... <|im_end|> newline
        assistant = 1 + len(tiny_model.encode("assistant\n"))
        total += user + assistant + generated
    return total + 2 * (len(turns) - 1)  # after each answer: <|im_end|> newline


class Terminal:
    """A program at a pseudo-terminal."""

    def __init__(self, arguments: list[str], environment: dict[str, str]):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.execve(arguments[0], arguments, environment)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.raw = b""  # everything shown so far
        self.seen = 0   # what expect() has passed

    def read(self, seconds: float) -> bool:
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.descriptor, 65536)
        except OSError:  # the program has ended
            return False
        self.raw += piece
        return bool(piece)

    def expect(self, pattern: str) -> re.Match:
        """Waits until `pattern` is shown after what was expected before; colours and cursor motions are ignored."""
        deadline = time.monotonic() + 60
        while True:
            shown = ESCAPE.sub(b"", self.raw).decode(errors="replace")
            found = re.compile(pattern).search(shown, self.seen)
            if found:
                self.seen = found.end()
                return found
            if not self.read(max(0.0, deadline - time.monotonic())):
                raise AssertionError(f"{pattern!r} did not come; shown: {shown[self.seen:][-2000:]!r}")

    def send(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def ask(self, text: str) -> None:
        self.expect("> ")
        self.send(text + ENTER)

    def leave(self) -> int:
        self.expect("> ")
        self.send(CTRL_D)
        return self.end()

    def interrupt_again(self) -> None:
        """A second Ctrl-C that follows the first at once, but not so fast that the system makes one signal of both."""
        time.sleep(0.1)
        self.send(CTRL_C)

    def end(self) -> int:
        """Waits for the program's end and returns its exit code as a shell counts it. One that stays is killed."""
        deadline = time.monotonic() + 60
        while (ended := os.waitpid(self.pid, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            self.read(0.05)
        os.close(self.descriptor)
        return 128 + os.WTERMSIG(ended[1]) if os.WIFSIGNALED(ended[1]) else os.WEXITSTATUS(ended[1])


def fill_disk() -> None:
    """Lets this process write no more than 8 bytes to a file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))


class ChatTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.model = self.path / "tiny.gguf"
        self.model.write_bytes(tiny_model.model_bytes())
        self.environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.environment |= {"XDG_STATE_HOME": str(self.path / "state"), "TERM": "xterm", "LC_ALL": "C.UTF-8"}

    def arguments(self, *flags: str) -> list[str]:
        return [PROGRAM, "chat", "-m", str(self.model), "-t", "1", "--seed", "1", *flags]

    def chat(self, *flags: str, **environment: str) -> Terminal:
        return Terminal(self.arguments(*flags), self.environment | environment)

    def script(self, lines: str, *flags: str, code: int = 0) -> subprocess.CompletedProcess:
        finished = subprocess.run(self.arguments(*flags), input=lines.encode(), capture_output=True, timeout=120,
                                  env=self.environment, check=False)
        self.assertEqual(finished.returncode, code, finished)
        return finished

    def assert_turn(self, terminal: Terminal, number: int, prompt: int, kept: int) -> None:
        shown = terminal.expect(r"turn (\d+): (\d+) prompt tokens, (\d+) kept, (\d+) prefilled")
        self.assertEqual([int(text) for text in shown.groups()], [number, prompt, kept, prompt - kept])


class TerminalTest(ChatTest):
    def test_two_turns_compute_only_what_is_new(self) -> None:
        terminal = self.chat("-c", "4096", "-n", "30", "--verbose", *ENDLESS)
        terminal.ask("hello")
        first = prompt_tokens(("hello", 0))
        self.assert_turn(terminal, 1, first, 0)
        terminal.ask("again")
        # The last generated token was never computed; bytes of torn characters were not tokenised again.
        self.assert_turn(terminal, 2, prompt_tokens(("hello", 30), ("again", 0)), first + 29)
        terminal.ask("/stats")
        self.assert_turn(terminal, 2, prompt_tokens(("hello", 30), ("again", 0)), first + 29)
        terminal.expect("context: .* of 4096 tokens")
        self.assertEqual(terminal.leave(), 0)

    def test_regen_takes_the_next_seed(self) -> None:
        terminal = self.chat("-c", "4096", "-n", "30", "--verbose", *ENDLESS)
        terminal.ask("hello")
        self.assert_turn(terminal, 1, prompt_tokens(("hello", 0)), 0)
        terminal.ask("/regen")
        terminal.expect("seed: 2\r\n")
        self.assert_turn(terminal, 1, prompt_tokens(("hello", 0)), prompt_tokens(("hello", 0)) - 1)
        path = self.path / "saved.json"
        terminal.ask(f"/save {path}")
        terminal.expect("2 messages saved")
        terminal.ask("/quit")
        self.assertEqual(terminal.end(), 0)
        self.script(f"hello\n/save {self.path}/other.json\n", "--seed", "2", "-c", "4096", "-n", "30", *ENDLESS)
        self.assertEqual(json.loads(path.read_text()), json.loads((self.path / "other.json").read_text()))

    def test_interrupt_stops_the_answer_and_not_the_program(self) -> None:
        terminal = self.chat("-c", "1000000", *ENDLESS)
        terminal.ask("hello")
        terminal.expect("hello\r\n(?s:.{200})")  # in the middle of an answer
        terminal.send(CTRL_C)
        terminal.expect(r"\(stopped; Ctrl-C again leaves\)")
        terminal.ask("/stats")
        generated = int(terminal.expect(r"answer: (\d+) tokens .*; cancelled").group(1))
        self.assertGreater(generated, 100)
        terminal.ask("/set predict 5")
        terminal.ask("more")
        terminal.expect(r"\(cut after 5 tokens")
        terminal.ask("/stats")
        self.assert_turn(terminal, 2, prompt_tokens(("hello", generated), ("more", 0)),
                         prompt_tokens(("hello", generated - 1)))
        terminal.expect("> ")
        terminal.send("typed" + CTRL_C)  # only empties the line
        terminal.expect(r"\^C")
        terminal.expect("> ")
        terminal.send(CTRL_C)
        terminal.expect("Ctrl-C again leaves")
        terminal.expect("> ")
        terminal.send(CTRL_C)
        self.assertEqual(terminal.end(), INTERRUPTED)

    def test_second_interrupt_leaves(self) -> None:
        for patient in (True, False):  # until the answer has stopped
            terminal = self.chat("-c", "1000000", *ENDLESS)
            terminal.ask("hello")
            terminal.expect("hello\r\n(?s:.{200})")
            terminal.send(CTRL_C)
            if patient:
                terminal.expect("Ctrl-C again leaves")
                terminal.expect("> ")
            terminal.interrupt_again()
            self.assertEqual(terminal.end(), INTERRUPTED)

    def test_interrupts_while_the_prompt_is_read(self) -> None:
        template = self.path / "long.jinja"
        template.write_text("{{ messages[-1]['content'] * 5000 }}")
        terminal = self.chat("-c", "1000000", "-ub", "16", "--chat-template-file", str(template), *ENDLESS)
        terminal.ask("hello ")
        terminal.expect("reading the prompt")
        terminal.send(CTRL_C)
        terminal.expect(r"\(stopped before the answer began")
        terminal.ask("/stats")
        prefilled = int(terminal.expect(r"turn 1: \d+ prompt tokens, 0 kept, (\d+) prefilled").group(1))
        self.assertLess(prefilled, 30000)
        terminal.ask("/regen")
        terminal.expect("reading the prompt")
        terminal.send(CTRL_C)
        terminal.expect(r"\(stopped before the answer began")
        terminal.ask("/stats")
        self.assertEqual(int(terminal.expect(r"turn 1: \d+ prompt tokens, (\d+) kept").group(1)), prefilled)
        terminal.ask("/regen")
        terminal.expect("reading the prompt")
        terminal.send(CTRL_C)
        terminal.interrupt_again()
        self.assertEqual(terminal.end(), INTERRUPTED)

    def test_template_that_rewrites_history_costs_what_differs(self) -> None:
        template = self.path / "forgetful.jinja"  # as templates do that drop what was thought
        template.write_text(tiny_model.CHAT_TEMPLATE.replace(
            "message['content'] +", "('' if message['role'] == 'assistant' else message['content']) +"))
        question = ("why " * 100).strip()
        for window in (None, 128):
            self.model.write_bytes(tiny_model.model_bytes(window=window))
            terminal = self.chat("-c", "4096", "-n", "300", "--verbose", "--chat-template-file", str(template),
                                 *ENDLESS)
            prompts = [0]
            for turn in range(1, 4):
                terminal.ask(question)
                prompts.append(prompt_tokens(*[(question, 0)] * turn))
                # Everything up to the end of the last prompt stays, though the window has long passed it.
                self.assert_turn(terminal, turn, prompts[turn], prompts[turn - 1])
            self.assertEqual(terminal.leave(), 0)

    def test_sliding_window(self) -> None:
        self.model.write_bytes(tiny_model.model_bytes(window=128))
        terminal = self.chat("-c", "4096", "-n", "500", "--verbose", *ENDLESS)
        terminal.ask("hello")
        first = prompt_tokens(("hello", 0))
        self.assert_turn(terminal, 1, first, 0)
        terminal.ask("again")
        second = prompt_tokens(("hello", 500), ("again", 0))
        self.assert_turn(terminal, 2, second, first + 499)
        terminal.ask("/regen")
        self.assert_turn(terminal, 2, second, second - 1)
        self.assertEqual(terminal.leave(), 0)

    def test_save_and_load_keep_the_generated_ids(self) -> None:
        terminal = self.chat("-c", "4096", "-n", "30", "--verbose", *ENDLESS)
        path = self.path / "saved.json"
        terminal.ask("hello")
        terminal.expect("turn 1:")
        terminal.ask(f"/save {path}")
        terminal.expect("2 messages saved")
        terminal.ask("/reset")
        terminal.expect("forgotten")
        terminal.ask(f"/load {path}")
        terminal.expect("2 messages loaded")
        terminal.ask("again")
        self.assert_turn(terminal, 2, prompt_tokens(("hello", 30), ("again", 0)), prompt_tokens(("hello", 29)))
        terminal.ask("/quit")
        self.assertEqual(terminal.end(), 0)
        user, assistant = json.loads(path.read_text())
        self.assertEqual(user, {"role": "user", "content": "hello"})
        self.assertEqual((assistant["role"], len(assistant["ids"])), ("assistant", 30))

        terminal = self.chat("-c", "4096", "-n", "30", "--verbose", *ENDLESS)
        terminal.ask(f"/load {path}")
        terminal.ask("again")
        self.assert_turn(terminal, 2, prompt_tokens(("hello", 30), ("again", 0)), 0)
        terminal.ask("/quit")
        self.assertEqual(terminal.end(), 0)

    def test_full_context_offers_a_choice(self) -> None:
        terminal = self.chat("-c", "150", "-n", "40", "--verbose", *ENDLESS)
        terminal.ask("hello")
        self.assert_turn(terminal, 1, prompt_tokens(("hello", 0)), 0)
        terminal.ask("second" * 12)
        terminal.expect(r"warning: the context is full: this prompt has (\d+) tokens, 150 fit")
        for choice in ("/drop", "/edit", "/reset", "/save"):
            terminal.expect(choice)
        terminal.ask("/drop")
        terminal.expect("the oldest turn is forgotten")
        self.assert_turn(terminal, 1, prompt_tokens(("second" * 12, 0)), len(tiny_model.encode("user\n")) + 1)
        terminal.ask("/drop")
        terminal.expect("error: /drop: there is no turn before the last message")
        terminal.ask("/set predict -1")
        terminal.ask("/regen")
        terminal.expect("the context of 150 tokens is full: the answer was cut")
        terminal.ask("/edit short")
        terminal.expect("the context of 150 tokens is full: the answer was cut")
        terminal.ask("/quit")
        self.assertEqual(terminal.end(), 0)

    def test_editing(self) -> None:
        saved = self.path / "saved.json"
        terminal = self.chat("-c", "4096", "-n", "1", *ENDLESS)
        contents = []
        for keys, expected in [
            ("one" + ALT_ENTER + "two", "one\ntwo"),
            ("back\\" + ENTER + "slash", "back\nslash"),
            ("\x1b[200~pasted\rlines\r\x1b[201~end", "pasted\nlines\nend"),
            ("日本語 ñ" + "\x7f" + "n", "日本語 n"),
            ("//etc is a path", "/etc is a path"),
            (CTRL_R + "one", "one\ntwo"),
            (UP + " again", "one\ntwo again"),
        ]:
            terminal.ask(keys)
            terminal.expect(r"\(cut after 1 tokens")
            terminal.ask(f"/save {saved}")
            terminal.expect("messages saved")
            contents = [message["content"] for message in json.loads(saved.read_text()) if message["role"] == "user"]
            with self.subTest(keys=keys):
                self.assertEqual(contents[-1], expected)
            terminal.ask("/reset")
            terminal.expect("forgotten")
            # The history's last entry is the message again.
            terminal.ask(UP + UP + UP)
            terminal.expect(r"\(cut after 1 tokens")
        terminal.ask("/edit")
        terminal.expect("> one\r\ntwo again")
        terminal.send("!" + ENTER)
        terminal.expect(r"\(cut after 1 tokens")
        terminal.ask(f"/save {saved}")
        terminal.expect("2 messages saved")
        self.assertEqual(json.loads(saved.read_text())[0]["content"], "one\ntwo again!")
        terminal.ask("/quit")
        self.assertEqual(terminal.end(), 0)

    def test_history_outlives_the_program(self) -> None:
        for keys in ("remembered", CTRL_R + "memb"):
            terminal = self.chat("-c", "4096", "-n", "1", *ENDLESS)
            terminal.ask(keys)
            terminal.expect(r"\(cut after 1 tokens")
            terminal.ask(f"/save {self.path}/saved.json")
            terminal.expect("messages saved")
            self.assertEqual(terminal.leave(), 0)
            self.assertEqual(json.loads((self.path / "saved.json").read_text())[0]["content"], "remembered")

    def test_chats_at_the_same_time_share_the_history(self) -> None:
        flags = ("-c", "4096", "-n", "1", *ENDLESS)
        terminals = [self.chat(*flags), self.chat(*flags)]
        for message in ("one", "two\\" + ENTER + "lines"):
            for terminal in terminals:
                terminal.ask(message)
                terminal.expect(r"\(cut after 1 tokens")
        for terminal in terminals:
            self.assertEqual(terminal.leave(), 0)
        history = self.path / "state" / "eider" / "chat_history"
        self.assertEqual(history.read_text().splitlines()[1:], ["one", "one", r"two\012lines", r"two\012lines"])
        self.assertEqual(history.stat().st_mode & 0o777, 0o600)

    def test_history_that_cannot_be_kept_is_said_once(self) -> None:
        (self.path / "state").write_text("a file where a folder belongs")
        terminal = self.chat("-c", "4096", "-n", "1", *ENDLESS)
        for message in ("one", "two"):
            terminal.ask(message)
            terminal.expect(r"\(cut after 1 tokens")
        self.assertEqual(terminal.leave(), 0)
        self.assertEqual(terminal.raw.count(b"chat_history: cannot be written: Not a directory"), 1)

    def test_any_locale_and_terminal(self) -> None:
        saved = self.path / "saved.json"
        for environment in ({"LC_ALL": "C"}, {"LC_ALL": "none_SUCH"}, {"TERM": "dumb"}):
            terminal = self.chat("-c", "4096", "-n", "1", *ENDLESS, **environment)
            terminal.ask("日本語 ñ😀")
            terminal.expect(r"\(cut after 1 tokens")
            terminal.ask(f"/save {saved}")
            terminal.expect("messages saved")
            self.assertEqual(terminal.leave(), 0)
            self.assertEqual(json.loads(saved.read_text())[0]["content"], "日本語 ñ😀")

    def test_colours_only_where_they_are_wanted(self) -> None:
        for environment, coloured in [({}, True), ({"NO_COLOR": "1"}, False)]:
            terminal = self.chat("-c", "4096", "-n", "5", "--chat-template-file", self.thinking_template(), *ENDLESS,
                                 **environment)
            terminal.ask("hello")
            terminal.expect(r"\(cut after 5 tokens")
            self.assertEqual(terminal.leave(), 0)
            self.assertEqual(b"\x1b[2m" in terminal.raw, coloured)
            self.assertEqual(b"\x1b[1;32m" in terminal.raw, coloured)

    def thinking_template(self) -> str:
        path = self.path / "thinking.jinja"
        path.write_text(tiny_model.CHAT_TEMPLATE + "{% if add_generation_prompt %}{{ '<think>\n' }}{% endif %}")
        return str(path)


class ScriptTest(ChatTest):
    def test_lines_are_messages_and_stdout_the_answers(self) -> None:
        finished = self.script("hello\\\nyou\n\nagain\n/stats\n", "-c", "4096", "-n", "20", *ENDLESS)
        self.assertNotIn(b"\x1b", finished.stdout + finished.stderr)
        self.assertEqual(finished.stdout.count(b"\n") >= 2, True)
        kept = prompt_tokens(("hello\nyou", 19))
        prompt = prompt_tokens(("hello\nyou", 20), ("again", 0))
        self.assertIn(f"turn 2: {prompt} prompt tokens, {kept} kept, {prompt - kept} prefilled".encode(),
                      finished.stderr)

    def test_lists_fit_80_columns(self) -> None:
        shown = self.script("/help\n/set\n/set temp 0.25\n/set\n", "-c", "4096").stderr.decode()
        self.assertLessEqual(max(map(len, shown.splitlines())), 80)
        for listed in ("/regen", "repeat-last-n", "[0.8]", "[0.25]", "seed is 1 now"):
            self.assertIn(listed, shown)

    def test_same_seed_same_answers(self) -> None:
        flags = ("-c", "4096", "-n", "20", *ENDLESS)
        self.assertEqual(self.script("a\nb\n", *flags).stdout, self.script("a\nb\n", *flags).stdout)

    def test_what_is_refused_is_said_and_the_code_is_1(self) -> None:
        for line, mentioned in [
            ("/frobnicate", "/frobnicate is no command"),
            ("/regen", "no message to answer"),
            ("/edit", "no message to edit"),
            ("/drop", "no turn before"),
            ("/save", "needs a FILE"),
            (f"/save {self.path}/none/x", "cannot be written"),
            ("/load", "needs a FILE"),
            (f"/load {self.path}/none", "cannot be opened"),
            (f"/load {self.model}", "not a JSON array"),
            ("/set temp", "needs a value"),
            ("/set temp hot", "'hot' is not allowed"),
            ("/set heat 1", "'heat' is no setting"),
            ("x" * 5000, "the context is full"),
        ]:
            with self.subTest(line=line[:50]):
                finished = self.script(line + "\n", "-c", "100", code=FAILURE)
                self.assertIn(mentioned, finished.stderr.decode())
                self.assertEqual(finished.stdout, b"")

    def test_save_that_fails_keeps_the_old_file(self) -> None:
        path = self.path / "chat.json"
        path.write_text("[]")
        finished = subprocess.run(self.arguments("-c", "4096", "-n", "1"), input=f"hello\n/save {path}\n".encode(),
                                  capture_output=True, timeout=120, env=self.environment, check=False,
                                  preexec_fn=fill_disk, restore_signals=False)
        self.assertEqual(finished.returncode, FAILURE, finished)
        self.assertIn(f"error: /save: {path}: cannot be written: File too large\n".encode(), finished.stderr)
        self.assertEqual(path.read_text(), "[]")
        self.assertEqual([entry.name for entry in self.path.glob("chat.json*")], ["chat.json"])

    def test_files_that_are_no_chat(self) -> None:
        path = self.path / "chat.json"
        for content, mentioned in [
            ("[1]", "message 1 is not an object"),
            ('[{"role": "user"}]', 'message 1 has no "content"'),
            ('[{"role": "user", "content": "a", "ids": [-1]}]', '"ids" that are not token ids'),
            ('[{"role": "assistant", "content": "a"}]', "expected 'user'"),
            ('[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]', "expected 'assistant'"),
            ("[" * 100000, "not a JSON array"),
        ]:
            with self.subTest(content=content[:50]):
                path.write_text(content)
                self.assertIn(mentioned, self.script(f"/load {path}\n", code=FAILURE).stderr.decode())

    def test_ids_of_another_model_are_dropped(self) -> None:
        path = self.path / "chat.json"
        path.write_text(json.dumps([{"role": "user", "content": "a"},
                                    {"role": "assistant", "content": "b", "ids": [100000]}]))
        finished = self.script(f"/load {path}\nc\n/stats\n", "-c", "4096", "-n", "1")
        self.assertIn(b"1 answers came from another model", finished.stderr)
        self.assertIn(f"turn 2: {prompt_tokens(('a', 1), ('c', 0))} prompt tokens".encode(), finished.stderr)

    def test_system_message(self) -> None:
        path = self.path / "chat.json"
        self.script(f"/system Be brief\nhello\n/save {path}\n", "-c", "4096", "-n", "1", "--system", "Be kind",
                    *ENDLESS)
        self.assertEqual([message["role"] for message in json.loads(path.read_text())],
                         ["system", "user", "assistant"])
        self.assertEqual(json.loads(path.read_text())[0]["content"], "Be brief")

    def test_a_model_without_a_template(self) -> None:
        self.model.write_bytes(tiny_model.model_bytes(chat_template=None))
        finished = self.script("hello\n", "-c", "100", code=FAILURE)
        self.assertIn(b"has no chat template; give one with --chat-template-file", finished.stderr)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a child inherits what is ignored
    sys.exit(unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1))
