"""What ingest would say of one file, and which of its sections cannot be asked for by name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from kb.admission import parse_within, split_within, too_large
from kb.catalog_row import REASON_LENGTH, row_of
from kb.characters import shorten, with_plain_newlines
from kb.commands.markdown_files import MarkdownFile, size_of
from kb.documents import CatalogRow, Document, Status, Version
from kb.errors import Refused
from kb.folding import fold
from kb.parsing import decode
from kb.settings import DocumentLimits
from kb.structure import Heading, read_structure

UNUSABLE = "frontmatter unusable"
"""How ingest's reason begins where there is a block that cannot be read."""
LINES_NAMED_MOST = 5
_PLACE = re.compile(r",? ?\b(?:in )?line (\d+)(?:, column (\d+))?(?= is|:|,)")
_VERSION = Version(1, "check")


class Severity(StrEnum):
    """How much a problem costs."""

    ERROR = "error"
    """The document is not indexed as its writer meant."""
    WARNING = "warning"
    """Something in it will not be found as well as it could."""
    NOTE = "note"
    """Worth knowing; nothing to change."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to tell a writer; `rule` names its kind."""

    line: int
    column: int
    severity: Severity
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """One file as ingest would see it."""

    file: MarkdownFile
    status: Status
    reason: str
    """In ingest's words, places included."""
    problems: tuple[Problem, ...]
    row: CatalogRow | None = None
    """What the catalog would hold; None where it is not indexed."""
    text: str = ""


def check_document(file: MarkdownFile, limits: DocumentLimits) -> CheckedDocument:
    """Everything that can be said without knowing the other documents."""
    try:
        if file.problem:
            raise Refused(file.problem)
        if (size := size_of(file.path)) > limits.document_bytes:
            raise too_large(size, limits)
        data = file.path.read_bytes()
        document = parse_within(data, limits)
        pieces = split_within(document, limits)
    except OSError as error:
        return _failed(file, "unreadable", f"it cannot be read ({error.strerror})")
    except Refused as refused:
        return _failed(file, "refused", str(refused))
    text = with_plain_newlines(decode(data)).lstrip("\ufeff")
    row = row_of(file.key, _VERSION, document, pieces, "", limits.row_bytes)
    problems = [_of_ingest(problem) for problem in document.problems]
    untold = replace(document, problems=())
    if more := row_of(file.key, _VERSION, untold, pieces, "", limits.row_bytes).reason:
        rule = "empty" if row.status is Status.EMPTY else "frontmatter"
        problems += (Problem(1, 1, Severity.WARNING, rule, reason) for reason in more.split("; "))
    problems += _of_sections(document, text)
    return CheckedDocument(file, row.status, row.reason, tuple(sorted(problems)), row, text)


def place_of(text: str, value: str, field: str) -> tuple[int, int]:
    """Line and column at which a value of a frontmatter field stands, or else the field."""
    start = max(text.find(field), 0)
    words = r"\s+".join(map(re.escape, value.split()))
    after = start + len(field)
    found = re.compile(rf"(?<!\w){words}(?!\w)").search(text, after)
    found = found or re.compile(words).search(text, after)
    offset = found.start() if found else start
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _failed(file: MarkdownFile, rule: str, reason: str) -> CheckedDocument:
    line, column, message = _placed(reason)
    problem = Problem(line, column, Severity.ERROR, rule, message)
    return CheckedDocument(file, Status.FAILED, shorten(reason, REASON_LENGTH), (problem,))


def _of_ingest(reason: str) -> Problem:
    line, column, message = _placed(reason)
    # Where there is no block, the document may be meant so.
    severity = Severity.ERROR if reason.startswith(UNUSABLE) else Severity.WARNING
    return Problem(line, column, severity, "frontmatter", message)


def _placed(reason: str) -> tuple[int, int, str]:
    """Line, column and the rest of a reason, which names them in its text."""
    if not (match := _PLACE.search(reason)):
        return 1, 1, reason
    line, column = int(match[1]), int(match[2] or 1)
    if match[2]:
        rest = reason[: match.start()] + reason[match.end() :]
        return line, column, rest.replace("::", ":")
    return line, column, reason


def _of_sections(document: Document, text: str) -> Iterator[Problem]:
    """Headings that share a title or have none, and names that lead to no heading."""
    headings: dict[str, list[int]] = {}
    before_body = text.count("\n") - document.body.count("\n")
    for heading in read_structure(document.body).headings:
        line = _line_of(heading, document.body) + before_body
        if heading.title:
            headings.setdefault(fold(heading.title), []).append(line)
        else:
            message = "this heading has no text, so that nobody can ask for its section"
            yield Problem(line, 1, Severity.WARNING, "section-untitled", message)
    for title, lines in headings.items():
        if len(lines) > 1:
            places = ", ".join(map(str, lines[:LINES_NAMED_MOST]))
            more = ", …" if len(lines) > LINES_NAMED_MOST else ""
            message = (
                f"{len(lines)} headings are `{title}` (lines {places}{more}): asked for by title,"
                " the first is read, and the others only after it in the same session"
            )
            yield Problem(lines[1], 1, Severity.WARNING, "section-duplicate", message)
    names = document.frontmatter.sections if document.frontmatter else {}
    for name, heading_name in names.items():
        if fold(heading_name) not in headings:
            line, column = place_of(text, name, "sections")
            message = f"sections: `{name}` leads to `{heading_name}`, and no heading is that"
            yield Problem(line, column, Severity.WARNING, "section-name", message)


def _line_of(heading: Heading, body: str) -> int:
    return body.count("\n", 0, heading.start) + 1
