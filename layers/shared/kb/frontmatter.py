"""The author's fields on top of a document: found, read as text without type guessing, checked.

A block that is unusable never costs the document its body; the reason says line and column.
"""

import re
from dataclasses import dataclass
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kb.characters import clean, is_blank, shorten
from kb.documents import Frontmatter
from kb.folding import fold

TITLE_LENGTH: Final = 300
"""Characters of a title at most; more is cut, and said."""
SUMMARY_LENGTH: Final = 2000
"""Characters of a summary at most; more is cut, and said."""
DEPTH: Final = 20
"""Levels of lists and mappings at most."""
NOTES: Final = 20
"""Problems of one block that are spelled out at most."""

_OPENING: Final = re.compile(r"(?:[^\S\n]*\n)*-{3,}[^\S\n]*(?:\n|\Z)")
_CLOSING: Final = re.compile(r"^(?:-{3,}|\.{3})[^\S\n]*$", re.MULTILINE)
_SEPARATORS: Final = re.compile(r"[,，、;；\n]")
_BREAKS: Final = str.maketrans(dict.fromkeys("\x85\u2028\u2029", " "))
"""Invisible characters that end a line in YAML and nowhere else."""
_NULLS: Final = frozenset({"", "~", "null"})
_REQUIRED: Final = ("title", "keywords", "summary")
_FIELDS: Final = (*_REQUIRED, "category", "sections", "version", "author", "lastUpdated")


@dataclass(frozen=True, slots=True)
class Reading:
    """What the top of a document held."""

    frontmatter: Frontmatter | None
    body: str
    """The text without the block where the block is metadata, else with its lines; not cleaned."""
    problems: tuple[str, ...]


def read_frontmatter(text: str, *, limit: int, keyword_length: int) -> Reading:
    r"""Split `text` (decoded, newlines as \n) into frontmatter and body.

    A block that is a mapping with at least one field of ours is metadata and leaves the body, also
    where it is unusable. Any other first block is text: it stays, only its two rules go (left in,
    the second would turn the block into a heading). So does one that is no YAML: what its writer
    calls the document is then found by its words at least. `limit` is in characters.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return Reading(None, text, (_without_opening(text),))
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        line = text.count("\n", 0, text.index("-")) + 1
        return Reading(None, text, (f"no frontmatter: `---` in line {line} is never closed",))
    start, end = opening.end(), closing.start()
    block, rest = text[start:end], text[closing.end() :]
    source = _Source(text, start)
    try:
        if len(block) > limit:
            raise _Unusable(f"it has {len(block)} characters, at most {limit} are read")
        root = _root(block)
    except _Unusable as unusable:
        return Reading(None, f"{block}\n{rest}", (source.reason(unusable),))
    try:
        return Reading(_checked(root, limit, keyword_length, source), rest, source.notes())
    except _Unusable as unusable:
        return Reading(None, rest, (source.reason(unusable), *source.notes()))


class _Unusable(Exception):
    """Why a block cannot be used; `offset` counts characters of the block."""

    def __init__(self, problem: str, offset: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset


class _Source:
    """Where a block stands in its file, and what its writer should hear."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._notes: list[str] = []

    def place(self, offset: int) -> str:
        position = self._start + offset
        line = self._text.count("\n", 0, position) + 1
        column = position - self._text.rfind("\n", 0, position)
        return f"line {line}, column {column}"

    def reason(self, unusable: _Unusable) -> str:
        where = "" if unusable.offset is None else f"{self.place(unusable.offset)}: "
        return f"frontmatter unusable: {where}{unusable.problem}"

    def note(self, problem: str, node: Node) -> None:
        self._notes.append(f"frontmatter, {self.place(_offset(node))}: {problem}")

    def notes(self) -> tuple[str, ...]:
        more = len(self._notes) - NOTES
        said = (f"frontmatter: and {more} more",) if more > 0 else ()
        return (*self._notes[:NOTES], *said)


@dataclass(frozen=True, slots=True)
class _Field:
    value: object
    node: Node


def _without_opening(text: str) -> str:
    if is_blank(text):
        return "no frontmatter: the document is blank"
    first = len(text) - len(text.lstrip())
    return f"no frontmatter: line {text.count(chr(10), 0, first) + 1} is not `---`"


def _root(block: str) -> MappingNode:
    root = _compose(block)
    if root is None or (isinstance(root, ScalarNode) and _text(root) is None):
        raise _Unusable("it is empty", 0)
    if not isinstance(root, MappingNode):
        hint = "; a full-width ： is no colon to YAML" if "：" in block else ""
        raise _Unusable(f"it is text, not `name: value` lines{hint}", _offset(root))
    names = {key.value for key, _ in root.value if isinstance(key, ScalarNode)}
    if names.isdisjoint(_FIELDS):
        raise _Unusable("none of its fields is title, keywords or summary", _offset(root))
    return root


