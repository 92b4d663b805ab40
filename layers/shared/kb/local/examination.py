"""What the doctor finds in this process, whose memory holds the vectors, as lines of JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from kb import wiring
from kb.errors import KbError


def examined(repair: bool) -> Iterator[str]:
    """How many keys there are, each as `Examined` tells of it, or at last `{"error"}`."""
    try:
        total, keys = wiring.make_doctor(wiring.ingest_parts()).examine(repair)
        yield f"{json.dumps(total)}\n"
        for one in keys:
            yield f"{json.dumps(asdict(one))}\n"
    except KbError as error:
        yield f"{json.dumps({'error': str(error)})}\n"
