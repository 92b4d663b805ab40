"""L0: its rules one by one, and equal to the plain double loop whatever is put and removed."""

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb import keyword_snapshot
from kb.keywords import KeywordIndex, Match, fold

Row = tuple[str, Sequence[str], str]

# The plain loop: nothing of the product's but `fold` and the shape of an answer.


def match_plainly(rows: Iterable[Row], folded: str) -> tuple[Match, ...]:
    """Compare every keyword of every document with the query; rows have different keys."""
    return match_folded_plainly(map(fold_row, rows), folded)


def fold_row(row: Row) -> tuple[str, set[str], str]:
    key, words, content_hash = row
    return key, {fold(word) for word in words} - {""}, content_hash or f"none of {key}"


def match_folded_plainly(
    rows: Iterable[tuple[str, set[str], str]], folded: str
) -> tuple[Match, ...]:
    met: dict[str, set[str]] = {}
    smallest: dict[str, str] = {}
    for key, words, content_hash in sorted(rows):
        meeting = {word for word in words if meets_plainly(folded, word)}
        if meeting and smallest.setdefault(content_hash, key) == key:
            met[key] = meeting

    def rank(word: str) -> tuple[bool, int, int]:
        return word != folded, -len(word), sum(word in words for words in met.values())

    answer = []
    for key, words in met.items():
        best = min(words, key=lambda word: (rank(word), word))
        answer.append((rank(best), key, best))
    return tuple(
        Match(key, best, best == folded, coverage_plainly(folded, best))
        for _, key, best in sorted(answer)
    )


def meets_plainly(query: str, keyword: str) -> bool:
    if query == keyword:
        return True
    visible = query.replace(" ", "")
    if len(visible) < (
        2 if any("\u3040" <= c <= "\ud7af" or c > "\U00020000" for c in visible) else 3
    ):
        return False
    return stands_in(query, keyword) or stands_in(keyword, query)


def stands_in(text: str, piece: str) -> bool:
    return piece in text and any(
        text.startswith(piece, start)
        and not joins_word(text[:start], piece)
        and not joins_word(piece, text[start + len(piece) :])
        for start in range(len(text))
    )


def joins_word(left: str, right: str) -> bool:
    return all(c.isascii() and c.isalnum() for c in (left[-1:], right[:1]))


def coverage_plainly(query: str, keyword: str) -> float:
    small, large = (query, keyword) if len(query) < len(keyword) else (keyword, query)
    if any(c.isalnum() for c in small) and any(c.isalnum() for c in large):
        return len([c for c in small if c.isalnum()]) / len([c for c in large if c.isalnum()])
    return len(small) / len(large)


def keys(index: KeywordIndex, query: str) -> list[str]:
    return [match.key for match in index.match(fold(query))]


# Folding


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        pytest.param("ＡＩ　平台", "ai 平台", id="width"),
        pytest.param("  Deploy\t\n now ", "deploy now", id="blanks"),
        pytest.param("Straße", "strasse", id="casefold"),
        pytest.param("ｶﾞｲﾄﾞ", "ガイド", id="half-width kana with marks"),
        pytest.param("e\u0301", "é", id="composed"),
        pytest.param("①Ⅳ㎏", "1ivkg", id="compatibility"),
        pytest.param("\u3000 \u00a0", "", id="blank"),
        pytest.param("İ", "i̇", id="dotted capital"),
    ],
)
def test_spellings_of_one_word_fold_to_one(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text())
def test_folding_again_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


# What matches


