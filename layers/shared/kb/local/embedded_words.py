"""Word match in memory, as OpenSearch's `cjk` analyser and BM25 do it."""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

K1, B = 1.2, 0.75
"""Lucene's defaults: how soon repeating a word stops counting, how much a long text loses."""
_STOPPED = """a an and are as at be but by for if in into is it no not of on or s such t that the
their then there these they this to was will with www"""
STOP_WORDS = frozenset(_STOPPED.split())
"""What the `cjk` analyser leaves out."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_RUNS = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")

Id = TypeVar("Id", bound=Hashable)


def words_of(text: str) -> Iterator[str]:
    """Words in order: Chinese, Japanese and Korean as pairs of neighbouring characters."""
    for run in _RUNS.findall(unicodedata.normalize("NFKC", text).casefold()):
        if not _IS_CJK.match(run):
            if run not in STOP_WORDS:
                yield run
        elif len(run) == 1:
            yield run
        else:
            yield from (run[i : i + 2] for i in range(len(run) - 1))


class EmbeddedWords(Generic[Id]):
    """Texts by id. Not safe for threads: its owner holds a lock."""

    def __init__(self) -> None:
        self._counts: dict[Id, Counter[str]] = {}
        self._holders: defaultdict[str, set[Id]] = defaultdict(set)
        self._length = 0
        """Words of all texts together."""

    def put(self, id: Id, text: str) -> None:
        """Add or replace a text."""
        self.remove(id)
        counts = self._counts[id] = Counter(words_of(text))
        self._length += counts.total()
        for word in counts:
            self._holders[word].add(id)

    def remove(self, id: Id) -> None:
        """Remove a text; nothing happens where there is none."""
        counts = self._counts.pop(id, Counter())
        self._length -= counts.total()
        for word in counts:
            self._holders[word].discard(id)
            if not self._holders[word]:
                del self._holders[word]

    def rarity(self, text: str) -> dict[str, float]:
        """Each word of the text with its inverse document frequency, as Lucene has it:
        ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N texts."""
        return {
            word: math.log1p((len(self._counts) - held + 0.5) / (held + 0.5))
            for word in dict.fromkeys(words_of(text))
            for held in (len(self._holders.get(word, ())),)
        }

    def scores(self, rarity: Mapping[str, float]) -> dict[Id, tuple[float, frozenset[str]]]:
        """BM25 of every text that has one of the words, and which of them it has.

        As OpenSearch has it:
        Σ idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / average length)).
        """
        average = self._length / len(self._counts) if self._counts else 0.0
        scores: defaultdict[Id, float] = defaultdict(float)
        found: defaultdict[Id, set[str]] = defaultdict(set)
        for word, weight in rarity.items():
            for id in self._holders.get(word, ()):
                counts = self._counts[id]
                count = counts[word]
                length = K1 * (1 - B + B * counts.total() / average)
                scores[id] += weight * count * (K1 + 1) / (count + length)
                found[id].add(word)
        return {id: (score, frozenset(found[id])) for id, score in scores.items()}
