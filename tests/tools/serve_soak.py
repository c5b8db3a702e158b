#!/usr/bin/env python3
"""What `eider serve` must outlive, minutes long (docs/TESTING.md has its last results): a crowd of well-behaved and hostile
clients at the queue's limits, and kills in the middle of traffic. python3's standard library only.

Usage: serve_soak.py PROGRAM load [SECONDS] | kills [COUNT]
"""
import collections
import contextlib
import http.client
import json
import pathlib
import random
import re
import socket
import sys
import tempfile
import threading
import time

import serve_test
import tiny_model
from serve_test import Server

CONNECTIONS = 200
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


def fail(problem: str) -> None:
    sys.exit(f"serve_soak.py: {problem}")


def framed(body: bytes) -> bytes:
    return HEAD + b"content-length: %d\r\n\r\n" % len(body) + body


def chat_body(rng: random.Random, **fields) -> bytes:
    text = "".join(rng.choices("abcdefgh ", k=rng.choice((5, 50, 500))))
    return json.dumps({"messages": [{"role": "user", "content": text}], "max_tokens": rng.randint(1, 60),
                       "temperature": rng.choice((0, 0.7, 1.5)), "seed": rng.randint(0, 9), **fields}).encode()


def first_status(connection: socket.socket) -> int:
    """Of the response; 0 where the server closed without one."""
    received = b""
    with contextlib.suppress(OSError):
        while b"\r\n" not in received and (piece := connection.recv(65536)):
            received += piece
    return int(received.split(b" ")[1]) if received.startswith(b"HTTP/1.1 ") else 0


