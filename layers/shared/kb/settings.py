"""Every limit, threshold and address, read from the environment once and checked whole.

Each function takes one model, so that a wrong value stops its cold start and names all faults.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Json,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from kb.deadline import Timeouts
from kb.errors import Misconfigured
from kb.evidence import Calibration
from kb.grading import EMBEDDED, SPECIFIED, Profile


@dataclass(frozen=True, slots=True)
class Unit:
    """What a setting's number counts."""

    name: str


Characters = Annotated[int, Unit("characters")]
Bytes = Annotated[int, Unit("bytes")]
Chunks = Annotated[int, Unit("chunks")]
Texts = Annotated[int, Unit("texts")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), Unit("share")]
Distance = Annotated[float, Field(gt=0, allow_inf_nan=False), Unit("squared distance")]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), Unit("s")]
Lifetime = Annotated[int, Field(ge=1), Unit("s")]
"""DynamoDB deletes by whole seconds."""
Timeout = Annotated[float, Field(gt=0, le=900, allow_inf_nan=False), Unit("s")]
"""No Lambda function runs longer."""
Delay = Annotated[int, Field(ge=1, le=43200), Unit("s")]
"""SQS hides a message for whole seconds, twelve hours at most."""

ATTEMPTS = 2
"""Tries of one call to DynamoDB, S3 or SQS; a third would not fit into API Gateway's 29 seconds."""

OTHER_SPELLINGS = {
    "RETRIEVAL_NORMALIZATION_HIGHLY_RELEVANT_THRESHOLD": "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD",
    "RETRIEVAL_NORMALIZATION_REFERENCE_THRESHOLD": "RETRIEVAL_REFERENCE_THRESHOLD",
}
"""Also read where the variable itself is unset: the thresholds beside the distance's name."""


class FromEnvironment(BaseModel):
    """Field `x_y` is read from the environment variable `X_Y`, or from its alias."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        validate_default=True,
        # Each function builds the one model it reads, which takes a tenth of its start.
        defer_build=True,
        alias_generator=str.upper,
        hide_input_in_errors=True,
    )


class Shared(FromEnvironment):
    """What both functions must agree on."""

    catalog_table: str = Field(min_length=1, description="name of the catalog table")
    content_table: str = Field(min_length=1, description="name of the table of parts and outlines")
    embedder: Literal["function", "embedded"] = Field(
        "function", description="who embeds text: the embedding function, or a model in process"
    )
    embedding_function: str = Field(
        "", description="name or ARN of the embedding function, where it embeds"
    )
    vector_index: Literal["opensearch", "embedded"] = Field(
        "opensearch", description="where vectors live: OpenSearch, or in process"
    )
    opensearch_endpoint: str = Field(
        "", description="https address of the OpenSearch domain, where vectors live there"
    )
    opensearch_index: str = Field("kb-chunks", min_length=1, description="name of the index")
    connect_timeout: Timeout = Field(1, description="to open a connection to AWS")
    vectors_timeout: Timeout = Field(5, description="to wait for the vector index")

    # A validator sees the fields before its own that are right, so each says all it can of one
    # environment, whatever else is wrong in it.
    @field_validator("embedding_function")
    @classmethod
    def function_is_named(cls, value: str, info: ValidationInfo) -> str:
        if not value and info.data.get("embedder") == "function":
            raise ValueError("is needed where EMBEDDER is function")
        return value

    @field_validator("opensearch_endpoint")
    @classmethod
    def domain_is_named(cls, value: str, info: ValidationInfo) -> str:
        if not value and info.data.get("vector_index") == "opensearch":
            raise ValueError("is needed where VECTOR_INDEX is opensearch")
        return value


class DocumentLimits(FromEnvironment):
    """How documents are read and cut; where another document is not accepted."""

    content_limit: Characters = Field(
        2000,
        ge=200,
        le=100_000,  # four bytes each at most, and DynamoDB takes 400 KB an item
        description="one part has at most: what one answer delivers",
    )
    chunk_size: Characters = Field(
        800, ge=100, description="one chunk has at most; no more than CONTENT_LIMIT"
    )
    chunk_overlap: Characters = Field(
        100, ge=0, description="neighbouring chunks share; no more than half of CHUNK_SIZE"
    )
    chunks_per_document: Chunks = Field(
        1000,  # BGE-M3 takes about 0.8 s for each, and the function has 15 minutes
        ge=1,
        description="one document has at most; more: status failed",
    )
    document_bytes: Bytes = Field(
        10 * 1024 * 1024, ge=1, description="one document has at most; more: status failed"
    )
    frontmatter_limit: Characters = Field(
        65536, ge=1, description="frontmatter has at most; more: status semantic_only"
    )
    keyword_length: Characters = Field(
        256, ge=1, description="one keyword has at most; longer ones are dropped"
    )
    row_bytes: Bytes = Field(
        64 * 1024,
        ge=4096,
        le=380_000,
        description="one catalog row has at most; keywords beyond are dropped",
    )

    @field_validator("chunk_size")
    @classmethod
    def chunk_fits_into_a_part(cls, value: int, info: ValidationInfo) -> int:
        if value > info.data.get("content_limit", value):
            raise ValueError("may be at most CONTENT_LIMIT")
        return value

    @field_validator("chunk_overlap")
    @classmethod
    def overlap_leaves_room(cls, value: int, info: ValidationInfo) -> int:
        if value * 2 > info.data.get("chunk_size", value * 2):
            raise ValueError("may be at most half of CHUNK_SIZE")
        return value


class IngestSettings(DocumentLimits, Shared):
    """The ingest function's."""

    knowledge_bucket: str = Field(min_length=1, description="name of the bucket of documents")
    ingest_queue_url: str = Field(
        "", description="URL of the queue; without it failed messages wait for the queue's timeout"
    )
    tombstone_ttl: Lifetime = Field(7 * 86400, description="a removed document's row stays")
    read_timeout: Timeout = Field(5, description="to wait for DynamoDB, S3 or SQS in ingest")
    write_patience: Timeout = Field(10, description="to ask a busy vector index again in ingest")
    embed_batch: Texts = Field(32, ge=1, le=64, description="in one call of the embedder")
    embedding_timeout: Timeout = Field(120, description="to wait for one batch of vectors")
    retry_delay: Delay = Field(
        5, description="before a failed message's first retry; doubles with each"
    )
    retry_delay_most: Delay = Field(300, description="before any retry at most")


