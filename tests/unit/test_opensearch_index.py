"""How answers of OpenSearch are taken: asked again, given up, or told as which error."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.credentials import RefreshableCredentials
from hypothesis import given
from hypothesis import strategies as st
from kb.documents import Version
from kb.errors import KbError, Misconfigured, Refused, Unavailable
from kb.ports import IndexedChunk
from kb.stores import opensearch_index
from kb.stores.opensearch_index import BULK_BYTES, OpenSearchIndex, connect
from kb.stores.opensearch_mapping import check, mapping_for
from kb.stores.opensearch_requests import LONGEST_PAUSE
from opensearchpy import Connection, OpenSearch
from opensearchpy.exceptions import ConnectionError as NotReached
from opensearchpy.exceptions import ConnectionTimeout, SSLError

VERSION = Version(1, "f")
HERE = (1.0, 0.0)
NOTHING_FOUND = {"hits": {"hits": []}}
REFRESHED = {"_shards": {"total": 1, "successful": 1, "failed": 0}}
REMOVED = {"failures": [], "timed_out": False, "version_conflicts": 0}


class Script(Connection):
    """Answers each request with the next line of a script, and keeps what was asked.

    A line is a status with a body, or a failure to connect. The last line is repeated.
    """

    def __init__(self, script: Sequence[tuple[int, object] | Exception], **options: Any) -> None:
        super().__init__(**options)
        self.script = list(script)
        self.asked: list[tuple[str, str, str]] = []

    def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        *_: object,
        **__: object,
    ) -> tuple[int, Mapping[str, str], str]:
        self.asked.append((method, url, (body or b"").decode()))
        line = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(line, Exception):
            raise line
        status, told = line
        text = told if isinstance(told, str) else json.dumps(told)
        kind = "text/html" if isinstance(told, str) else "application/json"
        if status >= 300:
            self._raise_error(status, text, kind)
        return status, {"content-type": kind}, text


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> float:
        return sum(self.pauses)


class Scripted:
    """An index whose OpenSearch follows a script."""

    def __init__(self, *script: tuple[int, object] | Exception, patience: float = 10.0) -> None:
        client = OpenSearch(
            hosts=["localhost"], connection_class=Script, script=script, max_retries=0
        )
        self.connection: Script = client.transport.get_connection()
        self.clock = Clock()
        self.index = OpenSearchIndex(
            client,
            index="kb",
            model="m",
            dimension=2,
            patience=patience,
            clock=self.clock.now,
            sleep=self.clock.pauses.append,
        )

    @property
    def requests(self) -> int:
        return len(self.connection.asked)


def chunk(ordinal: int = 0, key: str = "a", text: str = "text") -> IndexedChunk:
    return IndexedChunk(key, VERSION, ordinal, 1, "", "default", text, HERE)


def identity(key: str, revision: int, fingerprint: str, ordinal: int) -> str:
    version = Version(revision, fingerprint)
    return opensearch_index._identity(
        IndexedChunk(key, version, ordinal, 1, "", "default", "text", HERE)
    )


def error(kind: str, reason: str = "because") -> dict[str, Any]:
    return {"error": {"type": kind, "reason": reason, "root_cause": [{"type": kind}]}}


def bulk(*statuses: int, kind: str = "some_exception") -> tuple[int, object]:
    items = [
        {"index": {"status": status, **({} if status < 300 else error(kind))}}
        for status in statuses
    ]
    return 200, {"errors": any(status >= 300 for status in statuses), "items": items}


def written_ordinals(body: str) -> list[int]:
    return [json.loads(line)["ordinal"] for line in body.splitlines()[1::2]]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda index: index.search(HERE, 10), (200, NOTHING_FOUND)),
        (lambda index: index.write([chunk()]), bulk(201)),
        (lambda index: index.refresh(), (200, REFRESHED)),
    ],
    ids=["search", "write", "refresh"],
)
def test_busy_request_is_asked_again_with_growing_pauses(
    call: Callable[[OpenSearchIndex], object], answer: tuple[int, object], status: int
) -> None:
    busy = (status, error("rejected_execution_exception"))
    scripted = Scripted(busy, busy, busy, answer)
    call(scripted.index)
    assert (scripted.requests, scripted.clock.pauses) == (4, [0.2, 0.4, 0.8])


@pytest.mark.parametrize("status", [429, 503])
def test_busy_chunks_alone_are_written_again(status: int) -> None:
    scripted = Scripted(bulk(201, status, 201, status), bulk(201, status), bulk(200))
    scripted.index.write([chunk(ordinal) for ordinal in range(4)])
    asked = [written_ordinals(body) for _, _, body in scripted.connection.asked]
    assert asked == [[0, 1, 2, 3], [1, 3], [3]]


@pytest.mark.parametrize("answer", [(429, error("x")), (503, "<html>"), bulk(429), bulk(503)])
def test_patience_ends(answer: tuple[int, object]) -> None:
    scripted = Scripted(answer, patience=30)
    with pytest.raises(Unavailable, match="vectors"):
        scripted.index.write([chunk()])
    assert scripted.clock.pauses == [0.2, 0.4, 0.8, 1.6, 3.2, *[LONGEST_PAUSE] * 4]


def test_without_patience_busy_is_unavailable_at_once() -> None:
    scripted = Scripted((429, error("rejected_execution_exception")), patience=0)
    with pytest.raises(Unavailable):
        scripted.index.search(HERE, 10)
    assert (scripted.requests, scripted.clock.pauses) == (1, [])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((400, error("illegal_argument_exception")), Refused),
        ((400, error("parsing_exception")), Misconfigured),
        ((401, {"message": "Unauthorized"}), Misconfigured),
        ((403, error("security_exception")), Misconfigured),
        ((403, error("cluster_block_exception")), Unavailable),
        ((404, error("index_not_found_exception")), Misconfigured),
        ((413, "too large"), Misconfigured),
        ((500, error("null_pointer_exception")), Unavailable),
        ((502, "<html>"), Unavailable),
        ((504, {"message": "timeout"}), Unavailable),
        ((200, "<html>no JSON</html>"), Unavailable),
        (ConnectionTimeout("TIMEOUT", "", OSError()), Unavailable),
        (bulk(201, 400, kind="illegal_argument_exception"), Refused),
        (bulk(201, 400, kind="strict_dynamic_mapping_exception"), Misconfigured),
        (bulk(201, 400, kind="mapper_parsing_exception"), Misconfigured),
        (bulk(201, 403, kind="security_exception"), Misconfigured),
        (bulk(201, 403, kind="cluster_block_exception"), Unavailable),
        (bulk(201, 404, kind="index_not_found_exception"), Misconfigured),
        (bulk(201, 500), Unavailable),
        (bulk(503, 400, kind="mapper_parsing_exception"), Misconfigured),
    ],
    ids=str,
)
def test_other_failures_are_not_asked_again(
    answer: tuple[int, object] | Exception, expected: type[KbError]
) -> None:
    scripted = Scripted(answer, bulk(201))
    with pytest.raises(expected) as raised:
        scripted.index.write([chunk(0), chunk(1)])
    assert (scripted.requests, type(raised.value)) == (1, expected)


@pytest.mark.parametrize("failure", [NotReached, SSLError])
def test_dropped_connection_is_opened_once_more(failure: type[NotReached]) -> None:
    dropped = failure("N/A", "dropped", OSError())
    scripted = Scripted(dropped, (200, NOTHING_FOUND))
    assert scripted.index.search(HERE, 10) == []
    gone = Scripted(dropped)
    with pytest.raises(Unavailable):
        gone.index.search(HERE, 10)
    assert (scripted.requests, gone.requests, gone.clock.pauses) == (2, 2, [])


@pytest.mark.parametrize(
    ("status", "told", "message"),
    [
        (
            403,
            {"Message": "User: role is not authorized to perform: es:ESHttpPost"},
            "OpenSearch refuses to search kb (403: User: role is not authorized to perform:"
            " es:ESHttpPost): allow the function's role es:ESHttpGet, es:ESHttpPost and, to create"
            " the index, es:ESHttpPut in its own and the domain's policy; where the domain has"
            " fine-grained access control, map the role there too",
        ),
        (
            404,
            {
                "error": {
                    "type": "index_not_found_exception",
                    "reason": "no such index [kb]",
                    "root_cause": [
                        {"type": "index_not_found_exception", "reason": "no such index [kb]"}
                    ],
                }
            },
            "OpenSearch refuses to search kb (404: no such index [kb]): ingest creates the index"
            " at its start; check OPENSEARCH_ENDPOINT and OPENSEARCH_INDEX, and that ingest has"
            " run",
        ),
        (
            400,
            {
                "error": {
                    "type": "search_phase_execution_exception",
                    "reason": "all shards failed",
                    "root_cause": [
                        {
                            "type": "query_shard_exception",
                            "reason": "Field 'vector' is not knn_vector type.",
                        }
                    ],
                }
            },
            "OpenSearch refuses to search kb (400: Field 'vector' is not knn_vector type.): the"
            " index is not of this version's making",
        ),
    ],
    ids=["403", "404", "400"],
)
def test_message_says_what_to_do(status: int, told: object, message: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        Scripted((status, told)).index.search(HERE, 10)
    assert str(raised.value) == message


@pytest.mark.parametrize("told", ["x" * 9000, {"type": "parsing_exception", "reason": "x" * 9000}])
def test_words_of_opensearch_are_cut_where_they_quote_a_document(told: object) -> None:
    with pytest.raises(Misconfigured) as raised:
        Scripted((400, {"error": told})).index.refresh()
    assert 500 < len(str(raised.value)) < 700


def test_removal_refreshes_first_and_starts_over_after_conflicts() -> None:
    conflicts = (200, REMOVED | {"version_conflicts": 2})
    scripted = Scripted((200, REFRESHED), conflicts, (200, REFRESHED), (200, REMOVED))
    scripted.index.remove_others("a", VERSION, 1)
    assert [(method, url) for method, url, _ in scripted.connection.asked] == [
        ("POST", "/kb/_refresh"),
        ("POST", "/kb/_delete_by_query"),
    ] * 2


@pytest.mark.parametrize(
    ("kept", "spared"),
    [
        (None, {}),
        (
            VERSION,
            {
                "must_not": [
                    {
                        "bool": {
                            "filter": [{"term": {"revision": 1}}, {"term": {"fingerprint": "f"}}]
                        }
                    }
                ]
            },
        ),
    ],
    ids=["nothing", "a version"],
)
def test_removal_names_the_document_its_revisions_and_what_is_kept(
    kept: Version | None, spared: dict[str, object]
) -> None:
    scripted = Scripted((200, REFRESHED), (200, REMOVED))
    scripted.index.remove_others("a", kept, 4)
    _, _, body = scripted.connection.asked[-1]
    of_document = [{"term": {"key": "a"}}, {"range": {"revision": {"lte": 4}}}]
    assert json.loads(body) == {"query": {"bool": {"filter": of_document} | spared}}


@pytest.mark.parametrize("answer", [{"failures": [{"status": 500}]}, {"timed_out": True}])
def test_removal_of_a_part_is_unavailable(answer: dict[str, object]) -> None:
    scripted = Scripted((200, REFRESHED), (200, REMOVED | answer))
    with pytest.raises(Unavailable):
        scripted.index.remove_others("a", None, 1)
    assert scripted.requests == 2


def test_refresh_of_a_part_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        Scripted((200, {"_shards": {"total": 2, "successful": 1, "failed": 1}})).index.refresh()


def test_search_is_at_least_200_wide_and_filters_inside_the_nearest_neighbours() -> None:
    scripted = Scripted((200, NOTHING_FOUND))
    scripted.index.search(HERE, 7, domain="d", without={"b", "a"})
    scripted.index.search(HERE, 250)
    bodies = [json.loads(body) for _, _, body in scripted.connection.asked]
    assert [(body["size"], body["query"]) for body in bodies] == [
        (
            7,
            {
                "knn": {
                    "vector": {
                        "vector": [1.0, 0.0],
                        "k": 200,
                        "filter": {
                            "bool": {
                                "filter": {"term": {"domain": "d"}},
                                "must_not": {"terms": {"key": ["a", "b"]}},
                            }
                        },
                    }
                }
            },
        ),
        (250, {"knn": {"vector": {"vector": [1.0, 0.0], "k": 250}}}),
    ]


@given(st.lists(st.integers(0, BULK_BYTES // 2), max_size=12))
def test_every_chunk_is_in_one_request_of_bounded_size(lengths: list[int]) -> None:
    scripted = Scripted((200, {}))
    bodies: list[str] = []

    def take(body: str, **_: object) -> dict[str, object]:
        bodies.append(body)
        return {"items": [{"index": {"status": 201}}] * (body.count("\n") // 2)}

    scripted.index.client.bulk = take
    scripted.index.write(
        [chunk(at, text="文" * (length // 3)) for at, length in enumerate(lengths)]
    )
    assert [at for body in bodies for at in written_ordinals(body)] == list(range(len(lengths)))
    assert all(len(body.encode()) <= BULK_BYTES for body in bodies)


def test_chunk_larger_than_a_request_goes_alone() -> None:
    scripted = Scripted(bulk(201))
    large = "x" * (BULK_BYTES + 1)
    scripted.index.write([chunk(0), chunk(1, text=large), chunk(2)])
    asked = [written_ordinals(body) for _, _, body in scripted.connection.asked]
    assert asked == [[0], [1], [2]]


keys = st.text(min_size=1, max_size=1024) | st.sampled_from(["a", "a1"])
fingerprints = st.text() | st.sampled_from(["f", "1f"])
identities = st.tuples(keys, st.integers(0, 11), fingerprints, st.integers(0, 11))


@pytest.mark.parametrize(
    "other", [("b", 1, "f", 1), ("a", 2, "f", 1), ("a", 1, "g", 1), ("a", 1, "f", 2)]
)
def test_each_component_tells_ids_apart(other: tuple[str, int, str, int]) -> None:
    assert identity("a", 1, "f", 1) != identity(*other)


@given(st.sets(identities, min_size=2, max_size=20))
def test_ids_are_short_and_differ_wherever_chunks_do(
    chunks: set[tuple[str, int, str, int]],
) -> None:
    ids = {identity(*components) for components in chunks}
    assert (len(ids), max(map(len, ids)) <= 512) == (len(chunks), True)


def test_found_mapping_may_tell_more_than_was_asked_for() -> None:
    mapping = mapping_for("m", 2)
    mapping["properties"]["vector"]["data_type"] = "float"
    mapping["properties"]["vector"]["method"]["parameters"] = {"m": 24}
    assert check(mapping, "kb-1", "m", 2) is None


def credentials(monkeypatch: pytest.MonkeyPatch, found: object) -> None:
    monkeypatch.setattr(boto3.Session, "get_credentials", lambda _: found)


def test_https_address_is_signed_with_credentials_renewed_as_they_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issued: list[str] = []

    def issue() -> dict[str, str]:
        issued.append(f"KEY{len(issued)}")
        soon = datetime.now(UTC) + timedelta(seconds=1)  # so that each use renews them
        return {
            "access_key": issued[-1],
            "secret_key": "secret",
            "token": f"token of {issued[-1]}",
            "expiry_time": soon.isoformat(),
        }

    renewed = RefreshableCredentials.create_from_metadata(
        issue(), refresh_using=issue, method="test"
    )
    credentials(monkeypatch, renewed)
    client = connect("https://search.eu-west-1.es.amazonaws.com", region="eu-west-1", timeout=3)
    connection = client.transport.get_connection()
    headers = [
        connection.http_auth("POST", f"{connection.host}/kb/_search", b"{}") for _ in range(2)
    ]
    today = datetime.now(UTC).strftime("%Y%m%d")
    assert (connection.host, connection.timeout) == (
        "https://search.eu-west-1.es.amazonaws.com:443",
        3,
    )
    for signed, key in zip(headers, issued[-2:], strict=True):
        scope = f"AWS4-HMAC-SHA256 Credential={key}/{today}/eu-west-1/es/aws4_request, "
        assert signed["Authorization"].startswith(scope)
        assert signed["X-Amz-Security-Token"] == f"token of {key}"


@pytest.mark.parametrize(
    ("endpoint", "host", "signed"),
    [
        ("http://127.0.0.1:9201", "http://127.0.0.1:9201", False),
        ("http://localhost", "http://localhost:9200", False),
        ("https://vectors.example.com/", "https://vectors.example.com:443", True),
        (
            "search-kb.eu-west-1.es.amazonaws.com",
            "https://search-kb.eu-west-1.es.amazonaws.com:443",
            True,
        ),
    ],
)
def test_address_says_whether_requests_are_signed(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, host: str, signed: bool
) -> None:
    credentials(monkeypatch, object())
    connection = connect(endpoint, region="eu-west-1", timeout=1).transport.get_connection()
    assert (connection.host, connection.http_auth is not None) == (host, signed)


@pytest.mark.parametrize("endpoint", ["", "ftp://host", "http://", "https:///path"])
def test_address_that_is_none_is_named(endpoint: str) -> None:
    with pytest.raises(Misconfigured, match="OPENSEARCH_ENDPOINT is no http or https address"):
        connect(endpoint, region="eu-west-1", timeout=1)


@pytest.mark.parametrize(
    ("found", "region", "missing"),
    [(None, "eu-west-1", "credentials"), (object(), "", "region")],
)
def test_what_signing_lacks_is_said(
    monkeypatch: pytest.MonkeyPatch, found: object, region: str, missing: str
) -> None:
    credentials(monkeypatch, found)
    with pytest.raises(Misconfigured, match=f"no AWS {missing} to sign requests to search.x with"):
        connect("https://search.x", region=region, timeout=1)
