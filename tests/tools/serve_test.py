#!/usr/bin/env python3
"""End-to-end tests of `eider serve` with plain sockets and urllib: what the HTTP edge takes and refuses, keys, TLS, and how
the server ends. The clients that people use are in serve_client_test.py. python3's standard library only.

Usage: serve_test.py PROGRAM [unittest flags...]
"""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import tiny_model

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
CONTEXT = 2048
START_SECONDS = 60


class Server:
    """A running `eider serve` on a free port."""

    def __init__(self, model: pathlib.Path, *flags: str, environment: dict[str, str] | None = None):
        self.log = tempfile.TemporaryFile("w+")
        arguments = [PROGRAM, "serve", "-m", model, "-c", CONTEXT, "-t", "2", "--port", "0", "--no-weight-cache", *flags]
        self.process = subprocess.Popen(list(map(str, arguments)), stderr=self.log,
                                        env={**os.environ, **(environment or {})})
        self.port = self._read_port()

    def _read_port(self) -> int:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            for line in self.log_lines():
                if line.startswith("listening on "):
                    return int(line.split(" ")[2].rsplit(":", 1)[1])
            time.sleep(0.02)
        raise RuntimeError("the server did not start: " + "\n".join(self.log_lines()))

    def log_lines(self) -> list[str]:
        return os.pread(self.log.fileno(), 1 << 20, 0).decode().splitlines()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.close()
        return code