def _compose(block: str) -> Node | None:
    try:
        node: Node | None = yaml.compose(block.translate(_BREAKS), Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "no YAML"
        raise _Unusable(_advice(problem), mark.index if mark else None) from error
    except yaml.reader.ReaderError as error:
        raise _Unusable(
            f"character U+{int(error.character):04X} is not allowed", error.position
        ) from error
    except RecursionError as error:
        raise _Unusable("it is nested too deeply", 0) from error
    # The scanner turns escapes, tags and directives into numbers and characters without checking:
    # ValueError, OverflowError, UnicodeError and IndexError are known to come out of it.
    except Exception as error:
        raise _Unusable("an escape, tag or directive in it is invalid") from error
    return node


def _advice(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return f"{problem} (put quotes around a value that holds `: `)"
    if "cannot start any token" in problem:
        return f"{problem} (put quotes around the value)"
    return problem


def _offset(node: Node) -> int:
    return int(node.start_mark.index)


def _text(node: ScalarNode) -> str | None:
    if node.style is None and node.value in _NULLS:
        return None
    return clean(node.value)


class _Values:
    """Turns nodes into values, within a depth and an amount that aliases cannot exceed."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._most = most

    def read(self, node: Node, depth: int = 1) -> object:
        if depth > DEPTH:
            raise _Unusable(f"it is nested deeper than {DEPTH} levels", _offset(node))
        self._spend(1, node)
        if isinstance(node, ScalarNode):
            self._spend(len(node.value), node)
            return _text(node)
        if isinstance(node, SequenceNode):
            return [self.read(item, depth + 1) for item in node.value]
        return {self.name(key): self.read(value, depth + 1) for key, value in node.value}

    def name(self, key: Node) -> str:
        if not isinstance(key, ScalarNode):
            raise _Unusable("a field's name is a list or a mapping", _offset(key))
        self._spend(len(key.value), key)
        return clean(key.value).strip()

    def _spend(self, amount: int, node: Node) -> None:
        self._left -= amount
        if self._left < 0:
            raise _Unusable(
                f"its aliases expand to more than {self._most} characters", _offset(node)
            )


def _checked(root: MappingNode, limit: int, keyword_length: int, source: _Source) -> Frontmatter:
    # Without aliases, no block has more characters and values than twice its own length.
    values = _Values(2 * limit)
    fields: dict[str, _Field] = {}
    for key, node in root.value:
        name = values.name(key)
        if name in fields:
            source.note(f"`{shorten(name, 40)}` is given twice, this last one counts", key)
        fields[name] = _Field(values.read(node), node)
    missing = [name for name in _REQUIRED if _is_missing(fields.get(name))]
    if missing:
        raise _Unusable(f"{', '.join(missing)} missing or blank", _offset(root))
    return Frontmatter(
        title=_shortened(_line(_required(fields, "title")), TITLE_LENGTH, fields["title"], source),
        keywords=_keywords(fields["keywords"], keyword_length, source),
        summary=_shortened(_required(fields, "summary"), SUMMARY_LENGTH, fields["summary"], source),
        category=_optional(fields, "category", source),
        version=_optional(fields, "version", source),
        author=_optional(fields, "author", source),
        last_updated=_optional(fields, "lastUpdated", source),
        sections=_sections(fields.get("sections"), source),
        metadata={name: field.value for name, field in fields.items()},
    )


def _is_missing(field: _Field | None) -> bool:
    if field is None or field.value is None:
        return True
    return isinstance(field.value, str) and is_blank(field.value)


def _line(text: str) -> str:
    return " ".join(text.split())


def _required(fields: dict[str, _Field], name: str) -> str:
    value = fields[name].value
    if not isinstance(value, str):
        raise _Unusable(f"{name} must be text, not a list or mapping", _offset(fields[name].node))
    return value.strip()


def _shortened(text: str, limit: int, field: _Field, source: _Source) -> str:
    if len(text) > limit:
        source.note(f"cut to {limit} characters, it has {len(text)}", field.node)
    return shorten(text, limit)


def _optional(fields: dict[str, _Field], name: str, source: _Source) -> str:
    field = fields.get(name)
    if field is None or field.value is None:
        return ""
    if not isinstance(field.value, str):
        source.note(f"{name} is ignored, it must be text", field.node)
        return ""
    return "" if is_blank(field.value) else _line(field.value)


def _sections(field: _Field | None, source: _Source) -> dict[str, str]:
    if field is None or field.value is None:
        return {}
    if not isinstance(field.value, dict):
        source.note("sections is ignored, it must map a name to a heading", field.node)
        return {}
    sections: dict[str, str] = {}
    for name, heading in field.value.items():
        if is_blank(name) or heading is None or (isinstance(heading, str) and is_blank(heading)):
            continue
        if isinstance(heading, str):
            sections[_line(name)] = _line(heading)
        else:
            source.note(
                f"sections: `{shorten(name, 40)}` is ignored, it must name a heading", field.node
            )
    return sections


def _keywords(field: _Field, length: int, source: _Source) -> tuple[str, ...]:
    spellings: dict[str, str] = {}
    dropped = 0
    for keyword in _spelled(field):
        if len(keyword) > length:
            dropped += 1
            source.note(
                f"keyword `{shorten(keyword, 20)}…` is dropped, it has {len(keyword)} characters,"
                f" at most {length} are allowed",
                field.node,
            )
        elif not is_blank(keyword):
            spellings.setdefault(fold(keyword), keyword)
    if not spellings:
        problem = "every keyword is too long" if dropped else "keywords holds no keyword"
        raise _Unusable(problem, _offset(field.node))
    return tuple(spellings.values())


def _spelled(field: _Field) -> list[str]:
    if isinstance(field.value, str):
        return [_line(piece) for piece in _SEPARATORS.split(field.value)]
    if not isinstance(field.node, SequenceNode) or not isinstance(field.value, list):
        raise _Unusable("keywords must be a list or text, not a mapping", _offset(field.node))
    keywords = []
    for item, node in zip(field.value, field.node.value, strict=True):
        if isinstance(item, str):
            keywords.append(_line(item))
        elif item is not None:
            raise _Unusable("a keyword must be text, not a list or mapping", _offset(node))
    return keywords
