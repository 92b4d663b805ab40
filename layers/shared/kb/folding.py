"""How keywords and queries meet: the form both take, and where one stands in the other."""

import re
import unicodedata
from itertools import compress
from operator import add

_CJK = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
"""Han, kana, bopomofo and Hangul."""
_WORD = re.compile("[0-9A-Za-z]+")
_BITS = bytes.maketrans(b"\0\1", b"01")


def fold(text: str) -> str:
    """NFKC, casefold, NFKC, trimmed, inner blanks collapsed to one space.

    The second NFKC composes what casefolding took apart.
    """
    compatible = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", compatible).split())


class Query:
    """A folded query, with what every table asks of it worked out once.

    A cut is a position with no two ASCII letters or digits at its sides, 0 and the end
    included: a keyword inside the query, or the query inside a keyword, lies between two cuts.
    """

    __slots__ = ("characters", "cuts", "grams", "is_short", "starts", "text")

    def __init__(self, folded: str) -> None:
        self.text = folded
        self.is_short = _is_short(folded)
        """A blank query, one of a single character, or one of two without a CJK character
        (blanks not counted) meets only the keyword that equals it."""
        cuts = bytearray(b"\1") * (len(folded) + 1)
        for word in _WORD.finditer(folded):
            cuts[word.start() + 1 : word.end()] = bytes(word.end() - word.start() - 1)
        self.cuts = int(cuts[::-1].translate(_BITS), 2)
        """Bit n is set where position n is a cut."""
        self.starts = tuple(compress(range(len(folded) - 1), cuts))
        """Cuts with two characters behind them."""
        self.grams = tuple(compress(map(hash, map(add, folded, folded[1:])), cuts))
        """The hashes of these two characters."""
        self.characters = frozenset(folded)

    def meets(self, keyword: str) -> bool:
        """Whether the query is the keyword, contains it, or is contained in it."""
        if self.is_short or self.text == keyword:
            return self.text == keyword
        return contains(self.text, keyword) or contains(keyword, self.text)


def _is_short(folded: str) -> bool:
    length = len(folded) - folded.count(" ")
    return length < 2 or (length < 3 and not _CJK.search(folded))


def contains(text: str, piece: str) -> bool:
    """Whether `piece` stands in `text`, its ASCII letters and digits not inside a longer word."""
    start = text.find(piece)
    while start >= 0:
        end = start + len(piece)
        if not splits_word(text, start) and not splits_word(text, end):
            return True
        start = text.find(piece, start + 1)
    return False


def splits_word(text: str, position: int) -> bool:
    """Whether ASCII letters or digits stand at both sides of a position."""
    return 0 < position < len(text) and is_word(text[position - 1]) and is_word(text[position])


def is_word(character: str) -> bool:
    """Whether it is an ASCII letter or digit."""
    return character.isascii() and character.isalnum()