@pytest.mark.parametrize(
    ("keyword", "query", "matches"),
    [
        pytest.param("部署", "如何部署服务", True, id="query contains keyword"),
        pytest.param("蓝绿部署流程", "部署", True, id="keyword contains query"),
        pytest.param("ai", "email", False, id="inside a word"),
        pytest.param("ai", "email and ai", True, id="inside a word, then alone"),
        pytest.param("ai", "用ai写", True, id="beside CJK"),
        pytest.param("ai", "ai2", False, id="beside a digit"),
        pytest.param("ai", "ai_x", True, id="beside an underscore"),
        pytest.param("caf", "café", True, id="beside a letter that is not ASCII"),
        pytest.param("timeout", "out", False, id="query inside a word of the keyword"),
        pytest.param("time out", "out", True, id="query a word of the keyword"),
        pytest.param("outs and out", "out", True, id="query a later word of the keyword"),
        pytest.param("c++", "learn c++11", True, id="no bound beside a sign"),
        pytest.param("c++", "objc++", False, id="bound at the letter end only"),
        pytest.param(".net", "asp.net core", True, id="no bound before a sign"),
        pytest.param(".net", "asp.network", False, id="bound at the end only"),
        pytest.param("aa", "aaa", False, id="overlapping occurrences, all inside"),
        pytest.param("a-a", "xa-a-a", True, id="overlapping occurrences, the second alone"),
        pytest.param("c", "learn c today", True, id="keyword of one letter"),
        pytest.param("云", "云计算", True, id="keyword of one CJK character"),
        pytest.param("ＡＷＳ", "aws lambda", True, id="width of the keyword"),
        pytest.param("K8s", "k8", False, id="two letters are short"),
        pytest.param("go 语言", "go", False, id="two letters are short, though a word"),
        pytest.param("go", "go", True, id="short and whole"),
        pytest.param("go", "go ?", True, id="three with a sign are not short"),
        pytest.param("a b c", "a b", False, id="blanks do not lengthen"),
        pytest.param("a b c d", "b c d", True, id="query begins with a word of one letter"),
        pytest.param("云计算", "云", False, id="one CJK character is short"),
        pytest.param("云", "云", True, id="one CJK character and whole"),
        pytest.param("云计算", "云计", True, id="two CJK characters"),
        pytest.param("x光机", "x光", True, id="two characters, one CJK"),
        pytest.param("𠮷野家", "𠮷野", True, id="two CJK characters beyond 16 bits"),
        pytest.param("한국어", "한국", True, id="two Hangul syllables"),
        pytest.param("カメラ", "カメ", True, id="two kana"),
        pytest.param("部署", "", False, id="blank query"),
        pytest.param(" \u3000", "部署", False, id="blank keyword"),
    ],
)
@pytest.mark.parametrize("others", [0, 80], ids=["new", "settled"])
def test_a_keyword_matches_where_it_stands_as_a_word(
    keyword: str, query: str, matches: bool, others: int
) -> None:
    index = KeywordIndex((f"other{n}", ["unrelated"], "") for n in range(others))
    index.put("doc", [keyword], "")
    for number in range(others):
        index.put(f"another{number}", ["不相干"], "")
    assert keys(index, query) == (["doc"] if matches else [])
    assert len(index) == 1 + 2 * others


# What an answer says


def test_a_match_names_the_folded_keyword_and_what_it_covers() -> None:
    index = KeywordIndex([("a.md", ["Ｐｙｔｈｏｎ　部署"], "h")])
    assert index.match("python 部署") == (Match("a.md", "python 部署", True, 1.0),)
    assert index.match("部署") == (Match("a.md", "python 部署", False, 2 / 8),)
    assert index.match("怎么做 python 部署？") == (Match("a.md", "python 部署", False, 8 / 11),)


def test_coverage_counts_all_characters_where_a_side_has_no_letters() -> None:
    index = KeywordIndex([("a.md", ["++"], "h")])
    assert index.match("c ++ x") == (Match("a.md", "++", False, 2 / 6),)


def test_a_document_counts_with_its_best_keyword() -> None:
    index = KeywordIndex([("a.md", ["部署", "蓝绿部署", "蓝绿部署"], "h"), ("b.md", ["部署"], "i")])
    assert index.match("蓝绿部署流程") == (
        Match("a.md", "蓝绿部署", False, 4 / 6),
        Match("b.md", "部署", False, 2 / 6),
    )


def test_whole_comes_before_longer_before_rarer_before_key() -> None:
    index = KeywordIndex(
        [
            ("f", ["部署流程"], ""),
            ("e", ["部署流程手册"], ""),
            ("d", ["部署流程清单"], ""),
            ("c", ["部署流程清单"], ""),
            ("b", ["部署"], ""),
            ("a", ["流程"], ""),
        ]
    )
    assert keys(index, "部署流程") == ["f", "e", "c", "d", "a", "b"]


def test_copies_do_not_make_a_keyword_common() -> None:
    index = KeywordIndex(
        [
            ("a1", ["部署手册"], "A"),
            ("a2", ["部署手册"], "A"),
            ("a3", ["部署手册"], "A"),
            ("b", ["部署流程"], "B"),
            ("c", ["部署流程"], "C"),
        ]
    )
    assert keys(index, "部署") == ["a1", "b", "c"]


