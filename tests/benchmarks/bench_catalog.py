"""The catalog's load and memory against their budgets: `python tests/benchmarks/bench_catalog.py`.

Rows are loaded over HTTP from moto in a process of its own, which takes far longer to answer than
DynamoDB, and a machine may be shared: so the budget is held against the CPU time of this process;
beside it stand the wall time and that of only reading the same pages. Exits 1 where one is missed.
"""

import gc
import itertools
import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from kb.catalog import Catalog
from kb.documents import CatalogRow, Status, Version
from kb.stores.catalog_table import CatalogTable

BUDGET_SECONDS = {1_000: 1.0, 10_000: 5.0}
BUDGET_BYTES = 1024
CHANCE = random.Random(7)  # noqa: S311 - a sample, no secret
COUNTER = itertools.count()


def han(length: int) -> str:
    return "".join(map(chr, CHANCE.choices(range(0x4E00, 0x9FA5), k=length)))


def keyword() -> str:
    return han(CHANCE.randrange(3, 8)) if CHANCE.random() < 0.6 else f"cause {CHANCE.random():.6f}"


def row() -> CatalogRow:
    """As a team's documents have: a title of 12 characters, a summary of 40, five keywords."""
    number = next(COUNTER)
    return CatalogRow(
        key=f"{han(4)}/{han(6)}-{number:05}.md",
        revision=CHANCE.randrange(1, 9),
        status=Status.INDEXED,
        changed_at=1_800_000_000_000 + number,
        served=Version(1, f"{CHANCE.getrandbits(128):032x}"),
        content_hash=f"{CHANCE.getrandbits(256):064x}",
        title=han(12),
        keywords=tuple(keyword() for _ in range(5)),
        summary=han(40),
        domain=CHANCE.choice(["支付", "运维", "infrastructure"]),
        updated_at=f"2026-11-{CHANCE.randrange(1, 28):02}T08:00:00+00:00",
        parts=CHANCE.randrange(1, 5),
    )


@contextmanager
def dynamodb() -> Iterator[Any]:
    """A client of a moto server in a process of its own."""
    code = (
        "import sys; from kb.local.cloud import MotoServer; server = MotoServer();"
        "print(server.endpoint, flush=True); sys.stdin.read()"
    )
    server = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin
    assert server.stdout
    try:
        endpoint = server.stdout.readline().strip()
        session = boto3.Session("local", "local", region_name="us-east-1")
        yield session.client("dynamodb", endpoint_url=endpoint)
    finally:
        server.stdin.close()
        server.wait()


def fill(client: Any, table: str, count: int) -> CatalogTable:
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
    )
    rows = CatalogTable(client, table)
    for _ in range(count):
        rows.commit(row(), expected_revision=0)
    return rows


def load(table: CatalogTable) -> Catalog:
    catalog = Catalog(table, now=time.time, interval=1, overlap=30, idle=900)
    catalog.refresh()
    return catalog


def measure(table: CatalogTable) -> tuple[int, float]:
    """How many documents a catalog holds, and the bytes of each that go with it."""
    tracemalloc.start()
    catalog = load(table)
    count = len(catalog.rows())
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    del catalog
    gc.collect()
    held -= tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return count, held / count


def main() -> int:
    missed = False
    os.environ["AWS_CONFIG_FILE"] = os.devnull
    with dynamodb() as client:
        for count, seconds in BUDGET_SECONDS.items():
            table = fill(client, f"catalog-{count}", count)
            started = time.perf_counter()
            list(client.get_paginator("scan").paginate(TableName=f"catalog-{count}"))
            reading = time.perf_counter() - started
            started, cpu = time.perf_counter(), time.process_time()
            load(table)
            loading, cpu = time.perf_counter() - started, time.process_time() - cpu
            documents, size = measure(table)
            missed |= cpu > seconds or size > BUDGET_BYTES
            print(
                json.dumps(
                    {
                        "documents": documents,
                        "load_cpu_s": round(cpu, 2),
                        "budget_s": seconds,
                        "load_wall_s": round(loading, 2),
                        "reading_wall_s": round(reading, 2),
                        "bytes_a_document": round(size),
                        "budget_bytes": BUDGET_BYTES,
                    }
                ),
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
