"""What counts as text, and between which characters a text may be cut."""

import re
import unicodedata
from typing import Final

_NO_TEXT: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffd-\uffff"
    + "".join(
        chr(plane + 0xFFFE) + chr(plane + 0xFFFF) for plane in range(0x10000, 0x110000, 0x10000)
    )
    + "]"
)
"""Controls but tab and newline, lone surrogates, noncharacters, byte order marks, U+FFFD."""

_VISIBLE: Final = re.compile(
    "[^\\s\u00ad\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f]"
)

_JOINER: Final = "\u200d"
_REGIONAL: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
"""Indicators of which two make a flag."""
_FLAGS: Final = 10_000
"""Regional indicators in a row that are counted at most, so that the work stays bounded."""


def with_plain_newlines(text: str) -> str:
    r"""The text with \r\n and \r as \n."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def clean(text: str) -> str:
    """The text without characters that are none, newlines as \\n."""
    return _NO_TEXT.sub("", with_plain_newlines(text))


def share_of_no_text(text: str) -> float:
    """Which share (0..1) of the characters `clean` would drop, newlines apart."""
    if not text:
        return 0.0
    return 1 - len(_NO_TEXT.sub("", text.replace("\r", "\n"))) / len(text)


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing: white space, zero-width and formatting characters."""
    return _VISIBLE.search(text) is None


def is_safe_bound(text: str, position: int) -> bool:
    """Whether cutting before `position` leaves every visible character whole.

    False before combining marks, variation selectors, emoji modifiers, tags and Hangul vowels,
    beside a zero-width joiner, and inside a pair of regional indicators.
    """
    if not 0 < position < len(text):
        return True
    before, after = text[position - 1], text[position]
    if after < "\u0300":
        return before != _JOINER
    if before == _JOINER or after == _JOINER or _extends(after):
        return False
    return not (after in _REGIONAL and _regionals_before(text, position) % 2)


def shorten(text: str, limit: int) -> str:
    """The text cut to at most `limit` characters, at a safe bound, without blanks at its end."""
    if len(text) <= limit:
        return text
    end = limit
    while end > 0 and not is_safe_bound(text, end):
        end -= 1
    return text[: end or limit].rstrip()


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character)[0] == "M"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
        or "\u1160" <= character <= "\u11ff"
        or "\ud7b0" <= character <= "\ud7ff"
        or character in "\uff9e\uff9f"
    )


def _regionals_before(text: str, position: int) -> int:
    before = text[max(0, position - _FLAGS) : position]
    return len(before) - len(before.rstrip(_REGIONAL))
