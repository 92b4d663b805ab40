"""What both vector indexes promise: one suite, each test against each of them."""

import math
from collections.abc import Callable, Sequence
from threading import Thread

import numpy as np
import pytest
from kb.documents import Version
from kb.errors import Misconfigured
from kb.ports import Hit, IndexedChunk, VectorIndex
from kb.stores import opensearch_index

FIRST = Version(1, "first")
SECOND = Version(2, "second")
HERE = (1.0, 0.0)


def at_cosine(cosine: float) -> tuple[float, float]:
    """A unit vector whose cosine with HERE this is."""
    return (cosine, math.sqrt(1 - cosine * cosine))


def chunk(
    key: str,
    version: Version = FIRST,
    ordinal: int = 0,
    domain: str = "default",
    vector: Sequence[float] = HERE,
) -> IndexedChunk:
    return IndexedChunk(
        key=key,
        version=version,
        ordinal=ordinal,
        part=ordinal + 1,
        section="Install 安装",
        domain=domain,
        text="知识库 text",
        vector=vector,
    )


def names(hits: Sequence[Hit]) -> list[tuple[str, Version, int]]:
    return [(hit.key, hit.version, hit.ordinal) for hit in hits]


def fill(index: VectorIndex, *chunks: IndexedChunk) -> None:
    index.write(chunks)
    index.refresh()


def test_empty_index_finds_nothing(index: VectorIndex) -> None:
    assert index.search(HERE, 10) == []


def test_preparing_twice_keeps_what_was_written(index: VectorIndex) -> None:
    fill(index, chunk("a"))
    index.prepare()
    assert names(index.search(HERE, 10)) == [("a", FIRST, 0)]


def test_hit_tells_whole_chunk(index: VectorIndex) -> None:
    fill(index, chunk("a/b.md", Version(7, "f" * 64), ordinal=4))
    assert index.search(HERE, 10) == [
        Hit("a/b.md", Version(7, "f" * 64), ordinal=4, part=5, section="Install 安装", score=1.0)
    ]


def test_text_before_the_first_heading_has_an_empty_section(index: VectorIndex) -> None:
    without_heading = IndexedChunk("a", FIRST, 0, 1, "", "default", "text", HERE)
    fill(index, without_heading)
    assert [hit.section for hit in index.search(HERE, 10)] == [""]


def test_section_longer_than_an_indexed_term_is_found_whole(index: VectorIndex) -> None:
    heading = "很长" * 20_000
    fill(index, IndexedChunk("a", FIRST, 0, 1, heading, "default", "text", HERE))
    assert [hit.section for hit in index.search(HERE, 10)] == [heading]


@pytest.mark.parametrize(
    ("cosine", "score"),
    [(1.0, 1.0), (0.75, 0.6667), (0.5, 0.5), (0.0, 0.3333), (-0.5, 0.25), (-1.0, 0.2)],
)
def test_score_is_of_the_squared_distance(index: VectorIndex, cosine: float, score: float) -> None:
    fill(index, chunk("a", vector=at_cosine(cosine)))
    assert [hit.score for hit in index.search(HERE, 10)] == [pytest.approx(score, abs=1e-4)]


def test_what_is_written_is_found_after_refresh(index: VectorIndex) -> None:
    fill(index, chunk("a"))
    index.write([chunk("b")])
    before = names(index.search(HERE, 10))
    index.refresh()
    after = names(index.search(HERE, 10))
    assert (before, after) == ([("a", FIRST, 0)], [("a", FIRST, 0), ("b", FIRST, 0)])


def test_writing_nothing_is_no_error(index: VectorIndex) -> None:
    fill(index)
    assert index.search(HERE, 10) == []


