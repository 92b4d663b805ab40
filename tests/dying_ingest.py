"""An ingest in a process of its own that kills itself: python -m tests.dying_ingest KEY POINT PORT.

Settings stand in the environment; the index is the one that a manager serves at PORT.
"""

import os
import signal
import sys
import time
from multiprocessing.managers import BaseManager

from kb.settings import IngestSettings, read_settings
from kb.wiring import make_ingest

from tests.crashes import Tripwire, Watched, watching_aws
from tests.fakes import HashingEmbedder

SECRET = b"one test"


class IndexServer(BaseManager):
    """Serves `index()` to other processes of this machine."""


def main(key: str, point: str, port: str) -> None:
    """Kill the whole process with SIGKILL at the first point of that name."""
    IndexServer.register("index")
    server = IndexServer(("127.0.0.1", int(port)), SECRET)
    server.connect()
    wire = Tripwire()

    def die(number: int, name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    with watching_aws(wire), wire.set(die):
        index = Watched(server.index(), wire)  # type: ignore[attr-defined]
        settings = read_settings(IngestSettings, os.environ)
        embedder = Watched(HashingEmbedder(), wire)
        make_ingest(settings, embedder, index, time.time).ingest.reconcile(key)


if __name__ == "__main__":
    main(*sys.argv[1:])