class LookupSettings(Shared):
    """The lookup function's."""

    session_table: str = Field(min_length=1, description="name of the session memory's table")
    invocation_table: str = Field(min_length=1, description="name of the log's table")
    max_l2: Distance = Field(
        SPECIFIED.max_l2,
        alias="RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE",
        description="at which similarity is 0",
    )
    highly_relevant_threshold: Share = Field(
        SPECIFIED.highly_relevant,
        alias="RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD",
        description="of evidence from which an answer is HIGHLY_RELEVANT",
    )
    reference_threshold: Share = Field(
        SPECIFIED.reference,
        alias="RETRIEVAL_REFERENCE_THRESHOLD",
        description="of evidence from which an answer is REFERENCE; below, it is none",
    )
    calibration: Json[Calibration] | Literal["none"] = Field(
        "none",
        alias="RETRIEVAL_CALIBRATION",
        description="evidence fitted by `kb calibrate`, as JSON; none: evidence is the similarity",
    )
    words: bool = Field(
        True,
        alias="RETRIEVAL_WORDS",
        description="whether L1 searches for the question's words beside its vector",
    )
    precise_min_coverage: Share = Field(
        0.8,
        alias="RETRIEVAL_PRECISE_MIN_COVERAGE",
        description="of the longer of question and keyword that a strong match covers;"
        " 0: every single match is strong",
    )
    query_length: Characters = Field(2000, ge=1, description="a question has at most")
    session_id_length: Characters = Field(
        256, ge=1, description="a session or request id has at most"
    )
    body_bytes: Bytes = Field(64 * 1024, ge=1, description="a request body has at most")
    search_k: Chunks = Field(100, ge=1, le=10000, description="asked of the vector index")
    session_ttl: Lifetime = Field(86400, description="a session remembers what it read")
    log_ttl: Lifetime = Field(90 * 86400, description="a row of the log stays")
    refresh_interval: Seconds = Field(1, description="between two looks at the catalog")
    refresh_overlap: Seconds = Field(
        30, description="each look goes back further, for late writers"
    )
    reload_after_idle: Seconds = Field(900, description="without a question, then all is reloaded")
    table_timeout: Timeout = Field(1, description="to wait for DynamoDB in a lookup")
    question_timeout: Timeout = Field(10, description="to wait for the question's vector")
    search_patience: Timeout = Field(2, description="to ask a busy vector index again in a lookup")
    answer_timeout: Timeout = Field(
        27,
        description="an answer takes at most; time for a question's vector and four calls to"
        " tables, each made twice, must fit in",
    )
    language: Literal["zh", "en"] = Field("zh", description="of hints and messages")

    @model_validator(mode="before")
    @classmethod
    def unset_thresholds_are_the_profiles(cls, given: dict[str, object]) -> dict[str, object]:
        profile = EMBEDDED if given.get("EMBEDDER") == "embedded" else SPECIFIED
        own: dict[str, object] = {
            "RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE": profile.max_l2,
            "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD": profile.highly_relevant,
            "RETRIEVAL_REFERENCE_THRESHOLD": profile.reference,
        }
        if profile.calibration:
            own["RETRIEVAL_CALIBRATION"] = json.dumps(asdict(profile.calibration))
        return own | given

    @field_validator("reference_threshold")
    @classmethod
    def thresholds_are_ordered(cls, value: float, info: ValidationInfo) -> float:
        if value > info.data.get("highly_relevant_threshold", value):
            raise ValueError("may be at most RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD")
        return value

    @field_validator("answer_timeout")
    @classmethod
    def calls_fit_into_an_answer(cls, value: float, info: ValidationInfo) -> float:
        names = ("connect_timeout", "table_timeout", "question_timeout")
        if all(name in info.data for name in names):
            least = _timeouts(value, *(info.data[name] for name in names)).least
            if value < least:
                raise ValueError(f"must be at least {least:g}, or the other timeouts shorter")
        return value

    @property
    def timeouts(self) -> Timeouts:
        return _timeouts(
            self.answer_timeout, self.connect_timeout, self.table_timeout, self.question_timeout
        )

    @property
    def profile(self) -> Profile:
        calibration = self.calibration if self.calibration != "none" else None
        return Profile(
            self.max_l2, self.highly_relevant_threshold, self.reference_threshold, calibration
        )


