"""Bytes become a Document: decoding, frontmatter, cleaning."""

import codecs
import hashlib
from typing import Final

from kb.characters import clean, share_of_no_text, with_plain_newlines
from kb.documents import Document
from kb.errors import Refused
from kb.frontmatter import read_frontmatter

BINARY_SHARE: Final = 0.05
"""Share of control and replacement characters above which an object is no text."""

DAMAGE_SHARE: Final = 0.1
"""Up to this many broken sequences a good one, a text is damaged UTF-8 and not GB18030."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    # UTF-32's little-endian mark begins like UTF-16's, so it is looked for first.
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)


def parse_document(data: bytes, *, frontmatter_limit: int, keyword_length: int) -> Document:
    """Decode an object's bytes and part its frontmatter from its body.

    `frontmatter_limit` and `keyword_length` are in characters. Raises Refused, with a reason that
    the writer can act on, when the bytes are no text.
    """
    text = decode(data).lstrip("\ufeff")
    share = share_of_no_text(text)
    if share > BINARY_SHARE:
        raise Refused(
            f"not a text: {share:.0%} of its characters are control or replacement characters"
            " (UTF-16 needs its byte order mark); save it as UTF-8"
        )
    reading = read_frontmatter(
        with_plain_newlines(text), limit=frontmatter_limit, keyword_length=keyword_length
    )
    return Document(
        body=clean(reading.body),
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        frontmatter=reading.frontmatter,
        problems=reading.problems,
    )


def decode(data: bytes) -> str:
    """The text of an object's bytes, byte order marks included. Raises Refused as above."""
    damage = ""
    for mark, encoding, name in _MARKS:
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError as error:
                damage = f"begins as {name} but byte {error.start + 1} is none"
    if damage:
        raise Refused(f"{damage}; save it as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if _is_damaged_utf8(data):
            line = data.count(b"\n", 0, error.start) + 1
            raise Refused(
                f"damaged UTF-8: byte {error.start + 1}, in line {line}, belongs to no character"
            ) from error
    try:
        return data.decode("gb18030")
    except UnicodeDecodeError as error:
        raise Refused(
            f"neither UTF-8, UTF-16 nor GB18030 (byte {error.start + 1}); save it as UTF-8"
        ) from error


def _is_damaged_utf8(data: bytes) -> bool:
    """Whether nearly all bytes beyond ASCII form UTF-8: as GB18030 they would be mojibake."""
    text = data.decode(errors="replace")
    broken = text.count("\ufffd")
    good = sum(1 for character in text if character > "\x7f") - broken
    return broken <= DAMAGE_SHARE * good
