"""Every limit, threshold and address, read from the environment once and checked whole.

Each function takes one model, so that a wrong value stops its cold start and names all faults.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kb.errors import Misconfigured
from kb.grading import EMBEDDED, SPECIFIED, Profile

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class _FromEnvironment(BaseModel):
    """Field `x_y` is read from the environment variable `X_Y`, or from its alias."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=str.upper,
        hide_input_in_errors=True,
    )


class Shared(_FromEnvironment):
    """What both functions must agree on."""

    catalog_table: str = Field(min_length=1, description="name of the catalog table")
    content_table: str = Field(min_length=1, description="name of the table of parts and outlines")
    embedder: Literal["function", "embedded"] = Field(
        "function", description="who embeds text: the embedding function, or a model in process"
    )
    embedding_function: str = Field("", description="name or ARN of the embedding function")
    vector_index: Literal["opensearch", "embedded"] = Field(
        "opensearch", description="where vectors live: OpenSearch, or in process"
    )
    opensearch_endpoint: str = Field("", description="https address of the OpenSearch domain")
    opensearch_index: str = Field("kb-chunks", min_length=1, description="name of the index")
    connect_timeout: Seconds = Field(2, description="seconds to open a connection to AWS")
    read_timeout: Seconds = Field(5, description="seconds to wait for DynamoDB, S3 or SQS")
    vectors_timeout: Seconds = Field(5, description="seconds to wait for the vector index")

    @model_validator(mode="after")
    def addresses_are_given(self) -> Self:
        if self.embedder == "function" and not self.embedding_function:
            raise ValueError("EMBEDDING_FUNCTION is needed where EMBEDDER is function")
        if self.vector_index == "opensearch" and not self.opensearch_endpoint:
            raise ValueError("OPENSEARCH_ENDPOINT is needed where VECTOR_INDEX is opensearch")
        return self


class IngestSettings(Shared):
    """The ingest function's."""

    knowledge_bucket: str = Field(min_length=1, description="name of the bucket of documents")
    ingest_queue_url: str = Field("", description="URL of the queue; empty: no retry backoff")
    content_limit: int = Field(2000, ge=200, description="characters one part has at most")
    chunk_size: int = Field(800, ge=100, description="characters one chunk has at most")
    chunk_overlap: int = Field(100, ge=0, description="characters neighbouring chunks share")
    chunks_per_document: Count = Field(
        2000, description="chunks one document has at most; more: status failed"
    )
    document_bytes: Count = Field(
        10 * 1024 * 1024, description="bytes one document has at most; more: status failed"
    )
    frontmatter_limit: Count = Field(65536, description="characters of frontmatter at most")
    keyword_length: Count = Field(256, description="characters one keyword has at most")
    row_bytes: int = Field(64 * 1024, ge=4096, description="bytes one catalog row has at most")
    tombstone_ttl: Seconds = Field(7 * 86400, description="seconds a removed document's row stays")
    embed_batch: int = Field(32, ge=1, le=64, description="texts in one call of the embedder")
    embedding_timeout: Seconds = Field(120, description="seconds to wait for one batch of vectors")
    retry_delay: Seconds = Field(5, description="seconds before a failed message's first retry")
    retry_delay_most: Seconds = Field(300, description="seconds before its later retries at most")

    @model_validator(mode="after")
    def sizes_fit(self) -> Self:
        if self.chunk_overlap * 2 > self.chunk_size:
            raise ValueError("CHUNK_OVERLAP may be at most half of CHUNK_SIZE")
        if self.chunk_size > self.content_limit:
            raise ValueError("CHUNK_SIZE may be at most CONTENT_LIMIT")
        return self


class LookupSettings(Shared):
    """The lookup function's."""

    session_table: str = Field(min_length=1, description="name of the session memory's table")
    invocation_table: str = Field(min_length=1, description="name of the log's table")
    max_l2: float = Field(
        SPECIFIED.max_l2,
        gt=0,
        allow_inf_nan=False,
        alias="RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE",
        description="squared L2 distance at which similarity is 0",
    )
    highly_relevant_threshold: Share = Field(
        SPECIFIED.highly_relevant,
        alias="RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD",
        description="evidence from which an answer is HIGHLY_RELEVANT",
    )
    reference_threshold: Share = Field(
        SPECIFIED.reference,
        alias="RETRIEVAL_REFERENCE_THRESHOLD",
        description="evidence from which an answer is REFERENCE; below, it is none",
    )
    precise_min_coverage: Share = Field(
        0.8,
        alias="RETRIEVAL_PRECISE_MIN_COVERAGE",
        description="share of the longer of question and keyword that a strong match covers;"
        " 0: every single match is strong",
    )
    query_length: Count = Field(2000, description="characters of a question at most")
    session_id_length: Count = Field(256, description="characters of a session id at most")
    body_bytes: Count = Field(64 * 1024, description="bytes of a request body at most")
    search_k: int = Field(100, ge=1, le=10000, description="chunks asked of the vector index")
    session_ttl: Seconds = Field(86400, description="seconds a session remembers")
    log_ttl: Seconds = Field(90 * 86400, description="seconds a log row stays")
    refresh_interval: Seconds = Field(1, description="seconds between two looks at the catalog")
    refresh_overlap: Seconds = Field(30, description="seconds each look goes back further")
    reload_after_idle: Seconds = Field(900, description="idle seconds after which all is reloaded")
    question_timeout: Seconds = Field(10, description="seconds for the question's embedding")
    language: Literal["zh", "en"] = Field("zh", description="language of hints and messages")

    @model_validator(mode="before")
    @classmethod
    def unset_thresholds_are_the_profiles(cls, given: dict[str, object]) -> dict[str, object]:
        profile = EMBEDDED if given.get("EMBEDDER") == "embedded" else SPECIFIED
        return {
            "RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE": profile.max_l2,
            "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD": profile.highly_relevant,
            "RETRIEVAL_REFERENCE_THRESHOLD": profile.reference,
        } | given

    @model_validator(mode="after")
    def thresholds_are_ordered(self) -> Self:
        if self.reference_threshold > self.highly_relevant_threshold:
            raise ValueError(
                "RETRIEVAL_REFERENCE_THRESHOLD may be at most RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD"
            )
        return self

    @property
    def profile(self) -> Profile:
        return Profile(self.max_l2, self.highly_relevant_threshold, self.reference_threshold)


Model = TypeVar("Model", bound=_FromEnvironment)


def read_settings(model: type[Model], environment: Mapping[str, str]) -> Model:
    """The settings in `environment`; other variables are ignored, blank ones count as absent.

    Raises Misconfigured naming every variable that is missing or wrong.
    """
    names = {info.alias or name.upper() for name, info in model.model_fields.items()}
    given = {name: environment[name] for name in names if environment.get(name, "").strip()}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = (
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}".removeprefix(": ")
            for fault in error.errors()
        )
        raise Misconfigured("; ".join(faults)) from error