def test_same_chunk_written_twice_is_found_once_as_last_written(index: VectorIndex) -> None:
    fill(index, chunk("a", vector=at_cosine(0.0)))
    fill(index, chunk("a", domain="other", vector=at_cosine(0.5)))
    hits = index.search(HERE, 10, domain="other")
    assert [(hit.key, hit.score) for hit in hits] == [("a", pytest.approx(0.5))]
    assert index.search(HERE, 10, domain="default") == []


def test_replaced_document_is_found_in_both_versions_until_the_older_goes(
    index: VectorIndex,
) -> None:
    fill(index, *(chunk("a", FIRST, ordinal) for ordinal in range(3)), chunk("b"))
    fill(index, chunk("a", SECOND))
    both = names(index.search(HERE, 10))
    index.remove_others("a", SECOND, 2)
    assert both == [
        ("a", FIRST, 0),
        ("a", SECOND, 0),
        ("a", FIRST, 1),
        ("a", FIRST, 2),
        ("b", FIRST, 0),
    ]
    assert names(index.search(HERE, 10)) == [("a", SECOND, 0), ("b", FIRST, 0)]


def test_removal_spares_newer_revisions_and_drops_another_attempt_of_this_one(
    index: VectorIndex,
) -> None:
    lost, kept, newer = Version(2, "lost"), Version(2, "kept"), Version(3, "lost")
    fill(index, chunk("a", FIRST), chunk("a", lost), chunk("a", kept), chunk("a", newer))
    index.remove_others("a", kept, 2)
    assert names(index.search(HERE, 10)) == [("a", kept, 0), ("a", newer, 0)]


def test_attempts_newer_than_what_is_kept_go_up_to_the_revision_given(index: VectorIndex) -> None:
    lost, beyond = Version(3, "first"), Version(4, "first")
    fill(
        index,
        *(chunk("a", FIRST, ordinal) for ordinal in range(2)),
        chunk("a", Version(1, "other")),
        chunk("a", SECOND),
        chunk("a", lost),
        chunk("a", beyond),
        chunk("ab", SECOND),
    )
    index.remove_others("a", FIRST, 3)
    assert names(index.search(HERE, 10)) == [
        ("a", FIRST, 0),
        ("a", beyond, 0),
        ("a", FIRST, 1),
        ("ab", SECOND, 0),
    ]


def test_removal_that_keeps_no_version_takes_all_up_to_the_revision(index: VectorIndex) -> None:
    fill(index, chunk("a", FIRST), chunk("a", Version(1, "")), chunk("a", SECOND), chunk("b"))
    index.remove_others("a", None, 1)
    assert names(index.search(HERE, 10)) == [("a", SECOND, 0), ("b", FIRST, 0)]


def test_removal_sees_what_was_written_just_before(index: VectorIndex) -> None:
    index.write([chunk("a", FIRST), chunk("a", SECOND), chunk("b", FIRST)])
    index.remove_others("b", None, 1)
    index.write([chunk("a", Version(1, "late"))])
    index.remove_others("a", SECOND, 2)
    assert names(index.search(HERE, 10)) == [("a", SECOND, 0)]


def test_removing_what_is_not_there_is_no_error(index: VectorIndex) -> None:
    fill(index, chunk("a"))
    index.remove_others("b", None, 9)
    index.remove_others("a", FIRST, 9)
    assert names(index.search(HERE, 10)) == [("a", FIRST, 0)]


def test_versions_are_counted_for_all_documents_or_for_one(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opensearch_index, "VERSIONS_AT_ONCE", 2)
    other = Version(1, "other")
    fill(
        index,
        *(chunk("a", FIRST, ordinal) for ordinal in range(3)),
        chunk("a", other),
        chunk("a", SECOND),
        chunk("a b/文.md", FIRST),
        chunk("ab", SECOND),
    )
    fill(index, chunk("a", FIRST))
    index.write([chunk("late")])
    of_a = [("a", FIRST, 3), ("a", other, 1), ("a", SECOND, 1)]
    assert sorted(index.versions("a"), key=repr) == sorted(of_a, key=repr)
    everything = [*of_a, ("a b/文.md", FIRST, 1), ("ab", SECOND, 1)]
    assert sorted(index.versions(), key=repr) == sorted(everything, key=repr)
    index.remove_others("a", None, 2)
    index.remove_others("late", None, 2)
    assert list(index.versions("a")) == []
    assert list(index.versions("unknown")) == []


