"""What can go wrong, as one tree.

KbError
├── InvalidInput     the caller must change the named field (400)
├── TooLarge         the caller must send less (413)
├── NotFound         the thing asked for does not exist (404)
├── Refused          a document cannot be indexed as it is; the writer must change it
├── Misconfigured    a setting, table or index is wrong; the operator must change it
├── Conflict         another writer committed first; start over
└── Unavailable      something outside did not answer; the same call may work later (503)

The caller of the first four never retries; Unavailable is the one to retry.
"""


class KbError(Exception):
    """Any failure that the product knows by name."""


class InvalidInput(KbError):
    """A field of a request has a value that cannot be used."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class TooLarge(KbError):
    """A request is larger than the limit it names."""


class NotFound(KbError):
    """A document, session or route that does not exist."""


class Refused(KbError):
    """A document cannot be indexed; the message is the reason its writer reads."""


class Misconfigured(KbError):
    """A setting or an outside thing does not fit this version of the product."""


class Conflict(KbError):
    """The row's revision moved between reading and committing."""


class Unavailable(KbError):
    """`what` did not answer: catalog, content, session, log, bucket, queue, embedding, vectors."""

    def __init__(self, what: str, cause: str = "") -> None:
        super().__init__(f"{what} did not answer" + (f" ({cause})" if cause else ""))
        self.what = what
