#!/usr/bin/env python3
"""The official `openai` and `anthropic` packages drive `eider serve`. Exits with 77 where they are not installed:
scripts/test.sh puts them into build/clients, whose python3 this test then uses.

Usage: serve_client_test.py PROGRAM [unittest flags...]
"""
import json
import os
import pathlib
import sys

CLIENTS = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "clients" / "bin" / "python3"
if CLIENTS.exists() and pathlib.Path(sys.executable).absolute() != CLIENTS:
    os.execv(CLIENTS, [str(CLIENTS), *sys.argv])
try:
    import anthropic
    import openai
except ImportError as problem:
    print(f"SKIP: {problem}; scripts/test.sh installs the clients")
    sys.exit(77)

import pathlib
import tempfile
import threading
import time
import unittest

import tiny_model
from serve_test import CONTEXT, Server, ask

ENDLESS = {"0": -100, "2": -100}  # both tokens that would end the tiny model's turn
MESSAGES = [{"role": "user", "content": "Hello"}]
TOOL = {"name": "weather", "description": "of a city", "parameters": {"type": "object", "properties": {}}}
# Says nothing of tools itself, but the server looks for how calls are written.
TEMPLATE = tiny_model.CHAT_TEMPLATE + '{# <tool_call> {"name": ..., "arguments": ...} #}'


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = pathlib.Path(cls.folder.name) / "tiny.gguf"
        cls.model.write_bytes(tiny_model.model_bytes(TEMPLATE))
        cls.server = Server(cls.model, environment={"EIDER_API_KEY": "secret"})
        cls.addClassCleanup(cls.server.stop)
        cls.openai = openai.OpenAI(base_url=cls.server.url("/v1"), api_key="secret", max_retries=0)
        cls.anthropic = anthropic.Anthropic(base_url=cls.server.url(""), api_key="secret", max_retries=0)

    def test_models(self) -> None:
        self.assertEqual([model.id for model in self.openai.models.list()], ["tiny.gguf"])
        self.assertEqual(self.openai.models.retrieve("tiny.gguf").owned_by, "eider")
        with self.assertRaises(openai.NotFoundError):
            self.openai.models.retrieve("another")

    def test_chat(self) -> None:
        answer = self.openai.chat.completions.create(model="any", messages=MESSAGES, max_tokens=20, n=4, seed=3,
                                                     logprobs=True, top_logprobs=2, logit_bias=ENDLESS)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        self.assertEqual(answer.usage.completion_tokens, 80)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(len({choice.message.content for choice in answer.choices}), 4)
        for token in answer.choices[1].logprobs.content:
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertLessEqual(token.logprob, token.top_logprobs[0].logprob)
        alone = self.openai.chat.completions.create(model="any", messages=MESSAGES, max_tokens=20, seed=3,
                                                    logit_bias=ENDLESS)
        self.assertEqual(alone.choices[0].message.content, answer.choices[0].message.content)

    def test_streams_say_what_whole_answers_say(self) -> None:
        whole = self.openai.chat.completions.create(model="any", messages=MESSAGES, max_tokens=40, seed=5, n=2)
        text = ["", ""]
        usage = None
        for chunk in self.openai.chat.completions.create(model="any", messages=MESSAGES, max_tokens=40, seed=5, n=2,
                                                         stream=True, stream_options={"include_usage": True}):
            for choice in chunk.choices:
                text[choice.index] += choice.delta.content or ""
            usage = chunk.usage or usage
        self.assertEqual(text, [choice.message.content for choice in whole.choices])
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)

        text = "".join(chunk.choices[0].text for chunk in self.openai.completions.create(
            model="any", prompt="Once", max_tokens=20, seed=5, stream=True) if chunk.choices)
        whole = self.openai.completions.create(model="any", prompt="Once", max_tokens=20, seed=5)
        self.assertEqual(text, whole.choices[0].text)

    def test_stop_strings(self) -> None:
        free = self.openai.completions.create(model="any", prompt="Once", max_tokens=60, seed=5, logit_bias=ENDLESS)
        text = free.choices[0].text
        stop = next(c for c in text[5:] if c.isascii() and c.isalnum())
        held = self.openai.completions.create(model="any", prompt="Once", max_tokens=60, seed=5, logit_bias=ENDLESS, stop=stop)
        self.assertEqual((held.choices[0].text, held.choices[0].finish_reason), (text[:text.index(stop)], "stop"))

    def test_tools(self) -> None:
        # The first tokens of a forced call are the prompt's; what the tiny model goes on with is noise.
        forced = {"type": "function", "function": {"name": "weather"}}
        answer = self.openai.chat.completions.create(model="any", messages=MESSAGES, max_tokens=5, seed=1,
                                                     tools=[{"type": "function", "function": TOOL}], tool_choice=forced,
                                                     logit_bias={**ENDLESS, str(tiny_model.token_id("{")): 100})
        self.assertEqual(answer.choices[0].message.tool_calls[0].function.name, "weather")
        self.assertEqual(answer.choices[0].message.tool_calls[0].function.arguments, "{{{{{")

    def test_errors(self) -> None:
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.chat.completions.create(model="any", messages=MESSAGES, extra_body={"temprature": 1})
        self.assertEqual(caught.exception.param, "temprature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.chat.completions.create(model="any", messages=[{"role": "user", "content": "x" * 2 * CONTEXT}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.AuthenticationError):
            self.openai.with_options(api_key="wrong").models.list()
        with self.assertRaises(anthropic.AuthenticationError):
            self.anthropic.with_options(api_key="wrong").messages.create(model="any", messages=MESSAGES, max_tokens=1)
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.anthropic.messages.create(model="any", messages=MESSAGES, max_tokens=1, extra_body={"temperature": -1})
        self.assertIn("temperature", str(caught.exception))

    def test_clients_retry_when_the_queue_is_full(self) -> None:
        server = Server(self.model, "-np", "1", "--max-queue", "0")
        self.addCleanup(server.stop)
        client = openai.OpenAI(base_url=server.url("/v1"), api_key="none", max_retries=0)
        patient = client.with_options(max_retries=10)
        stream = client.chat.completions.create(model="any", messages=MESSAGES, max_tokens=1500, stream=True,
                                                logit_bias=ENDLESS)
        next(iter(stream))
        with self.assertRaises(openai.RateLimitError):
            client.chat.completions.create(model="any", messages=MESSAGES)
        waiting = threading.Thread(target=lambda: answers.append(
            patient.chat.completions.create(model="any", messages=MESSAGES, max_tokens=3)))
        answers: list = []
        waiting.start()
        stream.close()  # cancels
        waiting.join(60)
        self.assertEqual(len(answers), 1)

    def test_cancellation(self) -> None:
        stream = self.openai.chat.completions.create(model="any", messages=MESSAGES, max_tokens=1900, stream=True,
                                                     logit_bias=ENDLESS)
        next(iter(stream))
        stream.close()
        end = time.monotonic() + 20
        while b"\neider_streams 0" not in ask(self.server, "/metrics", None, {"x-api-key": "secret"})[2]:
            self.assertLess(time.monotonic(), end, "the answer goes on without its client")

    def test_embeddings(self) -> None:
        answer = self.openai.embeddings.create(model="any", input=["one", "two", "one"])
        vectors = [entry.embedding for entry in answer.data]
        self.assertEqual(len(vectors[0]), tiny_model.HIDDEN)
        for vector in vectors:
            self.assertAlmostEqual(sum(value * value for value in vector), 1, 5)
        self.assertEqual(vectors[0], vectors[2])
        self.assertNotEqual(vectors[0], vectors[1])
        plain = self.openai.embeddings.create(model="any", input="one", encoding_format="float")
        for packed, value in zip(vectors[0], plain.data[0].embedding):
            self.assertAlmostEqual(packed, value, 6)

    def test_responses(self) -> None:
        first = self.openai.responses.create(model="any", input="Hello", max_output_tokens=20, instructions="Be brief")
        self.assertIn(first.status, ("completed", "incomplete"))
        second = self.openai.responses.create(model="any", input="And?", max_output_tokens=20,
                                              previous_response_id=first.id)
        self.assertEqual(second.previous_response_id, first.id)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)
        text, last = "", None
        for event in self.openai.responses.create(model="any", input="Hello", max_output_tokens=20, stream=True):
            if event.type == "response.output_text.delta":
                text += event.delta
            last = event
        self.assertIn(last.type, ("response.completed", "response.incomplete"))
        self.assertEqual(last.response.output_text, text)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.responses.create(model="any", input="x", previous_response_id="resp_none")
        self.assertEqual(caught.exception.code, "previous_response_not_found")

    def test_messages(self) -> None:
        answer = self.anthropic.messages.create(model="any", max_tokens=20, messages=MESSAGES, system="Be brief",
                                                extra_body={"seed": 4})
        self.assertIn(answer.stop_reason, ("max_tokens", "end_turn"))
        with self.anthropic.messages.stream(model="any", max_tokens=20, messages=MESSAGES, system="Be brief",
                                            extra_body={"seed": 4}) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, "".join(block.text for block in answer.content))
        self.assertEqual(final.usage.output_tokens, answer.usage.output_tokens)
        counted = self.anthropic.messages.count_tokens(model="any", messages=MESSAGES, system="Be brief")
        self.assertEqual(counted.input_tokens, final.usage.input_tokens + final.usage.cache_read_input_tokens)
        self.assertGreater(final.usage.cache_read_input_tokens, 0)

    def test_message_tools(self) -> None:
        tool = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
        answer = self.anthropic.messages.create(
            model="any", max_tokens=5, messages=MESSAGES, tools=[tool], tool_choice={"type": "tool", "name": "weather"},
            extra_body={"logit_bias": {**ENDLESS, str(tiny_model.token_id("{")): 100}})
        self.assertEqual([(block.type, block.name) for block in answer.content], [("tool_use", "weather")])

    def test_json_object(self) -> None:
        bias = {str(tiny_model.token_id(c)): 20 for c in '"}'}
        answer = self.openai.chat.completions.create(model="any", messages=MESSAGES, max_tokens=1500, seed=2, logit_bias=bias,
                                                     response_format={"type": "json_object"})
        self.assertIsInstance(json.loads(answer.choices[0].message.content), dict)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.chat.completions.create(model="any", messages=MESSAGES,
                                                response_format={"type": "json_schema", "json_schema": {"name": "x"}})
        self.assertEqual(caught.exception.param, "response_format.type")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
