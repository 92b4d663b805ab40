"""How long an answer takes end to end: HTTP, handler, tables, model; over the seed.

    .venv/bin/python tests/benchmarks/bench_lookup.py

Prints milliseconds of PRECISE answers (keywords alone) and of those that ask L1 too, and what the
question's embedding alone takes in the same run. Exits 1 where a p99 is over its budget: 30 ms
and 500 ms.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from kb.local.embedded_model import EmbeddedModel

ROOT = Path(__file__).parents[2]
ROUNDS = 300
PRECISE_MOST, SEMANTIC_MOST = 30.0, 500.0
"""Milliseconds at the 99th percentile."""
QUESTIONS = [
    "发布之后错误率上升，谁可以决定回滚？",
    "what do I check first when replicas lag behind",
    "商户说签名校验一直失败，从哪里查起",
    "how long does a temporary credential stay valid",
    "大促期间还能不能改数据库表结构",
]


def milliseconds(call: Callable[[int], object], rounds: int = ROUNDS) -> list[float]:
    """Of each round, sorted."""
    times = []
    for number in range(rounds):
        started = time.perf_counter()
        call(number)
        times.append(1000 * (time.perf_counter() - started))
    return sorted(times)


def row(name: str, times: list[float]) -> float:
    p99 = times[int(len(times) * 0.99) - 1]
    print(f"{name:34} {statistics.median(times):8.1f} {p99:8.1f} {times[-1]:8.1f}")
    return p99


def main() -> int:
    process = subprocess.Popen(  # noqa: S603 - our own command
        [str(Path(sys.executable).with_name("kb")), "serve", "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout
    for line in process.stdout:
        if found := re.search(r"Serving (http://\S+)", line):
            url = found[1]
            break
    else:
        return 1

    def ask(query: str) -> dict[str, object]:
        request = urllib.request.Request(  # noqa: S310 - 127.0.0.1
            f"{url}/lookup", data=json.dumps({"query": query}).encode()
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            value: dict[str, object] = json.load(answer)
        return value

    try:
        assert ask("PAY-5002")["relevanceLevel"] == "PRECISE"
        model = EmbeddedModel()
        print(f"{'':34} {'median':>8} {'p99':>8} {'max':>8}  ms")
        precise = row("PRECISE, keywords alone", milliseconds(lambda n: ask("PAY-5002")))
        semantic = row(
            "keywords and meaning",
            milliseconds(lambda n: ask(f"{QUESTIONS[n % len(QUESTIONS)]} {n}")),
        )
        row(
            "the question's embedding alone",
            milliseconds(lambda n: model.embed_question(f"{QUESTIONS[n % len(QUESTIONS)]} {n}")),
        )
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    return int(precise > PRECISE_MOST or semantic > SEMANTIC_MOST)


if __name__ == "__main__":
    sys.exit(main())
