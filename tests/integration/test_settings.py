"""Each setting changes what the system does: one case a variable, usual and overridden."""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from unittest.mock import patch

import pytest
import urllib3.util.connection
from kb import routes, wiring
from kb.answers import Answer
from kb.deadline import Deadline, Step
from kb.documents import CatalogRow
from kb.errors import KbError
from kb.evidence import Background, Calibration
from kb.local.cloud import LocalCloud, MotoServer
from kb.local.embedded_index import EmbeddedIndex
from kb.local.embedded_model import EmbeddedModel
from kb.ports import Hit, Vector
from kb.settings import IngestSettings, LookupSettings, read_settings, variables_of
from kb.stores.dynamodb import from_item

from tests.conftest import TEMPLATE, Clock, System, markdown
from tests.fakes import HashingEmbedder
from tests.served import answering

LATE_SECONDS = 0.4
"""What a slow service takes: more than the overriding timeout, less than the usual one."""


# ------------------------------------------------------------------------------- what is observed
def lines(count: int, length: int = 90) -> str:
    """Paragraphs of words that stand once each in the whole text."""
    return "\n\n".join(
        " ".join(f"w{number}x{word}" for word in range(length // 6)) for number in range(count)
    )


def row(system: System, text: str) -> CatalogRow:
    system.ingest("a.md", text)
    found = system.new_lookup().documents.read("a.md")
    assert found is not None
    return found


def parts(system: System) -> int:
    return row(system, markdown("A", "[alpha]", lines(10))).parts


def chunks(system: System) -> int:
    system.ingest("a.md", markdown("A", "[alpha]", lines(6)))
    return len(system.embedder.passages)


def words_embedded_twice(system: System) -> bool:
    system.ingest("a.md", markdown("A", "[alpha]", lines(20)))
    words = " ".join(text.partition("\n")[2] for text in system.embedder.passages).split()
    return len(words) > len(set(words))


def status(system: System) -> str:
    return row(system, markdown("A", "[alpha]", lines(30))).status


def keywords(system: System) -> tuple[str, ...]:
    return row(system, markdown("A", "[alpha, be]", "Text.")).keywords


def many_keywords(system: System) -> int:
    words = ", ".join(f"{'keyword' * 10} {number}" for number in range(60))
    return len(row(system, markdown("A", f"[{words}]", "Text.")).keywords)


def tombstone_stays(system: System) -> float:
    system.ingest("a.md", markdown("A", "[alpha]", "Text."))
    system.delete("a.md")
    system.ingest("a.md")
    [item] = items(system, "CATALOG_TABLE")
    return float(item["expires_at"] - int(system.clock.seconds()))


def largest_batch(system: System) -> int:
    sizes: list[int] = []
    embed = system.embedder.embed_passages

    def counted(texts: Sequence[str]) -> list[Vector]:
        sizes.append(len(texts))
        return embed(texts)

    with patch.object(system.embedder, "embed_passages", counted):
        system.ingest("a.md", markdown("A", "[alpha]", lines(30)))
    return max(sizes)


def level(query: str) -> Callable[[System], str | None]:
    def observe(system: System) -> str | None:
        system.ingest("a.md", markdown("A", "[disk full]", "Text."))
        return system.ask(query).level

    return observe


def source(system: System) -> str | None:
    """Of an answer where all vectors are equal and only b.md has the question's word."""
    system.ingest("a.md", markdown("A", "[first one]", "Text of it."))
    system.ingest("b.md", markdown("B", "[second one]", "Text of zebra."))
    answer = system.ask("zebra")
    return answer.supplement.row.key if answer.supplement else None


def hits_wanted(system: System) -> list[int]:
    wanted: list[int] = []
    search = system.index.search

    def counted(vector: Vector, k: int, *rest: Any) -> list[Hit]:
        wanted.append(k)
        return search(vector, k, *rest)

    with patch.object(system.index, "search", counted):
        system.ask("anything")
    return wanted


def answered(query: str, session: str = "s1", **fields: object) -> Callable[[System], str]:
    """`ok` or the field that the API finds fault with, for one POST /lookup."""

    def observe(system: System) -> str:
        body = json.dumps({"query": query, "session_id": session, **fields})
        request = routes.Request(caller="c", parameters={}, body=body, is_base64=False)
        return said(lambda: routes.lookup(system.new_lookup(), request))

    return observe


def given_after(seconds: float) -> Callable[[System], bool]:
    """Whether a session is given again what it was given so many seconds ago."""

    def observe(system: System) -> bool:
        system.ingest("a.md", markdown("A", "[alpha]", "Text."))
        system.ask("alpha", session_id="s1")
        system.clock.advance(seconds)
        return system.ask("alpha", session_id="s1").primary is not None

    return observe


def log_row_stays(system: System) -> float:
    system.ask("anything")
    [item] = items(system, "INVOCATION_TABLE")
    return float(item["expires_at"] - int(system.clock.seconds()))


def seen_after(seconds: float, stamped_before: float = 0) -> Callable[[System], bool]:
    """Whether a running lookup sees a document that came so many seconds ago, in its time."""

    def observe(system: System) -> bool:
        running = system.new_lookup()
        running.catalog.refresh()
        system.clock.advance(-stamped_before)
        system.ingest("a.md", markdown("A", "[alpha]", "Text."))
        system.clock.advance(stamped_before + seconds)
        running.catalog.refresh()
        return running.catalog.row("a.md") is not None

    return observe


def held_after(seconds: float) -> Callable[[System], bool]:
    """Whether a running lookup still holds a row that is gone without a trace."""

    def observe(system: System) -> bool:
        system.ingest("a.md", markdown("A", "[alpha]", "Text."))
        running = system.new_lookup()
        running.catalog.refresh()
        system.cloud.client("dynamodb").delete_item(
            TableName=system.environment["CATALOG_TABLE"], Key={"key": {"S": "a.md"}}
        )
        system.clock.advance(seconds)
        running.catalog.refresh()
        return running.catalog.row("a.md") is not None

    return observe


def answer(system: System) -> Answer:
    system.ingest("a.md", markdown("A", "[alpha]", "Text."))
    return system.ask("alpha", session_id="s1")


def retry_delays(receipts: int) -> Callable[[System], list[int]]:
    """For how long a failed message is hidden."""

    def observe(system: System) -> list[int]:
        with answering(200, "{}") as sqs, environment(AWS_ENDPOINT_URL_SQS=sqs.url):
            if "INGEST_QUEUE_URL" not in system.overrides:
                system.overrides["INGEST_QUEUE_URL"] = f"{sqs.url}/queue"
            message = {
                "receiptHandle": "r",
                "attributes": {"ApproximateReceiveCount": str(receipts)},
            }
            system.new_ingest().queue.delay_retry(message)
        return [json.loads(body)["VisibilityTimeout"] for *_, body in sqs.asked]

    return observe


def said(call: Callable[[], object]) -> str:
    """`ok`, or what the call raises."""
    try:
        call()
    except KbError as error:
        return str(error)
    return "ok"


def items(system: System, table: str) -> list[dict[str, Any]]:
    found = system.cloud.client("dynamodb").scan(TableName=system.environment[table])["Items"]
    return [from_item(item) for item in found]


def items_of_stack(system: System, resource: str) -> list[dict[str, Any]]:
    """Of the stack's own table, whatever the settings say."""
    table = system.cloud.environment[{"InvocationTable": "INVOCATION_TABLE"}[resource]]
    found = system.cloud.client("dynamodb").scan(TableName=table)["Items"]
    return [from_item(item) for item in found]


# ------------------------------------------------------------------ services, late or busy
@contextmanager
def environment(**variables: str) -> Iterator[None]:
    with patch.dict(os.environ, variables):
        yield


def started(parts: Callable[[], Any], system: System, **variables: str) -> Any:
    """The parts of a function as it starts, from the process's environment."""
    make = parts.__wrapped__  # type: ignore[attr-defined]
    with environment(**system.environment | variables | system.overrides):
        return make()


def table_answers(parts: str) -> Callable[[System], str]:
    """What a table that is late comes to."""

    def observe(system: System) -> str:
        nothing = json.dumps({"Items": [], "Responses": {}})
        late = answering(200, nothing, late=LATE_SECONDS)
        with late as table, environment(AWS_ENDPOINT_URL_DYNAMODB=table.url):
            if parts == "lookup":
                documents = system.new_lookup().documents
                return said(lambda: documents.read("a.md"))
            ingest = system.new_ingest().ingest
            return said(lambda: ingest.reconcile("a.md"))

    return observe


def seconds_to_connect(system: System) -> set[float]:
    waited: set[float] = set()
    create = urllib3.util.connection.create_connection

    def noted(address: Any, timeout: Any, *rest: Any, **more: Any) -> Any:
        waited.add(timeout)
        return create(address, timeout, *rest, **more)

    with patch.object(urllib3.util.connection, "create_connection", noted):
        system.new_lookup().documents.read("a.md")
    return waited


NO_HITS = '{"hits": {"hits": []}}'
VECTOR = [1.0] + [0.0] * 1023
EMBEDDED = json.dumps({"vectors": [VECTOR], "model": "BAAI/bge-m3", "truncated": []})


def embedding_answers(parts: Callable[[], Any]) -> Callable[[System], str]:
    """What an embedding function that is late comes to."""

    def observe(system: System) -> str:
        with answering(200, EMBEDDED, late=LATE_SECONDS) as function:
            found = started(
                parts,
                system,
                EMBEDDER="function",
                EMBEDDING_FUNCTION="f",
                AWS_ENDPOINT_URL_LAMBDA=function.url,
            )
            if parts is wiring.lookup_parts:
                return said(lambda: found.embedder.embed_question("q"))
            embedder = found.ingest._embedder
            return said(lambda: embedder.embed_passages(["p"]))

    return observe


def function_called(system: System) -> str:
    with answering(200, EMBEDDED) as function:
        variables = {"EMBEDDER": "function", "EMBEDDING_FUNCTION": "usual"}
        address = {"AWS_ENDPOINT_URL_LAMBDA": function.url}
        found = started(wiring.lookup_parts, system, **variables, **address)
        found.embedder.embed_question("q")
    [(_, path, _, _)] = function.asked
    return path.split("/")[-2]


def opensearch(system: System, url: str, parts: Callable[[], Any] = wiring.lookup_parts) -> Any:
    variables = {"VECTOR_INDEX": "opensearch", "OPENSEARCH_ENDPOINT": url}
    found = started(parts, system, **variables)
    return found.index if parts is wiring.lookup_parts else found.ingest._index


def index_made(system: System) -> str:
    index: Any = started(wiring.lookup_parts, system, VECTOR_INDEX="opensearch").index
    return type(index.prepare.__self__).__name__  # whose method it is, the index being made late


def index_asked(system: System) -> str:
    with answering(200, NO_HITS) as node:
        opensearch(system, node.url).search(VECTOR[:384], 1)
    [(_, path, _, _)] = node.asked
    return path.split("/")[1]


def index_answers(
    late: float = 0, busy: int = 0, parts: Callable[[], Any] = wiring.lookup_parts
) -> Callable[[System], str]:
    def observe(system: System) -> str:
        with answering(200, NO_HITS, late=late, busy=busy) as node:
            index = opensearch(system, node.url, parts)
            return said(lambda: index.search(VECTOR[:384], 1))

    return observe


def endpoint_asked(system: System) -> str:
    with answering(200, NO_HITS) as usual, answering(200, NO_HITS) as other:
        if "OPENSEARCH_ENDPOINT" in system.overrides:
            system.overrides["OPENSEARCH_ENDPOINT"] = other.url
        opensearch(system, usual.url).search(VECTOR[:384], 1)
    return "usual" if usual.asked else "other" if other.asked else "none"


def seconds_for_an_answer(system: System) -> list[float]:
    """How long the last step of an answer is waited for, if nothing before took any time."""
    waited: list[float] = []

    class Never(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            waited.append(timeout or 0)

    settings = system.new_lookup().settings
    deadline = Deadline(settings.timeouts, system.new_lookup().threads, clock=lambda: 0)
    deadline.wait(Step.LOG, "log", Never())
    return waited


# ------------------------------------------------------------------------------------- the cases
class AskewEmbedder(HashingEmbedder):
    """Every passage lies at the same cosine, .7, to every question: similarity .7 at 2.0."""

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        self.passages += texts
        return [[0.7, math.sqrt(0.51), *[0.0] * (self.dimension - 2)] for _ in texts]

    def embed_question(self, text: str) -> Vector:
        return [1.0, *[0.0] * (self.dimension - 1)]


@dataclass(frozen=True, slots=True)
class Case:
    """What is observed as it is, and with the variable set to `value`."""

    value: str
    observe: Callable[[System], object]
    usual: object
    overridden: object
    beside: Mapping[str, str] = field(default_factory=dict)
    """Other variables, set both times."""


SURE = Calibration(9.0, 0.0, 0.0, 0.0, 0.0, 0.0, Background(0.5, 0.1))
SMALL = {"CHUNK_SIZE": "100", "CHUNK_OVERLAP": "0"}
LATE_TABLE = "catalog did not answer (ReadTimeoutError)"
NO_TABLE = "did not answer (ResourceNotFoundException)"

CASES: dict[str, Case] = {
    "CATALOG_TABLE": Case("none", lambda s: said(lambda: answer(s)), "ok", f"catalog {NO_TABLE}"),
    "CONTENT_TABLE": Case("none", lambda s: said(lambda: answer(s)), "ok", f"content {NO_TABLE}"),
    "SESSION_TABLE": Case("none", lambda s: answer(s).degraded, (), ("session",)),
    "INVOCATION_TABLE": Case(
        "none",
        lambda s: (answer(s), len(items_of_stack(s, "InvocationTable")))[1],
        1,
        0,
    ),
    "KNOWLEDGE_BUCKET": Case(
        "none", lambda s: said(lambda: answer(s)), "ok", "bucket did not answer (NoSuchBucket)"
    ),
    "INGEST_QUEUE_URL": Case("", retry_delays(1), [5], []),
    "EMBEDDER": Case(
        "embedded",
        lambda s: started(wiring.lookup_parts, s, EMBEDDER="function").embedder.model,
        "BAAI/bge-m3",
        EmbeddedModel.model,
        {"EMBEDDING_FUNCTION": "f"},
    ),
    "EMBEDDING_FUNCTION": Case("other", function_called, "usual", "other"),
    "VECTOR_INDEX": Case(
        "embedded",
        index_made,
        "OpenSearchIndex",
        "EmbeddedIndex",
        {"OPENSEARCH_ENDPOINT": "http://127.0.0.1:9"},
    ),
    "OPENSEARCH_ENDPOINT": Case("http://127.0.0.1:9", endpoint_asked, "usual", "other"),
    "OPENSEARCH_INDEX": Case("other", index_asked, "kb-chunks", "other"),
    "CONNECT_TIMEOUT": Case("0.5", seconds_to_connect, {1.0}, {0.5}),
    "VECTORS_TIMEOUT": Case(
        "0.1", index_answers(late=LATE_SECONDS), "ok", "vectors did not answer"
    ),
    "SEARCH_PATIENCE": Case("0.1", index_answers(busy=1), "ok", "vectors did not answer"),
    "WRITE_PATIENCE": Case(
        "0.1",
        index_answers(busy=1, parts=wiring.ingest_parts),
        "ok",
        "vectors did not answer",
    ),
    "CONTENT_LIMIT": Case("200", parts, 1, 5, SMALL),
    "CHUNK_SIZE": Case("100", chunks, 1, 6, {"CHUNK_OVERLAP": "0"}),
    "CHUNK_OVERLAP": Case("0", words_embedded_twice, True, False, {"CHUNK_SIZE": "300"}),
    "CHUNKS_PER_DOCUMENT": Case("2", status, "indexed", "failed"),
    "DOCUMENT_BYTES": Case("100", status, "indexed", "failed"),
    "FRONTMATTER_LIMIT": Case("10", status, "indexed", "semantic_only"),
    "KEYWORD_LENGTH": Case("3", keywords, ("alpha", "be"), ("be",)),
    "ROW_BYTES": Case("5000", many_keywords, 60, 7),
    "TOMBSTONE_TTL": Case("60", tombstone_stays, 7 * 86400.0, 60.0),
    "READ_TIMEOUT": Case("0.1", table_answers("ingest"), "ok", LATE_TABLE),
    "EMBED_BATCH": Case("2", largest_batch, 4, 2),
    "EMBEDDING_TIMEOUT": Case(
        "0.1",
        embedding_answers(wiring.ingest_parts),
        "ok",
        "embedding did not answer (ReadTimeoutError)",
    ),
    "RETRY_DELAY": Case("7", retry_delays(1), [5], [7]),
    "RETRY_DELAY_MOST": Case("60", retry_delays(20), [300], [60]),
    "RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE": Case(
        "4", level("zebra"), "REFERENCE", "HIGHLY_RELEVANT"
    ),
    "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD": Case(
        "0.65", level("zebra"), "REFERENCE", "HIGHLY_RELEVANT"
    ),
    "RETRIEVAL_REFERENCE_THRESHOLD": Case("0.72", level("zebra"), "REFERENCE", None),
    "RETRIEVAL_CALIBRATION": Case(
        json.dumps(asdict(SURE)), level("zebra"), "REFERENCE", "HIGHLY_RELEVANT"
    ),
    "RETRIEVAL_WORDS": Case("false", source, "b.md", "a.md"),
    "RETRIEVAL_PRECISE_MIN_COVERAGE": Case(
        "0.3",
        level("is the disk full today"),
        "REFERENCE",
        "PRECISE",
        {"RETRIEVAL_REFERENCE_THRESHOLD": "0.72"},
    ),
    "QUERY_LENGTH": Case("5", answered("abcdef"), "ok", "query: has more than 5 characters"),
    "SESSION_ID_LENGTH": Case(
        "3", answered("q", "s123"), "ok", "session_id: has 4 characters; at most 3 are taken"
    ),
    "BODY_BYTES": Case(
        "10", answered("q", "s"), "ok", "the body has 33 bytes; at most 10 are read"
    ),
    "SEARCH_K": Case("7", hits_wanted, [100], [7]),
    "SESSION_TTL": Case("60", given_after(100), False, True),
    "LOG_TTL": Case("60", log_row_stays, 90 * 86400.0, 60.0),
    "REFRESH_INTERVAL": Case("10", seen_after(2), True, False),
    "REFRESH_OVERLAP": Case("5", seen_after(2, stamped_before=20), True, False),
    "RELOAD_AFTER_IDLE": Case("60", held_after(100), True, False),
    "TABLE_TIMEOUT": Case("0.1", table_answers("lookup"), "ok", LATE_TABLE),
    "QUESTION_TIMEOUT": Case(
        "0.1",
        embedding_answers(wiring.lookup_parts),
        "ok",
        "embedding did not answer (ReadTimeoutError)",
    ),
    "ANSWER_TIMEOUT": Case("40", seconds_for_an_answer, [27.0], [40.0]),
    "LANGUAGE": Case(
        "en",
        lambda s: answer(s).hint,
        "知识库中不存在比上述结果更精准的文档",
        "Nothing in the knowledge base is more precise",
    ),
}


def system_for(moto: MotoServer, name: str, overrides: Mapping[str, str]) -> System:
    """A system of its own, whose vectors all lie at the same distance."""
    embedder = AskewEmbedder()
    index = EmbeddedIndex(model=embedder.model, dimension=embedder.dimension)
    specified = {
        "RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE": "2.0",
        "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD": "0.75",
        "RETRIEVAL_REFERENCE_THRESHOLD": "0.5",
        "RETRIEVAL_CALIBRATION": "none",
    }
    cloud = LocalCloud(moto, TEMPLATE, stack=name)
    if any(one.endswith("_TIMEOUT") for one in overrides):
        # A local system waits longer than a deployed one, whose timeouts are meant then.
        deployed = {one: "" for one in cloud.environment if one.endswith("_TIMEOUT")}
        specified = deployed | specified
    return System(cloud, embedder, index, Clock(), {**specified, **overrides})


@pytest.mark.parametrize("variable", CASES)
def test_overriding_a_setting_changes_the_behaviour(variable: str, moto: MotoServer) -> None:
    case = CASES[variable]
    stack = variable.replace("_", "-").lower()
    unset = {variable: ""} if variable.endswith("_TIMEOUT") else {}
    usual = system_for(moto, f"usual-{stack}", {**case.beside, **unset})
    other = system_for(moto, f"other-{stack}", {**case.beside, variable: case.value})
    assert (case.observe(usual), case.observe(other)) == (case.usual, case.overridden)


def test_every_setting_has_its_case() -> None:
    variables = {*variables_of(IngestSettings).values(), *variables_of(LookupSettings).values()}
    assert set(CASES) == variables


@pytest.mark.parametrize("name", ["HIGHLY_RELEVANT", "REFERENCE"])
def test_thresholds_are_read_under_the_distances_name_too(name: str, system: System) -> None:
    del system.overrides[f"RETRIEVAL_{name}_THRESHOLD"]
    system.overrides[f"RETRIEVAL_NORMALIZATION_{name}_THRESHOLD"] = "0.6"
    settings = read_settings(LookupSettings, system.environment)
    assert settings.model_dump()[f"{name.lower()}_threshold"] == 0.6
