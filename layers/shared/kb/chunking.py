"""A Document becomes parts, chunks and an outline."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kb.characters import shorten
from kb.cutting import Cutter
from kb.documents import Chunk, Document, Outline, Part, Section, digest_of
from kb.structure import Heading, Structure, read_structure

CHUNKER_VERSION: Final = 1
"""Part of every fingerprint: raise it whenever the same text would be cut differently."""

CONTEXT_LENGTH: Final = 200
"""Characters of title and heading path at most: the vector is to be the chunk's, not theirs."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """What ingest stores of a document."""

    parts: tuple[Part, ...]
    chunks: tuple[Chunk, ...]
    outline: Outline


def split_document(
    document: Document, *, content_limit: int, chunk_size: int, overlap: int
) -> Pieces:
    """Cut the body into parts of at most `content_limit` characters and these into chunks.

    A chunk has at most `chunk_size` characters, of which up to `overlap` are its predecessor's.
    A blank body gives no chunk, and the summary as the one part where there is one. Needs
    content_limit >= 200, 100 <= chunk_size <= content_limit, 0 <= overlap <= chunk_size / 2.
    """
    frontmatter = document.frontmatter
    body = document.body
    structure = read_structure(body)
    cutter = Cutter(body, structure)
    path = _HeadingPath(frontmatter.title if frontmatter else "", structure)
    parts: list[Part] = []
    chunks: list[Chunk] = []
    starts: list[int] = []
    for span in cutter.cut(0, len(body), limit=content_limit, overlap=0, whole=True):
        number = len(parts) + 1
        starts.append(span.start)
        parts.append(
            Part(number, span.lead + body[span.start : span.stop], path.section(span.start))
        )
        for piece in cutter.cut(
            span.start, span.stop, limit=chunk_size, overlap=overlap, whole=False
        ):
            text = piece.lead + body[piece.start : piece.stop]
            chunks.append(Chunk(number, path.section(piece.start), text, path.context(piece.start)))
    if not parts and frontmatter:
        parts.append(Part(1, shorten(frontmatter.summary, content_limit), ""))
    outline = Outline(
        parts=len(parts),
        sections=tuple(_sections(structure, starts, len(body))),
        names=dict(frontmatter.sections) if frontmatter else {},
        digests=tuple(digest_of(part.text) for part in parts),
    )
    return Pieces(tuple(parts), tuple(chunks), outline)


def _sections(structure: Structure, starts: list[int], end: int) -> Iterator[Section]:
    """Every section that has a title; `starts` are the offsets at which parts begin."""
    ends = _section_ends(structure.headings, end)
    for heading, section_end in zip(structure.headings, ends, strict=True):
        if heading.title:
            first = max(bisect_right(starts, heading.start), 1)
            last = max(bisect_left(starts, section_end), first)
            yield Section(heading.title, heading.level, first, last)


def _section_ends(headings: tuple[Heading, ...], end: int) -> list[int]:
    ends = [end] * len(headings)
    open_ones: list[int] = []
    for index, heading in enumerate(headings):
        while open_ones and headings[open_ones[-1]].level >= heading.level:
            ends[open_ones.pop()] = heading.start
        open_ones.append(index)
    return ends


class _HeadingPath:
    """Titles of the sections around an offset."""

    def __init__(self, title: str, structure: Structure) -> None:
        self._starts = [heading.start for heading in structure.headings]
        self._paths: list[tuple[str, ...]] = []
        open_ones: list[Heading] = []
        for heading in structure.headings:
            while open_ones and open_ones[-1].level >= heading.level:
                open_ones.pop()
            open_ones.append(heading)
            self._paths.append(tuple(h.title for h in open_ones if h.title))
        self._title = title or next((h.title for h in structure.headings if h.title), "")

    def section(self, offset: int) -> str:
        """Title of the innermost section; "" before the first heading."""
        return (self._around(offset) or ("",))[-1]

    def context(self, offset: int) -> str:
        """Title > outer section > inner section; the middle gives way where it is too long."""
        path = self._around(offset)
        names = [self._title, *path] if self._title and path[:1] != (self._title,) else [*path]
        while len(names) > 2 and len(" > ".join(names)) > CONTEXT_LENGTH:
            del names[1]
        if len(" > ".join(names)) > CONTEXT_LENGTH:
            most = (CONTEXT_LENGTH - 3 * (len(names) - 1)) // len(names)
            names = [shorten(name, most) for name in names]
        return " > ".join(names)

    def _around(self, offset: int) -> tuple[str, ...]:
        index = bisect_right(self._starts, offset) - 1
        return self._paths[index] if index >= 0 else ()
