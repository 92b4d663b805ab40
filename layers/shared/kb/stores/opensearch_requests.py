"""How requests to OpenSearch are made: signed, repeated where that can help, errors as ours."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import boto3
from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth
from opensearchpy import exceptions as opensearch

from kb.errors import KbError, Misconfigured, Refused, Unavailable

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
"""Seconds between two attempts; each pause is twice the one before."""

TOO_BUSY = (429, 503)
"""Statuses that ask to come again."""

REASON_LENGTH = 500
"""Characters of OpenSearch's own words in a message; it quotes whole documents at times."""


class Busy(Exception):
    """A part of a request was answered 429 or 503 and has to be asked again."""


def connect(endpoint: str, *, region: str, timeout: float) -> OpenSearch:
    """A client of the node at `endpoint` that waits `timeout` seconds and repeats nothing itself.

    An https address is one of Amazon's, and every request to it is signed with the credentials of
    the environment, renewed as they expire; an http address is a local node without any. An
    address without a scheme, as CloudFormation names a domain, is https.
    Raises Misconfigured where the address is none, or region or credentials to sign with are
    not there.
    """
    url = urlsplit(endpoint if "//" in endpoint else f"https://{endpoint}")
    if url.scheme not in ("http", "https") or not url.hostname:
        raise Misconfigured(f"OPENSEARCH_ENDPOINT is no http or https address: {endpoint!r}")
    signed = url.scheme == "https"
    host = {"host": url.hostname, "port": url.port or (443 if signed else 9200), "use_ssl": signed}
    signer = None
    if signed:
        credentials = boto3.Session().get_credentials()
        if credentials is None or not region:
            what = "credentials" if region else "region"
            raise Misconfigured(f"there is no AWS {what} to sign requests to {url.hostname} with")
        signer = Urllib3AWSV4SignerAuth(credentials, region, "es")
    return OpenSearch(
        hosts=[host], http_auth=signer, timeout=timeout, pool_maxsize=8, max_retries=0
    )


@dataclass(frozen=True, slots=True)
class Requests:
    """Asks OpenSearch about one index, for at most `patience` seconds plus one request's timeout.

    All requests are such that sending one twice does no harm.
    """

    index: str
    patience: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def ask(self, doing: str, call: Callable[[], Any], unless: str = "") -> Any:
        """The answer of `call`, repeated while it is Busy or answered 429 or 503.

        None where OpenSearch's error is of the type `unless`. `doing` names the request in
        messages. Raises Unavailable("vectors"), Misconfigured or Refused.
        """
        give_up = self.clock() + self.patience
        pause = FIRST_PAUSE
        while True:
            try:
                return _reached(call)
            except Busy as error:
                failure: Exception = error
            except opensearch.ConnectionError as error:
                raise Unavailable("vectors") from error
            except opensearch.TransportError as error:
                if unless and error.error == unless:
                    return None
                status = int(error.status_code)
                if status not in TOO_BUSY:
                    raise self.failure(doing, status, error.info or error.error) from error
                failure = error
            except opensearch.SerializationError as error:  # no JSON: whoever it was that answered
                raise Unavailable("vectors") from error
            if self.clock() + pause > give_up:
                raise Unavailable("vectors") from failure
            self.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def failure(self, doing: str, status: int, told: object) -> KbError:
        """What an answer of any other status than TOO_BUSY means, in the words `told` with it."""
        kind, reason = _kind_and_reason(told)
        if status >= 500 or kind.endswith("block_exception"):
            # A block is a full disk or a lost quorum: it passes, or an alarm of the domain rings.
            return Unavailable("vectors")
        request = f"OpenSearch refuses to {doing} {self.index} ({status}: {reason})"
        match status:
            case 401 | 403:
                return Misconfigured(
                    f"{request}: allow the function's role es:ESHttpGet, es:ESHttpPost and, to"
                    " create the index, es:ESHttpPut in its own and the domain's policy; where the"
                    " domain has fine-grained access control, map the role there too"
                )
            case 404:
                return Misconfigured(
                    f"{request}: ingest creates the index at its start;"
                    " check OPENSEARCH_ENDPOINT and OPENSEARCH_INDEX, and that ingest has run"
                )
            case 400 if kind == "illegal_argument_exception":
                return Refused(f"the vector index does not take this document: {reason}")
            case _:
                return Misconfigured(f"{request}: the index is not of this version's making")


def _reached(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except opensearch.ConnectionTimeout:
        raise
    except opensearch.ConnectionError:
        # A connection kept since a frozen function's last call may be gone by now: try a new one.
        return call()


def _kind_and_reason(told: object) -> tuple[str, str]:
    # {"error": {"type", "reason", "root_cause": [...], "caused_by": {...}}} from OpenSearch,
    # {"Message"} or {"message"} from Amazon before it, else anything.
    if isinstance(told, Mapping):
        told = told.get("error", told)
    if not isinstance(told, Mapping):
        return "", str(told)[:REASON_LENGTH]
    causes = told.get("root_cause") or [told]
    kind = str(causes[0].get("type", ""))
    words = [
        str(cause[name])
        for cause in (causes[0], told.get("caused_by") or {})
        for name in ("reason", "Message", "message")
        if name in cause
    ]
    return kind, ": ".join(words)[:REASON_LENGTH] or kind