def test_removed_document_can_be_written_again(index: VectorIndex) -> None:
    fill(index, chunk("a"))
    index.remove_others("a", None, 1)
    fill(index, chunk("a"))
    assert names(index.search(HERE, 10)) == [("a", FIRST, 0)]


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("k" * 1024, id="as long as S3 allows"),
        pytest.param("文" * 341, id="long, of 3 bytes each"),
        pytest.param("a:b!c@d", id="punctuation"),
        pytest.param("docs/🧭 guide+a b%20c&d=e#f?g.md", id="emoji and URL characters"),
        pytest.param('"quoted" \\ back/slash*?', id="quotes and wildcards"),
        pytest.param("tab\tnew\nline", id="control characters"),
        pytest.param("e\u0301", id="decomposed"),
    ],
)
def test_any_key_is_found_left_out_and_removed(index: VectorIndex, key: str) -> None:
    others = [chunk(key + "x"), chunk("\u00e9"), chunk(key.upper() + "Y")]
    fill(index, chunk(key, FIRST), chunk(key, SECOND), *others)
    found = names(index.search(HERE, 10))
    left_out = names(index.search(HERE, 10, without=[key]))
    index.remove_others(key, SECOND, 2)
    newer_only = names(index.search(HERE, 10))
    index.remove_others(key, None, 2)
    rest = sorted((other.key, FIRST, 0) for other in others)
    both = [(key, FIRST, 0), (key, SECOND, 0)]
    assert sorted(found, key=str) == sorted([*both, *rest], key=str)
    assert left_out == rest
    assert sorted(newer_only, key=str) == sorted([both[1], *rest], key=str)
    assert names(index.search(HERE, 10)) == rest


def test_keys_that_differ_beyond_512_bytes_are_two_documents(index: VectorIndex) -> None:
    long = "k" * 1000
    fill(index, chunk(long + "a"), chunk(long + "b"))
    assert names(index.search(HERE, 10)) == [(long + "a", FIRST, 0), (long + "b", FIRST, 0)]


def test_equal_scores_come_by_key_then_ordinal_also_at_the_cut(index: VectorIndex) -> None:
    fill(
        index,
        *(chunk(key, ordinal=ordinal) for ordinal in (10, 2) for key in ("b", "a", "é", "Z")),
        chunk("nearest of all but last of keys", vector=HERE),
        chunk("zzz", vector=at_cosine(0.9)),
    )
    expected = [(key, FIRST, ordinal) for key in ("Z", "a", "b") for ordinal in (2, 10)]
    expected += [("nearest of all but last of keys", FIRST, 0)]
    expected += [("é", FIRST, 2), ("é", FIRST, 10), ("zzz", FIRST, 0)]
    assert [names(index.search(HERE, k)) for k in range(1, 12)] == [
        expected[:k] for k in range(1, 12)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_500_random_vectors_come_in_the_order_of_exact_distance(
    new_index: Callable[[int], VectorIndex], seed: int
) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(500, 96))
    vectors[250:300] = vectors[:50]  # copies, so that there are ties
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    question = random.normal(size=96)
    question /= np.linalg.norm(question)
    chunks = [
        chunk(f"doc {at * 7919 % 500 // 5}", ordinal=at, vector=vector.tolist())
        for at, vector in enumerate(vectors)
    ]
    index = new_index(96)
    for start in range(0, 500, 50):
        fill(index, *chunks[start : start + 50])
    distances = [math.fsum((vector - question) ** 2) for vector in vectors]
    order = sorted(range(500), key=lambda at: (distances[at], chunks[at].key, at))
    hits = index.search(question.tolist(), 500)
    assert names(hits) == [(chunks[at].key, FIRST, at) for at in order]
    assert [hit.score for hit in hits] == [
        pytest.approx(1 / (1 + distances[at]), abs=1e-6) for at in order
    ]