def ask(server: Server, path: str, body: dict | bytes | None = None, headers: dict | None = None) -> tuple[int, dict, bytes]:
    """Status, headers and body."""
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = urllib.request.Request(server.url(path), data, {"content-type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as problem:
        return problem.code, dict(problem.headers), problem.read()


def read_all(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


def chat(text: str, **fields) -> dict:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 8, **fields}


class ServerTest(unittest.TestCase):
    """Base: one server for the class, with `flags`."""
    flags: tuple[str, ...] = ()

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = pathlib.Path(cls.folder.name) / "tiny.gguf"
        cls.model.write_bytes(tiny_model.model_bytes())
        cls.server = Server(cls.model, *cls.flags)
        cls.addClassCleanup(cls.server.stop)

    def status_of(self, raw: bytes) -> int:
        """The status of the first response to these bytes; the connection must close after it."""
        with self.server.connect() as connection:
            connection.sendall(raw)
            received = read_all(connection)
        self.assertTrue(received.startswith(b"HTTP/1.1 "), received[:100])
        return int(received.split(b" ")[1])


class EdgeTest(ServerTest):
    def test_smuggling_and_broken_framing_are_refused(self) -> None:
        head = b"POST /tokenize HTTP/1.1\r\nhost: x\r\n"
        for raw in (head + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                    head + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
                    head + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
                    head + b"content-length: -1\r\n\r\n",
                    head + b"content-length: 1e3\r\n\r\n",
                    head + b"transfer-encoding: xchunked\r\n\r\n",
                    head + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                    head + b"transfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
                    head + b"transfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
                    b"POST /tokenize HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}",
                    b"GET / HTTP/2.0\r\n\r\n", b"GET /a b HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello\r\n\r\n",
                    b"GET / HTTP/1.1\r\nhost: x\r\nbad name: y\r\n\r\n"):
            with self.subTest(raw=raw):
                self.assertEqual(self.status_of(raw), 400)

    def test_limits(self) -> None:
        self.assertEqual(self.status_of(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10000 + b"\r\n"), 431)
        self.assertEqual(self.status_of(b"POST /tokenize HTTP/1.1\r\nhost: x\r\ncontent-length: 104857600\r\n\r\n" +
                                        b"x" * 1000), 413)
        chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        with self.server.connect() as connection:
            connection.sendall(b"POST /tokenize HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(40):
                    connection.sendall(chunk)
            self.assertIn(b" 413 ", read_all(connection)[:20])
        self.assertEqual(ask(self.server, "/health")[0], 200)

    def test_pipelined_requests_are_answered_in_order(self) -> None:
        def tokenize(text: str) -> bytes:
            body = json.dumps({"content": text}).encode()
            return b"POST /tokenize HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

        with self.server.connect() as connection:
            connection.sendall(b"".join(tokenize(chr(ord("a") + i)) for i in range(20)) +
                               b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            received = read_all(connection).decode()
        ids = [json.loads(part.split("}")[0] + "}")["tokens"][0] for part in received.split("\r\n\r\n")[1:21]]
        self.assertEqual(ids, [tiny_model.token_id(chr(ord("a") + i)) for i in range(20)])
        self.assertTrue(received.endswith('{"status":"ok"}'), received[-100:])

    def test_a_request_may_come_byte_by_byte(self) -> None:
        raw = b"POST /tokenize HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n" \
              b"8\r\n{\"conten\r\nb\r\nt\": \"abcd\"}\r\n0\r\n\r\n"
        with self.server.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(len(raw)):
                connection.sendall(raw[i:i + 1])
            received = read_all(connection)
        self.assertIn(b'{"tokens":[', received)

    def test_expect_continue_head_and_request_ids(self) -> None:
        with self.server.connect() as connection:
            connection.sendall(b"POST /tokenize HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: 100-continue\r\n"
                               b"x-request-id: my-id.1\r\ncontent-length: 15\r\n\r\n")
            self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(b'{"content":"a"}')
            received = read_all(connection)
        self.assertIn(b"x-request-id: my-id.1\r\n", received)
        with self.server.connect() as connection:
            connection.sendall(b"HEAD /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            received = read_all(connection)
        self.assertIn(b"content-length: 15\r\n", received)
        self.assertTrue(received.endswith(b"\r\n\r\n"), received)

    def test_bodies_that_are_no_json(self) -> None:
        for body in (b"{", b"\xff", b'{"content": "\xff"}', b"[" * 10000, b'{"a":' * 10000, b'{"a":1,"a":1}', b""):
            status, _, answer = ask(self.server, "/tokenize", body)
            self.assertEqual(status, 400, body[:20])
            self.assertEqual(json.loads(answer)["error"]["type"], "invalid_request_error")

    def test_a_client_that_leaves_is_noticed(self) -> None:
        body = json.dumps(chat("hello", max_tokens=CONTEXT - 100, stream=True, logit_bias={"0": -100, "2": -100})).encode()
        with self.server.connect() as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" %
                               (len(body), body))
            self.assertIn(b"200 OK", connection.recv(1000))
        end = time.monotonic() + 20
        while time.monotonic() < end:
            text = ask(self.server, "/metrics")[2].decode()
            if "\neider_requests_cancelled_total 1" in text and "\neider_streams 0" in text:
                return
            time.sleep(0.05)
        self.fail("the request goes on without its client")


class ApiTest(ServerTest):
    def test_the_same_seed_gives_the_same_answer_as_run(self) -> None:
        completed = subprocess.run([PROGRAM, "run", "-m", self.model, "-c", str(CONTEXT), "--no-weight-cache", "--raw", "-p",
                                    "Once upon", "-n", "12", "-s", "7", "--json"], capture_output=True, text=True, check=True)
        body = {"prompt": "Once upon", "max_tokens": 12, "seed": 7}
        for _ in range(2):  # the second time from the cache
            status, _, answer = ask(self.server, "/v1/completions", body)
            self.assertEqual(status, 200, answer)
            self.assertEqual(json.loads(answer)["choices"][0]["text"], json.loads(completed.stdout)["text"])
        self.assertGreater(json.loads(answer)["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_a_drawn_seed_can_be_used_again(self) -> None:
        first = json.loads(ask(self.server, "/v1/chat/completions", chat("a"))[2])
        again = json.loads(ask(self.server, "/v1/chat/completions", chat("a", seed=first["seed"]))[2])
        self.assertEqual(first["choices"][0]["message"], again["choices"][0]["message"])

    def test_json_object(self) -> None:
        for seed in range(5):
            body = chat("a", max_tokens=1500, seed=seed, response_format={"type": "json_object"},
                        logit_bias={str(tiny_model.token_id(c)): 20 for c in '"}'})
            choice = json.loads(ask(self.server, "/v1/chat/completions", body)[2])["choices"][0]
            self.assertEqual(choice["finish_reason"], "stop")
            self.assertIsInstance(json.loads(choice["message"]["content"]), dict)

    def test_metrics_and_log(self) -> None:
        ask(self.server, "/v1/chat/completions", chat("a secret"), {"x-request-id": "logged-1"})
        text = ask(self.server, "/metrics")[2].decode()
        for name in ("eider_request_ttft_seconds_bucket", "eider_generated_tokens_total", "eider_step_seconds_sum",
                     'eider_http_requests_total{path="/v1/chat/completions",status="200"}'):
            self.assertIn(name, text)
        line = next(line for line in self.server.log_lines() if "id=logged-1" in line)
        for field in ("path=/v1/chat/completions", "status=200", "prompt=", "cached=", "ttft_ms=", "tpot_ms=", "queued_ms="):
            self.assertIn(field, line)
        self.assertNotIn("secret", "\n".join(self.server.log_lines()))

    def test_queue_limit(self) -> None:
        endless = chat("hello", max_tokens=1500, stream=True, logit_bias={"0": -100, "2": -100})
        server = Server(self.model, "-np", "1", "--max-queue", "0")
        self.addCleanup(server.stop)
        with urllib.request.urlopen(urllib.request.Request(server.url("/v1/chat/completions"), json.dumps(endless).encode()),
                                    timeout=30) as stream:
            stream.readline()
            status, headers, answer = ask(server, "/v1/chat/completions", chat("b"))
        self.assertEqual(status, 429, answer)
        self.assertGreaterEqual(int(headers["retry-after"]), 1)
        self.assertEqual(json.loads(answer)["error"]["type"], "rate_limit_error")


class KeyTest(ServerTest):
    def test_keys(self) -> None:
        path = pathlib.Path(self.folder.name) / "keys"
        path.write_text("first\nsecond\n")
        server = Server(self.model, "--api-key-file", path, environment={"EIDER_API_KEY": "third"})
        self.addCleanup(server.stop)
        self.assertEqual(ask(server, "/health")[0], 200)
        status, headers, answer = ask(server, "/v1/models")
        self.assertEqual((status, headers["www-authenticate"]), (401, "Bearer"))
        self.assertEqual(json.loads(answer)["error"]["code"], "invalid_api_key")
        self.assertEqual(json.loads(ask(server, "/v1/messages", {})[2])["error"]["type"], "authentication_error")
        for headers in ({"authorization": "Bearer first"}, {"authorization": "bearer second"}, {"x-api-key": "third"}):
            self.assertEqual(ask(server, "/v1/models", None, headers)[0], 200)
        # What one key has computed, another cannot see.
        cached = []
        for key in ("first", "second", "first"):
            answer = ask(server, "/v1/chat/completions", chat("x" * 300), {"x-api-key": key})[2]
            cached.append(json.loads(answer)["usage"]["prompt_tokens_details"]["cached_tokens"])
        self.assertEqual(cached[:2], [0, 0])
        self.assertGreater(cached[2], 256)

    def test_tls(self) -> None:
        folder = pathlib.Path(self.folder.name)
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                               "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out",
                               folder / "cert.pem"], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("openssl could not make a certificate")
        server = Server(self.model, "--ssl-cert-file", folder / "cert.pem", "--ssl-key-file", folder / "key.pem")
        self.addCleanup(server.stop)
        context = ssl.create_default_context(cafile=folder / "cert.pem")
        with urllib.request.urlopen(f"https://127.0.0.1:{server.port}/health", timeout=30, context=context) as response:
            self.assertEqual(response.read(), b'{"status":"ok"}')
        with self.assertRaises((urllib.error.URLError, ConnectionError, OSError)):
            urllib.request.urlopen(server.url("/health"), timeout=30)

    def test_refused_flags(self) -> None:
        for flags, mentioned in ((("--host", "256.1.1.1"), "--host"), (("--ssl-cert-file", "x"), "--ssl-key-file"),
                                 (("--api-key-file", "/nonexistent"), "--api-key-file"),
                                 (("--ssl-cert-file", "/x", "--ssl-key-file", "/y"), "--ssl-cert-file"),
                                 (("--port", str(self.server.port)), "--port")):
            finished = subprocess.run([PROGRAM, "serve", "-m", self.model, "-c", "256", "--no-weight-cache", *flags],
                                      capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(finished.returncode, 1, finished)
            self.assertIn(mentioned, finished.stderr.splitlines()[-1])


class CrowdTest(ServerTest):
    """What a request is answered must not depend on who else asks."""
    flags = ("-np", "12", "--max-queue", "128")

    def texts(self, number: int) -> list[str]:
        """The answers to request `number`, streamed by every other one; each fourth has four."""
        n = 4 if number % 4 == 0 else 1
        body = chat("".join(chr(97 + (number * step) % 23) for step in range(3 + number * 17 % 211)), n=n,
                    seed=number, temperature=(0, 0.7, 1.5)[number % 3], max_tokens=5 + number * 7 % 50,
                    top_k=(0, 40)[number % 2], stream=number % 2 == 1)
        status, _, answer = ask(self.server, "/v1/chat/completions", body)
        self.assertEqual(status, 200, answer)
        if number % 2 == 0:
            return [choice["message"]["content"] for choice in json.loads(answer)["choices"]]
        texts = [""] * n
        for line in answer.decode().splitlines():
            if line.startswith("data: {"):
                for choice in json.loads(line[len("data: "):])["choices"]:
                    texts[choice["index"]] += choice["delta"].get("content") or ""
        return texts

    def test_32_at_once_get_what_each_gets_alone(self) -> None:
        numbers = range(32)
        alone = [self.texts(number) for number in numbers]
        self.assertGreater(len({tuple(texts) for texts in alone}), 28)
        self.assertEqual(len(set(alone[4])), 4)  # drawn each for itself
        for _ in range(2):
            with concurrent.futures.ThreadPoolExecutor(len(numbers)) as pool:
                self.assertEqual(list(pool.map(self.texts, numbers)), alone)


class EndTest(ServerTest):
    def test_sigterm_lets_answers_end(self) -> None:
        server = Server(self.model)
        answers = []
        body = chat("hello", max_tokens=1500, logit_bias={"0": -100, "2": -100})
        client = threading.Thread(target=lambda: answers.append(ask(server, "/v1/chat/completions", body)))
        client.start()
        while b"\neider_streams 1" not in ask(server, "/metrics")[2]:
            self.assertTrue(client.is_alive(), "the answer ended too early for this test")
        self.assertEqual(server.stop(), 0)
        client.join()
        self.assertEqual(answers[0][0], 200)
        self.assertEqual(json.loads(answers[0][2])["usage"]["completion_tokens"], 1500)

    def test_a_second_interrupt_quits(self) -> None:
        server = Server(self.model)
        body = chat("hello", max_tokens=CONTEXT - 100, stream=True, logit_bias={"0": -100, "2": -100})
        request = urllib.request.Request(server.url("/v1/chat/completions"), json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as stream:
            stream.readline()
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(20), -signal.SIGINT)
        server.log.close()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
