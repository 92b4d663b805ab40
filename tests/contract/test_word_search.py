"""What both indexes promise of words: how rare they are, who has them, in which order."""

import math
from collections.abc import Mapping

import pytest
from kb.documents import Version
from kb.ports import IndexedChunk, VectorIndex, WordHit

FIRST = Version(1, "first")


def fill(index: VectorIndex, texts: Mapping[str, str], domain: str = "default") -> None:
    index.write(
        [
            IndexedChunk(key, FIRST, 0, 1, "", domain, text, (1.0, 0.0))
            for key, text in texts.items()
        ]
    )
    index.refresh()


def idf(held: int, chunks: int) -> float:
    return math.log(1 + (chunks - held + 0.5) / (held + 0.5))


def found(hits: list[WordHit]) -> list[tuple[str, frozenset[str]]]:
    return [(word.hit.key, word.words) for word in hits]


def test_words_are_weighed_by_how_few_chunks_have_them(index: VectorIndex) -> None:
    fill(index, {"a": "disk full alarm", "b": "disk slow", "c": "network"})
    assert index.rarity("Disk FULL elsewhere") == pytest.approx(
        {"disk": idf(2, 3), "full": idf(1, 3), "elsewhere": idf(0, 3)}
    )


def test_chinese_is_cut_into_pairs_and_a_lone_character_stands_alone(index: VectorIndex) -> None:
    fill(index, {"a": "支付网关", "b": "网 关"})
    assert index.rarity("支付网关 关 ＤＩＳＫ") == pytest.approx(
        {
            "支付": idf(1, 2),
            "付网": idf(1, 2),
            "网关": idf(1, 2),
            "关": idf(1, 2),
            "disk": idf(0, 2),
        }
    )


@pytest.mark.parametrize("text", ["", " ", "。，！", "the of and"])
def test_text_without_words_weighs_nothing(index: VectorIndex, text: str) -> None:
    fill(index, {"a": "the disk"})
    assert index.rarity(text) == {}


def test_chunks_come_with_the_words_they_have_best_first(index: VectorIndex) -> None:
    fill(index, {"a": "disk", "b": "disk full of logs", "c": "network", "d": "full disk disk"})
    hits = index.search_words(index.rarity("disk full"), 10)
    assert found(hits) == [
        ("d", frozenset({"disk", "full"})),
        ("b", frozenset({"disk", "full"})),
        ("a", frozenset({"disk"})),
    ]


def test_score_is_opensearchs_bm25(index: VectorIndex) -> None:
    fill(index, {"a": "disk disk full", "b": "network"})
    [hit] = index.search_words(index.rarity("disk"), 10)
    length, average = 3, 2
    weight = 2 * (1.2 + 1) / (2 + 1.2 * (1 - 0.75 + 0.75 * length / average))
    assert hit.hit.score == pytest.approx(idf(1, 2) * weight, rel=1e-4)


def test_equal_scores_come_by_key(index: VectorIndex) -> None:
    fill(index, {"b": "disk", "a": "disk", "c": "disk"})
    hits = index.search_words(index.rarity("disk"), 2)
    assert [word.hit.key for word in hits] == ["a", "b"]


def test_domain_and_left_out_documents_count_before_the_k_best(index: VectorIndex) -> None:
    fill(index, {"a": "disk disk", "b": "disk disk"}, domain="ops")
    fill(index, {"c": "disk and more words"}, domain="api")
    words = index.rarity("disk")
    only_api = index.search_words(words, 1, domain="api")
    without_a = index.search_words(words, 1, domain="ops", without=["a"])
    assert [found(only_api), found(without_a)] == [
        [("c", frozenset({"disk"}))],
        [("b", frozenset({"disk"}))],
    ]


def test_removed_chunks_have_no_words(index: VectorIndex) -> None:
    fill(index, {"a": "disk", "b": "disk"})
    words = index.rarity("disk")
    index.remove_others("a", None, 1)
    assert found(index.search_words(words, 10)) == [("b", frozenset({"disk"}))]


def test_nothing_is_found_without_words(index: VectorIndex) -> None:
    fill(index, {"a": "disk"})
    assert index.search_words({}, 10) == []


def test_many_words_are_no_error(index: VectorIndex) -> None:
    fill(index, {"a": "disk"})
    text = " ".join(f"word{number}" for number in range(1000)) + " disk"
    assert found(index.search_words(index.rarity(text), 10)) == [("a", frozenset({"disk"}))]
