"""What a text costs in a model of BGE-M3's true shape (568 million random weights), fp32 and int8.

    .venv-embedding/bin/python tests/benchmarks/bench_embedding.py [threads]

Writes and removes 2.9 GB in the temporary folder; needs 4 GB of memory and some minutes. Each model
is measured in a process of its own: the fastest of several runs, the processor time of that run
(all threads; the figure to go by where a machine is shared), and the most memory so far.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "functions" / "embedding"), str(ROOT / "tests" / "embedding")]

from model import Encoder  # noqa: E402 - the container's modules are no package
from quantize import quantize  # noqa: E402
from tokens import write_tokenizer  # noqa: E402
from xlm_r import BGE_M3, random_weights, write_encoder  # noqa: E402

CASES = {"question": (16, 20), "chunk": (530, 5), "part": (1330, 2), "longest": (8192, 1)}
"""Tokens and runs. 800 Chinese characters are about 530 of BGE-M3's tokens, 2,000 about 1,330."""
FP32 = ("question", "chunk", "part")
"""Without fused attention the longest text needs more memory than a function can have."""


def memory() -> dict[str, int]:
    """MB in use now, of it not backed by a file, and the most in use so far."""
    lines = (line.split() for line in Path("/proc/self/status").read_text("ascii").splitlines())
    names = {"VmRSS:": "now", "RssAnon:": "anonymous", "VmHWM:": "most"}
    return {names[line[0]]: int(line[1]) // 1024 for line in lines if line and line[0] in names}


def measure(folder: Path, threads: int, cases: list[str]) -> None:
    """Print what loading and each case cost, as JSON lines."""
    begin = time.perf_counter(), time.process_time()
    encoder = Encoder(folder, threads, max_tokens=8192)
    report("load", since(begin))
    for case in cases:
        tokens, runs = CASES[case]
        text = "的" * (tokens - 3)  # beside the mark of a word's begin, <s> and </s>
        taken = []
        for _ in range(runs):
            begin = time.perf_counter(), time.process_time()
            encoder.embed([text])
            taken.append(since(begin))
        report(case, min(taken))


def since(begin: tuple[float, float]) -> tuple[float, float]:
    """Milliseconds of time and of processor time."""
    return (time.perf_counter() - begin[0]) * 1000, (time.process_time() - begin[1]) * 1000


def report(case: str, taken: tuple[float, float]) -> None:
    print(json.dumps({"case": case, "ms": taken[0], "cpu": taken[1], **memory()}), flush=True)


def main(threads: int) -> None:
    """Make both models, measure them, and print a table."""
    with tempfile.TemporaryDirectory() as temporary:
        fp32, int8 = Path(temporary, "fp32"), Path(temporary, "int8")
        fp32.mkdir()
        int8.mkdir()
        write_encoder(fp32, BGE_M3, random_weights(BGE_M3, seed=0))
        write_tokenizer(fp32, BGE_M3.vocabulary)
        begin = time.perf_counter()
        quantize(fp32, int8)
        print(f"quantised in {time.perf_counter() - begin:.0f} s; {threads} threads\n")
        print("| model | case | tokens | ms | processor ms | MB | of it anonymous | MB at most |")
        print("|---|---|---|---|---|---|---|---|")
        for folder, cases in ((fp32, FP32), (int8, tuple(CASES))):
            script = [sys.executable, __file__, "--measure", str(folder), str(threads), *cases]
            measured = subprocess.run(script, capture_output=True, text=True, check=True)  # noqa: S603 - this file
            for row in map(json.loads, measured.stdout.splitlines()):
                tokens = CASES.get(row["case"], ("",))[0]
                names = ("ms", "cpu", "now", "anonymous", "most")
                figures = " | ".join(f"{row[name]:,.0f}" for name in names)
                print(f"| {folder.name} | {row['case']} | {tokens} | {figures} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else os.cpu_count() or 1)