def test_equal_content_counts_once_under_its_smallest_key() -> None:
    index = KeywordIndex()
    index.put("b.md", ["部署"], "same")
    index.put("c.md", ["部署"], "same")
    assert keys(index, "部署") == ["b.md"]
    index.put("a.md", ["部署"], "same")
    assert keys(index, "部署") == ["a.md"]
    index.remove("a.md")
    index.put("b.md", ["部署"], "changed")
    assert keys(index, "部署") == ["b.md", "c.md"]


def test_documents_without_a_content_hash_are_not_equal() -> None:
    assert keys(KeywordIndex([("a", ["部署"], ""), ("b", ["部署"], "")]), "部署") == ["a", "b"]


# What changes


def test_a_replaced_document_is_found_by_its_new_keywords_only() -> None:
    index = KeywordIndex((f"{n}.md", [f"旧词{n}"], "") for n in range(50))
    index.put("7.md", ["新词"], "")
    assert (keys(index, "旧词7"), keys(index, "新词"), len(index)) == ([], ["7.md"], 50)


def test_a_removed_document_is_not_found() -> None:
    index = KeywordIndex((f"{n}.md", [f"词汇 {n}"], "") for n in range(100))
    for number in range(100):
        index.remove(f"{number}.md")
        index.remove("unknown.md")
        assert keys(index, f"词汇 {number}") == []
    assert (keys(index, "词汇"), len(index)) == ([], 0)


def test_a_removed_document_comes_back_when_it_is_put_again() -> None:
    rows: list[Row] = [(f"{n}.md", [f"词汇 {n}"], f"{n}") for n in range(100)]
    index = KeywordIndex(rows)
    index.remove("7.md")
    index.put(*rows[7])
    assert (keys(index, "词汇 7"), len(index)) == (["7.md"], 100)


def test_removed_documents_do_not_keep_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    index = KeywordIndex((f"{n}.md", [f"词汇 {n}"], "") for n in range(100))
    sizes = record_tables(monkeypatch)
    for number in range(100):
        index.remove(f"{number}.md")
    assert sizes == [49, 24, 11, 5, 2, 0]


def test_adding_a_document_builds_no_table_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    index = KeywordIndex((f"{n}.md", ["词汇"], "") for n in range(1000))
    sizes = record_tables(monkeypatch)
    for number in range(200):
        index.put(f"new{number}.md", [f"新词{number}"], "")
        assert keys(index, f"新词{number}") == [f"new{number}.md"]
    assert sizes
    assert max(sizes) <= 200


