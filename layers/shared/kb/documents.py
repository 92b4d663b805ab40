"""The words of the system as data: document versions, sections, parts, chunks, catalog rows."""

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

DEFAULT_DOMAIN = "default"


class Status(StrEnum):
    """What ingest made of the newest version of a document."""

    INDEXED = "indexed"
    SEMANTIC_ONLY = "semantic_only"
    EMPTY = "empty"
    FAILED = "failed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Version:
    """Under which commit, and of which content, chunks and parts were written."""

    revision: int
    fingerprint: str
    """Hash of content, chunker version and sizes."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the parts that its text (its sub-sections included) overlaps."""

    title: str
    level: int
    first_part: int
    last_part: int


@dataclass(frozen=True, slots=True)
class Part:
    """The piece of body text that one answer delivers."""

    number: int
    """1..n."""
    text: str
    section: str
    """Title of the section in which it begins; "" before the first heading."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The piece of a part that gets one vector."""

    part: int
    section: str
    text: str
    """A piece of the body, with its table's header where it begins inside a table."""
    context: str
    """Document title and heading path, put in front of the text when it is embedded."""

    @property
    def searched(self) -> str:
        """What is embedded, and what words are looked for in."""
        return f"{self.context}\n{self.text}".strip()


@dataclass(frozen=True, slots=True)
class Outline:
    """What a lookup must know of a document to choose a part, read in one item."""

    parts: int
    sections: tuple[Section, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    """Frontmatter `sections`: a name that agents may ask for -> heading."""
    digests: tuple[str, ...] = ()
    """`digest_of` each part's text, by part number."""


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The author's fields, spelling kept. `metadata` holds every field, known and unknown."""

    title: str
    keywords: tuple[str, ...]
    summary: str
    category: str = ""
    version: str = ""
    author: str = ""
    last_updated: str = ""
    sections: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A Markdown object, decoded and parsed."""

    body: str
    """Cleaned text without frontmatter: no control characters, newlines as \\n."""
    content_hash: str
    """SHA-256 (hex) of the decoded text with frontmatter."""
    frontmatter: Frontmatter | None
    """None where it is absent or unusable; `problems` says why."""
    problems: tuple[str, ...] = ()
    """For the writer, with line and column where there is one; also of accepted documents."""


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """One document as DynamoDB holds it: its L0 entry and its ingest status."""

    key: str
    revision: int
    """Counts every commit of this row, failures and removals too."""
    status: Status
    changed_at: int
    """Milliseconds since 1970, stamped just before the commit."""
    served: Version | None = None
    """The version whose chunks and parts answers are made of; None: nothing to serve."""
    reason: str = ""
    content_hash: str = ""
    title: str = ""
    keywords: tuple[str, ...] = ()
    summary: str = ""
    domain: str = ""
    updated_at: str = ""
    """ISO 8601; the author's `lastUpdated`, else when the object was stored."""
    version: str = ""
    author: str = ""
    parts: int = 0
    cleanup_pending: bool = False
    expires_at: int | None = None
    """Seconds since 1970; set on tombstones only."""


def digest_of(text: str) -> str:
    """What session memory keeps of a delivered text: 128 bits of its SHA-256, hex."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def domain_of(key: str, category: str = "") -> str:
    """The author's category, else the key's first path segment, else `default`."""
    first, slash, _ = key.lstrip("/").partition("/")
    return category or (first if slash and first else DEFAULT_DOMAIN)


def is_document(key: str) -> bool:
    """Whether the key names a document: `.md` or `.markdown`, any case."""
    return key.lower().endswith((".md", ".markdown"))