def test_filters_are_inside_the_search_so_that_two_of_10_000_are_found(
    new_index: Callable[[int], VectorIndex],
) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(10_000, 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    question = random.normal(size=16)
    question /= np.linalg.norm(question)
    farthest = np.argsort(vectors @ question)[:2].tolist()
    index = new_index(16)
    index.write(
        [
            chunk(f"doc {at}", domain="rare" if at in farthest else "common", vector=vector)
            for at, vector in enumerate(vectors.tolist())
        ]
    )
    index.refresh()
    found = index.search(question.tolist(), 10, domain="rare")
    assert [hit.key for hit in found] == [f"doc {at}" for at in reversed(farthest)]
    without_one = index.search(question.tolist(), 10, domain="rare", without=[f"doc {farthest[0]}"])
    assert [hit.key for hit in without_one] == [f"doc {farthest[1]}"]
    assert index.search(question.tolist(), 10, domain="none") == []


def test_documents_left_out_make_room_for_k_others(
    new_index: Callable[[int], VectorIndex],
) -> None:
    random = np.random.default_rng(1)
    near = random.normal(size=(300, 8)) * 0.1 + [1.0, *[0.0] * 7]
    vectors = np.vstack([near, random.normal(size=(20, 8))])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    keys = ["long document" if at < 300 else f"doc {at}" for at in range(320)]
    index = new_index(8)
    fill(
        index,
        *(
            chunk(key, ordinal=at, vector=vector)
            for at, (key, vector) in enumerate(zip(keys, vectors.tolist(), strict=True))
        ),
    )
    question = [1.0, *[0.0] * 7]
    first = index.search(question, 10)
    again = index.search(question, 20, without={"long document", "not there"})
    assert {hit.key for hit in first} == {"long document"}
    assert {hit.key for hit in again} == {f"doc {at}" for at in range(300, 320)}


@pytest.mark.parametrize(
    "vector", [(1.0, 0.0, 0.0), (1.0,), (), (math.nan, 1.0), (math.inf, 0.0)], ids=str
)
def test_vector_of_another_kind_is_refused_and_nothing_of_its_document_written(
    index: VectorIndex, vector: tuple[float, ...]
) -> None:
    fill(index, chunk("a"))
    with pytest.raises(Misconfigured):
        index.write([chunk("b"), chunk("b", ordinal=1, vector=vector), chunk("b", ordinal=2)])
    with pytest.raises(Misconfigured):
        index.search(vector, 10)
    index.refresh()
    assert names(index.search(HERE, 10)) == [("a", FIRST, 0)]


def test_numpy_vectors_are_taken(index: VectorIndex) -> None:
    fill(index, chunk("a", vector=np.array([0.0, 1.0], np.float32)))
    assert [hit.score for hit in index.search(np.array([0.0, 1.0]), 10)] == [1.0]


def test_many_writers_and_a_reader_at_once_lose_nothing(
    new_index: Callable[[int], VectorIndex],
) -> None:
    index = new_index(2)
    failures: list[BaseException] = []

    def replace(key: str) -> None:
        try:
            for revision in range(1, 6):
                version = Version(revision, "f")
                index.write([chunk(key, version, ordinal) for ordinal in range(5)])
                index.refresh()
                index.search(HERE, 10)
                index.remove_others(key, version, revision)
        except BaseException as error:  # shown by the test's own thread
            failures.append(error)

    threads = [Thread(target=replace, args=(f"doc {at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(index.search(HERE, 100)) == [
        (f"doc {at}", Version(5, "f"), ordinal) for at in range(4) for ordinal in range(5)
    ]