def record_tables(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of documents in each table built from now on."""
    sizes: list[int] = []

    class Counted(keyword_snapshot.KeywordTable):
        def __init__(self, keys: list[str], *rest: object) -> None:
            sizes.append(len(keys))
            super().__init__(keys, *rest)

    monkeypatch.setattr(keyword_snapshot, "KeywordTable", Counted)
    return sizes


def test_a_match_waits_for_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    building, may_go_on = Event(), Event()

    class Slow(keyword_snapshot.KeywordTable):
        def __init__(self, *all_of_it: object) -> None:
            building.set()
            may_go_on.wait()
            super().__init__(*all_of_it)

    monkeypatch.setattr(keyword_snapshot, "KeywordTable", Slow)
    index = KeywordIndex()
    expected = [f"{n:02}.md" for n in range(70)]
    writer = Thread(target=lambda: [index.put(key, ["词汇"], "") for key in expected])
    writer.start()
    building.wait()
    seen = keys(index, "词汇")
    may_go_on.set()
    writer.join()
    assert seen == expected[:64]
    assert keys(index, "词汇") == expected


def test_a_document_put_again_as_it_is_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(f"{n}.md", [f"词汇 {n}", "ＡＩ"], f"{n}") for n in range(100)]
    index = KeywordIndex(rows)
    before = index.match("ai")
    monkeypatch.setattr(keyword_snapshot, "KeywordTable", None)  # would fail if one were built
    index.put_all(rows)
    for row in rows:
        index.put(*row)
    assert index.match("ai") == before


@pytest.mark.parametrize(
    ("keywords", "content_hash"),
    [
        pytest.param(["部署"], "3", id="content, now a copy"),
        pytest.param(["部署"], "", id="no content hash"),
        pytest.param(["部署", "流程"], "7", id="a keyword more"),
        pytest.param([], "7", id="a keyword fewer"),
        pytest.param(["流程"], "7", id="another keyword"),
    ],
)
def test_a_document_put_again_otherwise_replaces_it(keywords: list[str], content_hash: str) -> None:
    rows: list[Row] = [(f"{n}.md", ["部署"], f"{n}") for n in range(100)]
    index = KeywordIndex(rows)
    index.put("7.md", keywords, content_hash)
    rows[7] = ("7.md", keywords, content_hash)
    for query in ["部署", "流程"]:
        assert index.match(query) == match_plainly(rows, query)


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads take turns after every few steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switching")
def test_a_match_sees_each_document_once_while_it_changes() -> None:
    index = KeywordIndex((f"{n:03}.md", [f"词汇 {n}"], f"{n}") for n in range(100))
    answers: list[list[str]] = []
    done = Event()

    def read() -> None:
        while not done.is_set():
            answers.append(keys(index, "词汇"))

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for change in range(300):
        index.put(f"{change % 100:03}.md", [f"词汇 {change}"], f"{change}")
    done.set()
    for reader in readers:
        reader.join()
    expected = [f"{n:03}.md" for n in range(100)]
    assert answers
    assert [sorted(answer) for answer in answers] == [expected] * len(answers)


@pytest.mark.usefixtures("eager_switching")
def test_no_change_is_lost_between_threads() -> None:
    index = KeywordIndex()
    names = [[f"{writer}-{n}.md" for n in range(200)] for writer in range(3)]

    def write(mine: list[str]) -> None:
        for key in mine:
            index.put(key, ["词汇"], "")
        for key in mine[::2]:
            index.remove(key)

    writers = [Thread(target=write, args=(mine,)) for mine in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert keys(index, "词汇") == sorted(key for mine in names for key in mine[1::2])


# Equal to the plain loop

PIECES = [*"aAb1 -云部署ß한カé𠮷", "AI", "ａｉ", "c++", ".net", "部署", "ﬁ", "云" * 40, "ab-" * 25]
texts = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
small_keys = st.sampled_from(["a", "b", "c/1", "c/2", "文", "é"])
hashes = st.sampled_from(["", "x", "y", "z"])
changes = st.lists(
    st.tuples(small_keys, st.none() | st.tuples(st.lists(texts, max_size=6), hashes)), max_size=12
)


@pytest.mark.parametrize("new_at_most", [0, 2, 64])
@given(changes=changes, queries=st.lists(texts.map(fold), min_size=1, max_size=4))
def test_any_changes_leave_what_the_plain_loop_finds(
    new_at_most: int,
    changes: list[tuple[str, tuple[list[str], str] | None]],
    queries: list[str],
) -> None:
    index = KeywordIndex()
    rows: dict[str, Row] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyword_snapshot, "_NEW_AT_MOST", new_at_most)
        for key, document in changes:
            if document is None:
                index.remove(key)
                rows.pop(key, None)
            else:
                index.put(key, *document)
                rows[key] = (key, *document)
    assert len(index) == len(rows)
    for query in queries:
        assert index.match(query) == match_plainly(rows.values(), query)


@given(
    rows=st.lists(
        st.tuples(small_keys, st.lists(texts, max_size=6), hashes), unique_by=lambda row: row[0]
    ),
    query=texts.map(fold),
    seed=st.randoms(use_true_random=False),
)
def test_the_order_never_depends_on_the_order_of_loading(
    rows: list[Row], query: str, seed: random.Random
) -> None:
    shuffled = seed.sample(rows, len(rows))
    assert KeywordIndex(rows).match(query) == KeywordIndex(shuffled).match(query)


def random_text(chance: random.Random) -> str:
    """Text of few and alike pieces, so that containment is common and bounds are tried."""
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 5)))


def random_rows(chance: random.Random, documents: int) -> list[Row]:
    return [
        (
            f"{chance.choice('abc')}/{number}.md",
            [random_text(chance) for _ in range(chance.randint(0, 5))],
            chance.choice(["", "same", str(number)]),
        )
        for number in range(documents)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_settled_table_finds_what_the_plain_loop_finds(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 # a sample, no secret
    rows = random_rows(chance, 80)
    index = KeywordIndex(rows)
    for _ in range(10):
        query = fold(random_text(chance))
        assert index.match(query) == match_plainly(rows, query)
