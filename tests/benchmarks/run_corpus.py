"""The mixed corpus at its full size: `python tests/benchmarks/run_corpus.py [COUNT]`, minutes.

Documents go from the bucket over the queue to the ingest handler in this process; moto and the
vector index are processes of their own, so that what this one holds is what ingest holds. Prints
what came of each kind and the peak of memory in each half; exits 1 where a status or reason is
not its kind's, a message failed, the counts do not add up or the second peak is above 1.1 times
the first.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import boto3

sys.path.insert(0, str(Path(__file__).parents[2]))

from kb.documents import Status
from kb.local.cloud import LocalCloud
from kb.local.event_source import EventSource
from kb.local.functions import handler_of
from kb.settings import IngestSettings, read_settings
from kb.stores.catalog_table import CatalogTable
from kb.wiring import make_ingest

from tests.corpus import CHUNKS, DOCUMENT_BYTES, corpus
from tests.dying_ingest import SECRET, IndexServer
from tests.fakes import HashingEmbedder

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
BATCH = 10
FLAT = 1.1
SERVE = (
    "import sys; from kb.local.cloud import MotoServer; server = MotoServer();"
    "print(server.endpoint, flush=True); sys.stdin.read()"
)


class Moto:
    """A moto server in a process of its own, as `LocalCloud` takes it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        self.endpoint = self._process.stdout.readline().strip()
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(service, endpoint_url=self.endpoint)
        return self._clients[service]

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


class Forgetful(HashingEmbedder):
    """Does not keep what it embedded."""

    def embed_passages(self, texts: Any) -> Any:
        return [self.embed_question(text) for text in texts]


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(count: int) -> int:
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1",
    }
    moto = Moto()
    server = IndexServer(("127.0.0.1", 0), SECRET, ctx=get_context("spawn"))
    server.start()
    try:
        return run(moto, server, count)
    finally:
        server.shutdown()
        moto.close()


def run(moto: Moto, server: IndexServer, count: int) -> int:
    cloud = LocalCloud(moto, TEMPLATE)  # type: ignore[arg-type]
    os.environ |= cloud.environment
    limits = {"DOCUMENT_BYTES": str(DOCUMENT_BYTES), "CHUNKS_PER_DOCUMENT": str(CHUNKS)}
    settings = read_settings(IngestSettings, cloud.environment | limits)
    index = server.index()  # type: ignore[attr-defined]
    parts = make_ingest(settings, Forgetful(), index)
    handler = handler_of("ingest")
    handler.__globals__["ingest_parts"] = lambda: parts
    failed = 0

    def counting(event: Any, context: Any) -> Any:
        nonlocal failed
        answer = handler(event, context)
        failed += len(answer["batchItemFailures"])
        return answer

    source = EventSource(
        cloud.client("sqs"), cloud.queue_url, counting, workers=1, batch_size=BATCH
    )
    catalog = CatalogTable(cloud.client("dynamodb"), cloud.environment["CATALOG_TABLE"])
    peaks, wrong, statuses = [0, 0], Counter[str](), Counter[Status]()
    started = time.monotonic()
    pending = []
    for number, sample in enumerate(corpus(count), start=1):
        cloud.client("s3").put_object(Bucket=cloud.bucket, Key=sample.key, Body=sample.data)
        pending.append(sample)
        if len(pending) < BATCH and number < count:
            continue
        while source.deliver_once():
            half = 2 * number > count
            peaks[half] = max(peaks[half], resident())
        rows = catalog.read_many([one.key for one in pending])
        for one in pending:
            row = rows.get(one.key)
            statuses[row.status if row else Status.DELETED] += 1
            if not row or row.status is not one.status or not re.fullmatch(one.reason, row.reason):
                wrong[one.kind] += 1
        pending.clear()
        if number % 1000 == 0:
            rate = number / (time.monotonic() - started)
            print(f"{number:6,} documents, {rate:5.1f} a second, {peaks}", flush=True)
    terminal = sum(statuses[status] for status in Status if status is not Status.DELETED)
    ratio = peaks[1] / peaks[0]
    print(f"{count:,} documents = {', '.join(f'{n:,} {status}' for status, n in statuses.items())}")
    print(f"messages failed: {failed}; not as their kind must: {dict(wrong) or 'none'}")
    print(f"memory: {peaks[0] / 1e6:.1f} MB, then {peaks[1] / 1e6:.1f} MB ({ratio:.2f} times)")
    return int(bool(failed or wrong) or terminal != count or ratio > FLAT)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("count", type=int, nargs="?", default=10_000)
    sys.exit(main(arguments.parse_args().count))
