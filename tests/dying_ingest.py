"""An ingest in a process of its own that kills itself: python -m tests.dying_ingest KEY POINT PORT.

Settings stand in the environment; the index is the one that a manager serves at PORT.
"""

import os
import signal
import sys
import time
from functools import cache
from multiprocessing.managers import BaseManager

from kb.local.embedded_index import EmbeddedIndex
from kb.settings import IngestSettings, read_settings
from kb.wiring import make_ingest

from tests.crashes import Tripwire, Watched, watching_aws
from tests.fakes import HashingEmbedder

SECRET = b"one test"


@cache
def index() -> EmbeddedIndex:
    return EmbeddedIndex(model=HashingEmbedder.model, dimension=HashingEmbedder.dimension)


class IndexServer(BaseManager):
    """Serves one index to all processes of this machine that know the secret."""


IndexServer.register("index", index)


def main(key: str, point: str, port: str) -> None:
    """Kill the whole process with SIGKILL at the first point of that name."""
    server = IndexServer(("127.0.0.1", int(port)), SECRET)
    server.connect()
    wire = Tripwire()

    def die(number: int, name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    with watching_aws(wire), wire.set(die):
        embedder, served = Watched(HashingEmbedder(), wire), Watched(server.index(), wire)
        settings = read_settings(IngestSettings, os.environ)
        make_ingest(settings, embedder, served, time.time).ingest.reconcile(key)


if __name__ == "__main__":
    main(*sys.argv[1:])