class Crowd:
    """Clients that do one thing after another until the time is over. `seen` counts statuses by what was done; what a
    client did not expect goes to `surprises`."""

    def __init__(self, server: Server, seconds: float):
        self.server = server
        self.end = time.monotonic() + seconds
        self.seen: collections.Counter = collections.Counter()
        self.surprises: list[str] = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(seed,), daemon=True) for seed in range(CONNECTIONS)]
        for thread in self.threads:
            thread.start()

    def run(self, seed: int) -> None:
        rng = random.Random(seed)
        deeds = (self.answer, self.answer, self.stream, self.stream, self.leave, self.dribble, self.huge_body, self.bad_utf8,
                 self.deep, self.endless_header, self.pipeline, self.smuggle)
        while time.monotonic() < self.end:
            deed = rng.choice(deeds)
            try:
                status, expected = deed(rng)
            except (OSError, http.client.HTTPException) as problem:
                status, expected = type(problem).__name__, ()
            with self.lock:
                self.seen[deed.__name__, status] += 1
                if status not in expected:
                    self.surprises.append(f"{deed.__name__}: {status}, not {expected}")

    def exchange(self, *pieces: bytes) -> int:
        with self.server.connect() as connection:
            with contextlib.suppress(ConnectionError):  # the server may answer and close before it has all
                for piece in pieces:
                    connection.sendall(piece)
            return first_status(connection)

    def answer(self, rng: random.Random):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", chat_body(rng), {"content-type": "application/json"})
            response = connection.getresponse()
            body = json.loads(response.read())
            if response.status == 429:
                if not response.headers["retry-after"]:
                    return "429 without retry-after", ()
                time.sleep(rng.uniform(0, 0.5))
            elif response.status != 200:
                return f"{response.status} {body}", ()
            elif not body["choices"][0]["finish_reason"]:
                return "unfinished", ()
            return response.status, (200, 429)

    def stream(self, rng: random.Random):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", chat_body(rng, stream=True),
                               {"content-type": "application/json"})
            response = connection.getresponse()
            text = response.read()
            if response.status == 200 and not text.endswith(b"data: [DONE]\n\n"):
                return "cut off", ()
            return response.status, (200, 429)

    def leave(self, rng: random.Random):
        with self.server.connect() as connection:
            connection.sendall(framed(chat_body(rng, stream=True, max_tokens=1000)))
            time.sleep(rng.uniform(0, 0.3))
        return "left", ("left",)

    def dribble(self, rng: random.Random):
        with self.server.connect() as connection:
            for byte in framed(chat_body(rng))[:rng.randint(2, 10)]:
                connection.sendall(bytes([byte]))
                time.sleep(1)
        return "left", ("left",)

    def huge_body(self, _rng: random.Random):
        return self.exchange(HEAD + b"content-length: 104857600\r\n\r\n", *[b"x" * 65536] * 32), (413,)

    def bad_utf8(self, _rng: random.Random):
        return self.exchange(framed(b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}')), (400,)

    def deep(self, rng: random.Random):
        opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
        return self.exchange(framed(opening * 10000 + b"1" + closing * 10000)), (400,)

    def endless_header(self, _rng: random.Random):
        return self.exchange(b"GET /health HTTP/1.1\r\nhost: x\r\n", *[b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 100] * 20), (431,)

    def pipeline(self, _rng: random.Random):
        get = b"GET /health HTTP/1.1\r\nhost: x\r\n%s\r\n"
        with self.server.connect() as connection:
            connection.sendall(get % b"" * 3 + get % b"connection: close\r\n")
            answers = serve_test.read_all(connection).count(b'{"status":"ok"}')
        return answers, (4,)

    def smuggle(self, rng: random.Random):
        fields = rng.choice((b"content-length: 5\r\ntransfer-encoding: chunked\r\n", b"transfer-encoding: gzip, chunked\r\n",
                             b"content-length: 5\r\ncontent-length: 6\r\n"))
        return self.exchange(HEAD + fields + b"\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"), (400,)


def resident_mib(server: Server) -> float:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def gauge(server: Server, name: str) -> float:
    _, _, text = serve_test.ask(server, "/metrics")
    return float(re.search(rf"^{name} (\S+)$", text.decode(), re.MULTILINE)[1])


def fixed_answer(server: Server) -> str:
    status, _, body = serve_test.ask(server, "/v1/chat/completions", serve_test.chat("a fixed question", seed=7, max_tokens=40))
    if status != 200:
        fail(f"the fixed question got status {status}")
    return json.loads(body)["choices"][0]["message"]["content"]


def load(model: pathlib.Path, seconds: float) -> None:
    server = Server(model, "-np", "8", "--max-queue", "32", "--kv-memory", "64M")
    before = fixed_answer(server)
    crowd = Crowd(server, seconds)
    samples = []
    while time.monotonic() < crowd.end:
        time.sleep(min(5.0, seconds / 20))
        if server.process.poll() is not None:
            fail(f"the server ended with {server.process.returncode}: " + "\n".join(server.log_lines()[-5:]))
        samples.append(resident_mib(server))
    for thread in crowd.threads:
        thread.join(130)
    time.sleep(1)
    for (deed, status), count in sorted(crowd.seen.items(), key=str):
        print(f"{deed:16} {status!s:8} {count}")
    third = len(samples) // 3
    early, late = max(samples[third:2 * third]), max(samples[2 * third:])
    print(f"resident memory, largest of the second and of the last third: {early:.1f}, {late:.1f} MiB")
    if crowd.surprises:
        fail(f"{len(crowd.surprises)} surprises, the first: {crowd.surprises[0]}")
    if late > early * 1.02:
        fail("memory grows")
    for name in ("eider_requests_queued", "eider_requests_running", "eider_streams"):
        if gauge(server, name) != 0:
            fail(f"{name} is {gauge(server, name)} after all clients left")
    if fixed_answer(server) != before:
        fail("the fixed question has another answer than before")
    if server.stop() != 0:
        fail("the server did not end well")
    print("ok")


def kills(model: pathlib.Path, count: int) -> None:
    rng = random.Random(1)
    questions = [("q%d " % i) * 60 for i in range(12)]

    def conversation(server: Server, question: str) -> tuple[list[str], int]:
        """Both answers of two turns, and how many tokens came from the cache."""
        messages, answers, cached = [], [], 0
        for text in (question, "and then?"):
            messages.append({"role": "user", "content": text})
            _, _, body = serve_test.ask(server, "/v1/chat/completions",
                                        {"messages": messages, "max_tokens": 24, "seed": 3, "temperature": 1})
            reply = json.loads(body)
            answers.append(reply["choices"][0]["message"]["content"])
            cached += reply["usage"]["prompt_tokens_details"]["cached_tokens"]
            messages.append({"role": "assistant", "content": answers[-1]})
        return answers, cached

    server = Server(model)
    expected = {question: conversation(server, question)[0] for question in questions}
    server.stop()

    compared, from_disk = 0, 0
    with tempfile.TemporaryDirectory() as disk:
        for kill in range(count):
            # So little memory that conversations go to disk while others run.
            server = Server(model, "--kv-memory", "3M", "-np", "2", "-c", "1024", "--kv-disk", f"{disk}:200M")
            killed = threading.Event()

            def traffic(seed: int, server=server, killed=killed) -> None:
                nonlocal compared
                local = random.Random(seed)
                while not killed.is_set():
                    question = local.choice(questions)
                    try:
                        answers, _ = conversation(server, question)
                    except (OSError, http.client.HTTPException, ValueError, KeyError):
                        continue  # the server died, or its queue is full
                    if answers != expected[question]:
                        wrong.append((kill, question, answers))
                    compared += 1

            wrong: list = []
            threads = [threading.Thread(target=traffic, args=(kill * 10 + i,), daemon=True) for i in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 1.0))
            with contextlib.suppress(OSError, AttributeError, TypeError):
                from_disk += gauge(server, "eider_sessions_loaded_total")
            server.process.kill()
            killed.set()
            for thread in threads:
                thread.join(70)
            server.stop()
            if wrong:
                fail(f"kill {wrong[0][0]}: {wrong[0][1][:3]!r} is answered {wrong[0][2]!r}, not {expected[wrong[0][1]]!r}")
    print(f"{count} kills, {compared} conversations compared, {from_disk:.0f} sessions loaded from disk")
    if compared < count or from_disk < 1:
        fail("too little happened for the kills to mean anything")
    print("ok")


def main() -> None:
    mode, amount = sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "tiny.gguf"
        model.write_bytes(tiny_model.model_bytes())
        if mode == "load":
            load(model, float(amount[0]) if amount else 300)
        elif mode == "kills":
            kills(model, int(amount[0]) if amount else 200)
        else:
            fail(f"{mode}: load or kills")


if __name__ == "__main__":
    main()