def _timeouts(answer: float, connect: float, table: float, question: float) -> Timeouts:
    return Timeouts(answer, question, table=ATTEMPTS * (connect + table))


Model = TypeVar("Model", bound=FromEnvironment)


def variables_of(model: type[FromEnvironment]) -> dict[str, str]:
    """Environment variable of each field."""
    return {name: info.alias or name.upper() for name, info in model.model_fields.items()}


def read_settings(model: type[Model], environment: Mapping[str, str]) -> Model:
    """The settings in `environment`; other variables are ignored, blank ones count as absent.

    Raises Misconfigured naming every variable that is missing or wrong.
    """
    try:
        return _validated(model, environment)
    except ValidationError as error:
        raise Misconfigured("; ".join(_faults(error, model))) from error


def check_settings(environment: Mapping[str, str], *models: type[FromEnvironment]) -> None:
    """Raise Misconfigured naming what is wrong for any of the models, each fault once."""
    faults: dict[str, None] = {}
    for model in models:
        try:
            _validated(model, environment)
        except ValidationError as error:
            faults |= dict.fromkeys(_faults(error, model))
    if faults:
        raise Misconfigured("; ".join(faults))


def _validated(model: type[Model], environment: Mapping[str, str]) -> Model:
    names = set(variables_of(model).values())
    spellings = [*OTHER_SPELLINGS.items(), *((name, name) for name in names)]
    return model.model_validate(
        {
            name: environment[spelling]
            for spelling, name in spellings
            if name in names and environment.get(spelling, "").strip()
        }
    )


def _faults(error: ValidationError, model: type[FromEnvironment]) -> Iterator[str]:
    """Each fault as `VARIABLE: what is wrong`."""
    variables = variables_of(model)
    for fault in error.errors():
        # Deeper places are pydantic's: which alternative of a type it tried.
        name = str(fault["loc"][0]) if fault["loc"] else ""
        problem = "is missing" if fault["type"] == "missing" else fault["msg"]
        yield f"{variables.get(name, name)}: {problem.removeprefix('Value error, ')}"
