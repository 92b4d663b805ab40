"""Two spellings of one word are one word here: the form in which keywords and questions meet."""

import unicodedata


def fold(text: str) -> str:
    """NFKC, casefold, NFKC, trimmed, inner blanks collapsed to one space.

    The second NFKC composes what casefolding took apart.
    """
    compatible = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", compatible).split())
