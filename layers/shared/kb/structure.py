"""Where a Markdown text has headings, blocks and tables, as a real Markdown parser sees it."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from kb.characters import shorten

HEADING_LENGTH: Final = 200
"""Characters of a heading's title at most: a setext heading can be a whole paragraph."""

# Parsing the inline text of everything would take most of the time and serve headings only.
_MARKDOWN: Final = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
_NESTED: Final = frozenset({"table_open", "fence", "code_block", "html_block", "list_item_open"})
_VERBATIM: Final = frozenset({"fence", "code_block", "html_block", "table_open"})


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading outside lists and block quotes."""

    start: int
    """Offset of its first line in the text; so are all offsets here."""
    text_start: int
    """Where the line after it begins."""
    level: int
    title: str
    """As plain text, without marks; "" where there is none."""


@dataclass(frozen=True, slots=True)
class Table:
    """Header row with delimiter row: start to rows; the other rows: rows to end."""

    start: int
    rows: int
    end: int


@dataclass(frozen=True, slots=True)
class Structure:
    """The offsets at which a text is best cut, in order."""

    headings: tuple[Heading, ...]
    blocks: tuple[int, ...]
    """Where top-level blocks and list items begin."""
    tables: tuple[Table, ...]
    verbatim: tuple[tuple[int, int], ...]
    """Code, HTML and tables: text whose lines are no sentences."""

    def table_at(self, offset: int) -> Table | None:
        """The table in whose header or rows the offset is."""
        index = bisect_right(self.tables, offset, key=lambda table: table.start) - 1
        if index >= 0 and offset < self.tables[index].end:
            return self.tables[index]
        return None

    def is_verbatim(self, offset: int) -> bool:
        index = bisect_right(self.verbatim, offset, key=lambda span: span[0]) - 1
        return index >= 0 and offset < self.verbatim[index][1]


def read_structure(text: str) -> Structure:
    """Parse the block structure of `text` (cleaned, newlines as \\n) in linear time."""
    env: dict[str, Any] = {}
    tokens = _WantedTokens()
    _MARKDOWN.block.parse(text, _MARKDOWN, env, tokens)
    lines = _line_starts(text)
    headings: list[Heading] = []
    blocks: list[int] = []
    tables: list[Table] = []
    verbatim: list[tuple[int, int]] = []
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.map is None:
            continue
        first, last = (lines[min(number, len(lines) - 1)] for number in token.map)
        if token.type == "heading_open" and following is not None:
            title = _plain_text(following.content, env)
            headings.append(Heading(first, last, int(token.tag[1:]), title))
        if token.level == 0 or token.type == "list_item_open":
            blocks.append(first)
        if token.type == "table_open":
            rows = lines[min(token.map[0] + 2, len(lines) - 1)]
            tables.append(Table(first, rows, last))
        if token.type in _VERBATIM:
            verbatim.append((first, last))
    return Structure(tuple(headings), tuple(sorted(set(blocks))), tuple(tables), tuple(verbatim))


class _WantedTokens(list[Token]):
    """Takes from the parser the tokens that are read here, of which a text has few.

    All of them would take 500 bytes for each character of a list of short items.
    """

    def append(self, token: Token) -> None:
        top = token.level == 0 and token.nesting >= 0
        title = bool(self) and self[-1].type == "heading_open" and token.type == "inline"
        if top or title or token.type in _NESTED:
            super().append(token)


def _line_starts(text: str) -> list[int]:
    """Offset of every line, and the text's length as the start of the line after the last."""
    starts = [0]
    while (newline := text.find("\n", starts[-1])) >= 0:
        starts.append(newline + 1)
    starts.append(len(text))
    return starts


def _plain_text(content: str, env: dict[str, Any]) -> str:
    # Inline parsing is not linear on every input, so what cannot be seen anyway is cut first.
    tokens: list[Token] = []
    _MARKDOWN.inline.parse(content[: 4 * HEADING_LENGTH], _MARKDOWN, env, tokens)
    return shorten(" ".join("".join(map(_words, tokens)).split()), HEADING_LENGTH)


def _words(token: Token) -> str:
    if token.type == "image":
        return "".join(map(_words, token.children or ()))
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "" if token.type == "html_inline" else token.content
