#!/usr/bin/env python3
"""Compares eider with recorded figures of real models: ../shared/conformance/real_models holds, for a text of 4,096
tokens, the ids, and each token's nll and argmax in float32 (the truth) and in llama.cpp (an engine that also quantises
activations to int8, and so the distance to stay within).

Usage: conformance.py PROGRAM MODELS [MODEL.json...]. Prints a table and writes nothing. Exits 1 if a model misses a bound
or none was found.
"""
import hashlib
import json
import pathlib
import subprocess
import sys

REFERENCES = pathlib.Path(__file__).resolve().parent.parent.parent / "shared" / "conformance" / "real_models"
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")
PERPLEXITY_DIFFERENCE = 0.005  # of float32's
NLL_DIFFERENCE = 1.05  # times llama.cpp's mean absolute one
AGREEMENT_LOSS = 0.005  # below llama.cpp's
SURE_MARGIN = 0.3  # a greedy step with a smaller one may rightly differ


def eider_json(program: str, *arguments: str) -> dict:
    finished = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        sys.exit(f"conformance.py: {program} {' '.join(map(str, arguments))}: {finished.stderr.strip()}")
    return json.loads(finished.stdout)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def agreement(left: list[int], right: list[int]) -> float:
    return mean([float(a == b) for a, b in zip(left, right, strict=True)])


def mean_difference(left: list[float], right: list[float]) -> float:
    return mean([abs(a - b) for a, b in zip(left, right, strict=True)])


class Report:
    """Rows of a table: what was measured, the figure, the bound, and whether it holds."""

    def __init__(self) -> None:
        self.failed = False

    def row(self, what: str, figure: str, bound: str, holds: bool) -> None:
        self.failed |= not holds
        print(f"  {what:<42}{figure:>12}   {bound:<34}{'ok' if holds else 'FAILED'}", flush=True)


def check_text(program: str, model: pathlib.Path, reference: dict, report: Report) -> None:
    count = len(reference["ids"])
    ours = eider_json(program, "perplexity", "-m", model, "-f", TEXT, "--tokens", count)
    same = ours["ids"] == reference["ids"]
    report.row("token ids", f"{count}", "equal", same)
    if not same:
        return
    truth, peer = reference["float32"], reference["llama_cpp"]

    change = ours["perplexity"] / truth["perplexity"] - 1
    report.row("perplexity", f"{ours['perplexity']:.3f}",
               f"float32 {truth['perplexity']:.3f} +- {PERPLEXITY_DIFFERENCE:.1%}", abs(change) <= PERPLEXITY_DIFFERENCE)
    bound = NLL_DIFFERENCE * mean_difference(peer["nll"], truth["nll"])
    difference = mean_difference(ours["nll"], truth["nll"])
    report.row("mean |nll - float32's|", f"{difference:.4f}", f"at most {bound:.4f}", difference <= bound)
    least = agreement(peer["argmax"], truth["argmax"]) - AGREEMENT_LOSS
    top1 = agreement(ours["argmax"], truth["argmax"])
    report.row("top-1 agreement with float32", f"{top1:.2%}", f"at least {least:.2%}", top1 >= least)


def check_chat(program: str, model: pathlib.Path, chat: dict, report: Report) -> None:
    """The greedy answer to a question, up to the first step that another engine may rightly take differently."""
    sure = next((step for step, margin in enumerate(chat["margins"]) if margin < SURE_MARGIN), len(chat["margins"]))
    ours = eider_json(program, "run", "-m", model, "-p", chat["user"], "--temp", "0", "-n", len(chat["greedy"]))
    same = next((step for step, (a, b) in enumerate(zip(ours["ids"], chat["greedy"])) if a != b), len(ours["ids"]))
    report.row(f"prompt ids of {chat['user'][:24]!r}", f"{len(chat['ids'])}", "equal", ours["prompt_ids"] == chat["ids"])
    report.row("  greedy steps equal", f"{same}", f"at least {sure}", same >= sure)


def main() -> int:
    if len(sys.argv) < 3:
        sys.exit("usage: conformance.py PROGRAM MODELS [MODEL.json...]")
    program, models = sys.argv[1], pathlib.Path(sys.argv[2])
    references = [pathlib.Path(name) for name in sys.argv[3:]] or sorted(REFERENCES.glob("*.json"))
    if not references:
        sys.exit(f"conformance.py: no references in {REFERENCES}")
    report = Report()
    compared = 0
    for path in references:
        reference = json.loads(path.read_text())
        model = models / reference["model"]
        print(reference["model"])
        if not model.is_file():
            print(f"  SKIP: not in {models}")
            continue
        for file, digest in ((TEXT, reference["text_sha256"]), (model, reference["sha256"])):
            if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
                sys.exit(f"conformance.py: {file} is not the file that was measured (SHA-256 {digest})")
        check_text(program, model, reference, report)
        for chat in reference.get("chat_greedy", []):
            check_chat(program, model, chat, report)
        compared += 1
    return 1 if report.failed or compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
