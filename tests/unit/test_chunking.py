"""Parts, chunks and outline: nothing lost, nothing too long, cut where a reader would cut."""

import re
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kb.chunking import CONTEXT_LENGTH, Pieces, split_document
from kb.documents import Chunk, Document, Frontmatter, Outline, Part, Section, digest_of

FRONTMATTER = Frontmatter(
    title="手册", keywords=("k",), summary="摘要", sections={"怎么装": "安装"}
)


def split(
    body: str,
    content_limit: int = 2000,
    chunk_size: int = 800,
    overlap: int = 100,
    frontmatter: Frontmatter | None = FRONTMATTER,
) -> Pieces:
    document = Document(body, content_hash="", frontmatter=frontmatter)
    return split_document(
        document, content_limit=content_limit, chunk_size=chunk_size, overlap=overlap
    )


def texts(pieces: Iterable[Part | Chunk]) -> list[str]:
    return [piece.text for piece in pieces]


def titles(pieces: Pieces) -> list[tuple[int, str]]:
    return [(section.level, section.title) for section in pieces.outline.sections]


def squeezed(text: str) -> str:
    return "".join(text.split())


def sentences(count: int, size: int = 20) -> str:
    """A paragraph of different sentences of `size` characters."""
    return "".join(f"{number:05d}".ljust(size - 1, "字") + "。" for number in range(count))


def test_small_document_is_one_part_and_one_chunk() -> None:
    body = "\n\n前言。\n\n# 安装\n\n先装。\n\n## 细节\n\n再看。\n\n"
    text = "前言。\n\n# 安装\n\n先装。\n\n## 细节\n\n再看。"
    assert split(body) == Pieces(
        parts=(Part(1, text, ""),),
        chunks=(Chunk(1, "", text, "手册"),),
        outline=Outline(
            parts=1,
            sections=(Section("安装", 1, 1, 1), Section("细节", 2, 1, 1)),
            names={"怎么装": "安装"},
            digests=(digest_of(text),),
        ),
    )


def test_blank_body_delivers_the_summary_and_embeds_nothing() -> None:
    assert split(" \n\u200b\u3000\n") == Pieces(
        parts=(Part(1, "摘要", ""),),
        chunks=(),
        outline=Outline(parts=1, names={"怎么装": "安装"}, digests=(digest_of("摘要"),)),
    )


def test_blank_body_without_frontmatter_is_nothing() -> None:
    assert split("\n \n", frontmatter=None) == Pieces((), (), Outline(parts=0))


def test_summary_is_cut_to_the_content_limit() -> None:
    long = Frontmatter(title="t", keywords=("k",), summary="长" * 300)
    assert texts(split("", 200, 100, 0, long).parts) == ["长" * 200]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# a\n\n## b\n", [(1, "a"), (2, "b")]),
        ("a\n=\n\nb\nb\n---\n", [(1, "a"), (2, "b b")]),
        ("```\n# a\n```\n\n~~~md\n# b\n~~~\n", []),
        ("````\n# a\n```\n# b\n````\n# c\n", [(1, "c")]),
        ("    # a\n\n- # b\n\n> # c\n\n1. x\n\n   # d\n", []),
        ("<!--\n# a\n-->\n\n# b\n", [(1, "b")]),
        ("#a\n\n####### b\n\n\\# c\n", []),
        ("# `a` *b* **c** [d](e) ![f](g) <b>h</b> &amp; \\* #\n", [(1, "a b c d f h & *")]),
        ("# [a][b]\n\n[b]: http://c\n", [(1, "a")]),
        ("# a  \u3000 b\n", [(1, "a b")]),
        ("#\n\n# <b></b>\n\n# a\n", [(1, "a")]),
        ("| # a |\n|---|\n| # b |\n", []),
        ("# " + "长" * 300, [(1, "长" * 200)]),
    ],
)
def test_headings_are_those_of_markdown_as_plain_text(
    body: str, expected: list[tuple[int, str]]
) -> None:
    assert titles(split(body)) == expected


def test_sections_name_the_first_and_last_part_of_their_text() -> None:
    body = (
        f"# a\n\n{sentences(90)}\n\n## b\n\n{sentences(150)}\n\n## c\n\nc\n\n# d\n\n{sentences(95)}"
    )
    pieces = split(body)
    starts = ["# a", "## b", "", "# d"]
    assert [part.text[: len(start)] for part, start in zip(pieces.parts, starts, strict=True)] == (
        starts
    )
    assert pieces.parts[2].text.endswith("## c\n\nc")
    assert pieces.outline.sections == (
        Section("a", 1, 1, 3),
        Section("b", 2, 2, 3),
        Section("c", 2, 3, 3),
        Section("d", 1, 4, 4),
    )
    assert [part.section for part in pieces.parts] == ["a", "b", "b", "d"]


def test_sections_are_packed_up_to_the_limit_and_never_cut_where_they_fit() -> None:
    sizes = [900, 900, 1500, 300, 1900, 50, 50, 2000, 10]
    sections = [f"# {number}\n\n".ljust(size, "字") for number, size in enumerate(sizes)]
    pieces = split("\n\n".join(sections))
    assert [re.findall(r"# (\d)", part.text) for part in pieces.parts] == [
        ["0", "1"],
        ["2", "3"],
        ["4"],
        ["5", "6"],
        ["7"],
        ["8"],
    ]


def test_sections_that_fit_are_whole_also_where_paragraphs_would_even_the_parts() -> None:
    sections = [f"# a\n\n{sentences(45)}\n\n{sentences(45)}", f"# b\n\n{sentences(20)}"]
    assert texts(split("\n\n".join(sections)).parts) == sections


def test_long_section_is_cut_at_paragraphs() -> None:
    paragraphs = [f"{number}" + "字" * 449 for number in range(10)]
    pieces = split("# a\n\n" + "\n\n".join(paragraphs))
    assert [[p[0] for p in part.text.split("\n\n")] for part in pieces.parts] == [
        ["#", "0", "1", "2"],
        ["3", "4", "5", "6"],
        ["7", "8", "9"],
    ]


def test_long_paragraph_is_cut_at_lines_then_sentences_then_words() -> None:
    lines = split("\n".join("一行字" * 30 for _ in range(100)))
    long_lines = split(sentences(200))
    words = split("word " * 1000)
    assert {part.text[-3:] for part in lines.parts} == {"一行字"}
    assert {part.text[0] for part in lines.parts} == {"一"}
    assert {part.text[-1] for part in long_lines.parts} == {"。"}
    assert {part.text[-4:] for part in words.parts} == {"word"}
    assert {part.text[:4] for part in words.parts} == {"word"}


@pytest.mark.parametrize("body", [sentences(41), sentences(45), sentences(75), sentences(99)])
def test_no_chunk_is_a_small_tail(body: str) -> None:
    sizes = [len(chunk.text) for chunk in split(body).chunks]
    assert len(sizes) == -(-(len(body) - 100) // 700)
    assert min(sizes) > 0.6 * max(sizes)


def test_paragraph_is_cut_where_its_neighbour_would_be_a_small_tail() -> None:
    chunks = split(f"{sentences(39)}\n\n{sentences(4)}", overlap=0).chunks
    assert len(chunks) == 2
    assert min(len(chunk.text) for chunk in chunks) > 380


def test_paragraphs_of_similar_length_stay_whole() -> None:
    body = f"{sentences(30)}\n\n{sentences(25)}\n\n{sentences(28)}"
    assert texts(split(body, overlap=0).chunks) == body.split("\n\n")


@pytest.mark.parametrize("after", ["", "\n\n# b"])
def test_chunks_end_with_paragraphs_rather_than_with_lines(after: str) -> None:
    lines = [f"{number:02d}".ljust(59, "字") for number in range(16)]
    first, second = "\n".join(lines[:7]), "\n".join(lines[7:12]) + after + "\n" * 2
    chunks = texts(split(first + "\n\n" + second + "\n".join(lines[12:]), overlap=0).chunks)
    assert [text[:2] for text in chunks] == ["00", "07"]


def test_chunks_end_with_list_items_rather_than_with_lines() -> None:
    lines = [f"{number:02d}".ljust(59, "字") for number in range(15)]
    items = ["- " + "\n  ".join(lines[at : at + 3]) for at in range(0, 15, 3)]
    chunks = texts(split("\n".join(items), overlap=0).chunks)
    assert [text[:4] for text in chunks] in (["- 00", "- 06"], ["- 00", "- 09"])


@pytest.mark.parametrize(("size", "shared"), [(20, 100), (30, 90), (70, 70)])
def test_chunk_begins_with_the_last_sentences_of_the_one_before(size: int, shared: int) -> None:
    chunks = texts(split(sentences(2000 // size, size)).chunks)
    assert len(chunks) > 2
    for before, after in pairwise(chunks):
        assert before.endswith(after[:shared])
        assert not before.endswith(after[: shared + 1])


def test_overlap_begins_with_a_word() -> None:
    words = " ".join(f"word{number:04d}" for number in range(300))
    chunks = texts(split(words, 4000).chunks)
    assert len(chunks) > 2
    for before, after in pairwise(chunks):
        first = after.split()[0]
        assert re.fullmatch(r"word\d{4}", first)
        assert 0 < len(before) - before.index(first) <= 100


def test_no_overlap_reaches_into_another_part() -> None:
    pieces = split(sentences(300))
    for part in pieces.parts:
        first = next(chunk for chunk in pieces.chunks if chunk.part == part.number)
        assert part.text.startswith(first.text)


def test_context_is_the_title_and_the_headings_around() -> None:
    body = f"{sentences(39)}\n\n# A\n\n{sentences(30)}\n\n## B\n\n{sentences(30)}\n\n# C\n\n尾"
    chunks = split(body, 4000, overlap=0).chunks
    assert [(chunk.section, chunk.context) for chunk in chunks] == [
        ("", "手册"),
        ("A", "手册 > A"),
        ("B", "手册 > A > B"),
    ]
    assert chunks[2].text.endswith("# C\n\n尾")


def test_context_of_a_section_does_not_name_the_ones_before_it() -> None:
    body = "\n\n".join(f"{marks} {marks}\n\n{sentences(30)}" for marks in ("#", "##", "##", "#"))
    body = body.replace("## ##", "## a", 1).replace("## ##", "## b").replace("# #\n", "# c\n")
    contexts = [chunk.context for chunk in split(body, overlap=0).chunks]
    assert contexts == ["手册 > c", "手册 > c > a", "手册 > c > b", "手册 > c"]


def test_context_without_frontmatter_begins_with_the_first_heading() -> None:
    body = f"# A\n\n{sentences(30)}\n\n## B\n\n{sentences(30)}"
    contexts = [chunk.context for chunk in split(body, frontmatter=None).chunks]
    assert contexts == ["A", "A > B"]
    assert [chunk.context for chunk in split("正文。", frontmatter=None).chunks] == [""]


def test_heading_that_repeats_the_title_is_named_once() -> None:
    (chunk,) = split("# 手册\n\n正文。").chunks
    assert chunk.context == "手册"


def test_long_context_gives_up_the_middle_first() -> None:
    body = "\n\n".join(f"{'#' * level} {str(level) * 60}\n\n正文" for level in range(1, 5))
    contexts = [chunk.context for chunk in split(body, 200, 100, 0).chunks]
    one, two, three, four = ("1" * 60, "2" * 60, "3" * 60, "4" * 60)
    assert contexts == [
        f"手册 > {one}",
        f"手册 > {one} > {two}",
        f"手册 > {one} > {two} > {three}",
        f"手册 > {two} > {three} > {four}",
    ]


def test_context_of_two_long_titles_has_half_of_each() -> None:
    frontmatter = Frontmatter("题" * 290, ("k",), "s")
    (chunk,) = split(f"# {'9' * 150}\n\n正文", frontmatter=frontmatter).chunks
    assert chunk.context == f"{'题' * 98} > {'9' * 98}"


TABLE = "| 名 | 值 |\n|---|---|\n" + "".join(f"| 键{n:03d} | 值{n:03d} |\n" for n in range(300))


def test_rows_keep_their_header() -> None:
    pieces = split(f"# a\n\n前。\n\n{TABLE}\n后。")
    header = "| 名 | 值 |\n|---|---|\n"
    assert all(text.startswith(header) for text in texts(pieces.parts[1:]))
    assert all(text.startswith(header) for text in texts(pieces.chunks[1:]))
    rows = [row for text in texts(pieces.parts) for row in re.findall(r"\| 键(\d+) ", text)]
    assert rows == [f"{number:03d}" for number in range(300)]
    assert all(re.search(r"\|$|后。$", text) for text in texts([*pieces.parts, *pieces.chunks]))


def test_text_after_a_table_does_not_begin_with_rows_without_header() -> None:
    rows = "".join(TABLE.splitlines(keepends=True)[:40])
    chunks = texts(split(f"{rows}\n{sentences(31)}").chunks)
    assert [text[:7] for text in chunks[1:]] == ["00000字字"]


def test_part_that_begins_with_a_table_has_its_header_once() -> None:
    rows = "".join(TABLE.splitlines(keepends=True)[:60])
    pieces = split(f"# a\n\n{sentences(70)}\n\n{rows}")
    assert [text.count("| 名 |") for text in texts(pieces.parts)] == [0, 1]
    assert pieces.parts[1].text == rows.strip()


def test_header_longer_than_half_a_chunk_is_not_repeated() -> None:
    columns = [f"列{number:02d}" for number in range(80)]
    header = f"|{'|'.join(columns)}|\n|{'-|' * 80}\n"
    body = header + f"|{'|'.join('xx' for _ in columns)}|\n" * 20
    pieces = split(body)
    assert len(header) > 400
    assert all(text.startswith(header) for text in texts(pieces.parts))
    assert [text.startswith(header) for text in texts(pieces.chunks)].count(True) == 1
    assert max(len(text) for text in texts(pieces.chunks)) <= 800


LONG = "a" * 34


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        pytest.param(f"# {LONG}\n", f"\n{sentences(40)}", id="paragraph after a heading"),
        pytest.param(f"# {LONG}\n", sentences(40), id="line after a heading"),
        pytest.param(f"# {LONG}?\n", sentences(40), id="line after a question"),
        pytest.param(
            f"# {LONG}\n", f"\n## b\n\n{sentences(39)}{'0' * 13}.", id="heading after a heading"
        ),
        pytest.param(
            f"|{LONG}|\n", f"|{'-' * 34}|\n" + "|cell 89 123456|\n" * 44, id="rows after a header"
        ),
    ],
)
def test_heading_stays_with_its_text_even_if_that_makes_one_chunk_more(
    first: str, rest: str
) -> None:
    before = sentences(38)
    assert len(f"{before}\n\n{first}") <= 800
    assert len(rest.strip()) <= 800
    chunks = texts(split(f"{before}\n\n{first}{rest}", overlap=0).chunks)
    assert len(chunks) == 3
    assert not any(text.endswith(first.strip()) for text in chunks)


def test_part_ends_before_a_heading_without_text_rather_than_after_it() -> None:
    pieces = split(f"# 0\n\n{sentences(55)}\n\n# a\n\n## b\n\n{sentences(60)}")
    assert [part.text[:7] for part in pieces.parts] == ["# 0\n\n00", "# a\n\n##"]


def test_heading_without_text_ends_a_part_where_the_next_fills_one() -> None:
    full = "## b\n\n".ljust(2000, "字")
    pieces = split(f"# 0\n\n{sentences(55)}\n\n# a\n\n{full}")
    assert [part.text[-4:] for part in pieces.parts] == ["\n# a", "字字字字"]


@pytest.mark.parametrize("words", [4, 40])
def test_code_is_cut_at_lines_only(words: int) -> None:
    line = "Wait. " * words + "End."
    chunks = texts(split("```\n" + f"{line}\n" * (2000 // len(line)) + "```", overlap=0).chunks)
    assert {line for text in chunks for line in text.split("\n")} == {"```", line}


def test_code_is_cut_at_blank_lines_first() -> None:
    block = "call of a function\n" * 20
    shorter = "another function\n" * 32
    chunks = texts(split(f"```\n{block}\n{shorter}```", overlap=0).chunks)
    assert chunks == [f"```\n{block}".strip(), f"{shorter}```"]


def test_indentation_at_a_cut_is_kept() -> None:
    body = "".join(f"- a\n\n  - b {number:03d}\n" for number in range(300))
    starts = {re.match(r" *- ", part.text) is not None for part in split(body).parts}
    assert starts == {True}
    assert any(part.text.startswith("  - b") for part in split(body, 205, 100, 0).parts)


@pytest.mark.parametrize(
    ("character", "count"),
    [
        pytest.param("e\u0301\u0302", 4000, id="combining marks"),
        pytest.param("👩\u200d👩\u200d👧\u200d👦", 1500, id="joined emoji"),
        pytest.param("👍🏽", 4000, id="skin tones"),
        pytest.param("🇩🇪", 4000, id="flags"),
        pytest.param("\u1112\u1161\u11ab", 3000, id="hangul letters"),
        pytest.param("❤️", 4000, id="variation selectors"),
        pytest.param("नि", 4000, id="vowel signs"),
    ],
)
@pytest.mark.parametrize("overlap", [0, 100])
def test_no_cut_is_inside_a_visible_character(character: str, count: int, overlap: int) -> None:
    pieces = split(character * count, overlap=overlap)
    whole = re.compile(f"(?:{character})+")
    assert all(whole.fullmatch(text) for text in texts([*pieces.parts, *pieces.chunks]))
    assert "".join(texts(pieces.parts)) == character * count


def test_mark_after_mark_without_end_is_cut_all_the_same() -> None:
    pieces = split("e" + "\u0301" * 10_000)
    assert "".join(texts(pieces.parts)) == "e" + "\u0301" * 10_000
    assert max(len(text) for text in texts(pieces.chunks)) <= 800


LARGE = {
    "paragraph of 212,000 characters": "磁盘写满时先看挂载点再清理旧日志" * 13_250,
    "3,000 sections": "".join(
        f"## 第 {number} 节\n\n内容 {number}。\n\n" for number in range(3000)
    ),
    "line of 60,000 characters": "A" * 60_000,
    "5 MB": "## Section\n\n" + ("Some words of a sentence. " * 12 + "\n\n") * 16_000,
    "100,000 blank lines": "a" + "\n" * 100_000 + "b",
    "100,000 blanks": "a" + " " * 100_000 + "b",
    "flags": "🇩🇪" * 50_000,
    "open brackets": "[" * 60_000,
    "open quotes": "> " * 20_000,
    "lists in lists": "* " * 20_000,
    "sections without text": "# a\n" * 10_000,
    "short items": "- a\n" * 10_000,
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE.keys())
def test_large_text_is_whole_and_within_limits(body: str) -> None:
    pieces = split(body)
    assert squeezed("".join(texts(pieces.parts))) == squeezed(body)
    assert max(len(text) for text in texts(pieces.parts)) <= 2000
    assert max(len(text) for text in texts(pieces.chunks)) <= 800


WORDS = st.sampled_from(
    [
        "磁盘写满",
        "清理",
        "restart",
        "a",
        "3.14",
        "e\u0301",
        "👩\u200d👧",
        "x" * 150,
        "长" * 130,
        "|",
        "#",
    ]
)
ENDS = st.sampled_from(["。", "！", "? ", ". ", "；", "，", " ", "\n", "  \n", ""])
SENTENCES = st.lists(st.builds(str.__add__, WORDS, ENDS), min_size=1, max_size=40).map("".join)
BLOCKS = st.one_of(
    SENTENCES,
    st.builds("{} {}".format, st.sampled_from(["#", "##", "###", "######"]), WORDS),
    st.builds("{}\n{}".format, WORDS, st.sampled_from(["===", "---"])),
    st.builds("```\n# {}\n\n{}\n```".format, WORDS, SENTENCES),
    st.lists(st.builds("- {}".format, WORDS), min_size=1, max_size=30).map("\n".join),
    st.builds("> {}".format, SENTENCES),
    st.sampled_from(["---", "\n\n\n", "[a]: b", "<!-- c", "    code", " " * 90 + "far", "\u200b"]),
    st.text(max_size=60),
)
TABLES = st.builds(
    lambda head, rows: f"|{head}|\n|---|\n" + "".join(f"|{row}|\n" for row in rows),
    st.sampled_from(["h", "h" * 40, "h" * 90]),
    st.lists(st.sampled_from(["a", "b" * 50, "c " * 70]), max_size=40),
)
BODIES = st.lists(BLOCKS, max_size=25).map("\n\n".join)
BODIES_WITH_TABLES = st.lists(st.one_of(BLOCKS, TABLES), max_size=15).map("\n\n".join)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int, int]:
    content_limit = draw(st.integers(200, 2500))
    chunk_size = draw(st.integers(100, content_limit))
    return content_limit, chunk_size, draw(st.integers(0, chunk_size // 2))


def covers(pieces: Iterable[str], text: str, overlap: int, headers: Iterable[str] = ()) -> bool:
    """Whether the pieces are the text in order, each overlapping the text before it at most so.

    A piece may have one of the headers in front instead. All without blanks. Where text repeats,
    a piece may fit at several places; all are followed.
    """
    ends = {0}
    for piece in pieces:
        forms = {(piece, overlap)}
        forms |= {(piece.removeprefix(h), 0) for h in headers if piece.startswith(h)}
        ends = {
            end - shared + len(form)
            for end in ends
            for form, most in forms
            for shared in range(min(most, end, len(form)) + 1)
            if text.startswith(form, end - shared)
        }
    return len(text) in ends


@settings(deadline=None)
@given(BODIES, sizes())
@example("# a\n\n" + "字" * 200 + "\n\n# b\n\nc", (200, 100, 50))
def test_parts_are_the_whole_body_and_chunks_the_whole_part(
    body: str, limits: tuple[int, int, int]
) -> None:
    content_limit, chunk_size, overlap = limits
    body = body.replace("\r", "\n").replace("|", "l")
    pieces = split(body, content_limit, chunk_size, overlap, frontmatter=None)
    visible = squeezed(body).replace("\u200b", "")
    assert squeezed("".join(texts(pieces.parts))).replace("\u200b", "") == visible
    assert [part.number for part in pieces.parts] == list(range(1, len(pieces.parts) + 1))
    assert sorted(chunk.part for chunk in pieces.chunks) == [chunk.part for chunk in pieces.chunks]
    for part in pieces.parts:
        chunks = [squeezed(c.text) for c in pieces.chunks if c.part == part.number]
        assert covers(chunks, squeezed(part.text), overlap) or "\u200b" in body
        assert 0 < len(part.text) <= content_limit
    for chunk in pieces.chunks:
        assert 0 < len(chunk.text) <= chunk_size
        assert chunk.text.strip()
        assert len(chunk.context) <= CONTEXT_LENGTH


@settings(deadline=None)
@given(BODIES_WITH_TABLES, sizes())
def test_tables_neither_lose_text_nor_break_limits(body: str, limits: tuple[int, int, int]) -> None:
    content_limit, chunk_size, overlap = limits
    body = body.replace("\r", "\n").replace("\u200b", "")
    headers = {squeezed(h) for h in re.findall(r"^.*\|.*\n.*-.*$", body, re.MULTILINE)}
    pieces = split(body, content_limit, chunk_size, overlap, frontmatter=None)
    assert covers([squeezed(text) for text in texts(pieces.parts)], squeezed(body), 0, headers)
    for part in pieces.parts:
        chunks = [squeezed(c.text) for c in pieces.chunks if c.part == part.number]
        text = squeezed(part.text)
        assert any(covers(chunks, text.removeprefix(h), overlap, headers) for h in {"", *headers})
    assert max((len(text) for text in texts(pieces.parts)), default=0) <= content_limit
    assert max((len(text) for text in texts(pieces.chunks)), default=0) <= chunk_size


@settings(deadline=None)
@given(BODIES, sizes())
def test_outline_names_the_parts_that_hold_each_section(
    body: str, limits: tuple[int, int, int]
) -> None:
    pieces = split(body.replace("\r", "\n"), *limits, frontmatter=None)
    count = len(pieces.parts)
    assert pieces.outline.parts == count
    assert pieces.outline.digests == tuple(digest_of(part.text) for part in pieces.parts)
    firsts = [section.first_part for section in pieces.outline.sections]
    assert firsts == sorted(firsts)
    for section in pieces.outline.sections:
        assert 1 <= section.first_part <= section.last_part <= count


@settings(deadline=None)
@given(st.lists(st.integers(8, 260), min_size=1, max_size=60), st.integers(200, 400))
def test_parts_are_as_few_as_the_greedy_packing_of_sections(lengths: list[int], limit: int) -> None:
    sections = ["# a\nb".ljust(min(length, limit), "字") for length in lengths]
    pieces = split("\n\n".join(sections), limit, 100, 0)
    greedy, used = 1, -2
    for section in sections:
        if used + 2 + len(section) > limit:
            greedy, used = greedy + 1, -2
        used += 2 + len(section)
    assert len(pieces.parts) == greedy
    whole = [text for part in pieces.parts for text in part.text.split("\n\n")]
    assert whole == sections


@settings(deadline=None)
@given(st.integers(2, 400), st.integers(10, 100), st.integers(200, 1000), st.booleans())
def test_chunks_of_one_part_are_of_even_length(
    count: int, sentence: int, chunk_size: int, overlapping: bool
) -> None:
    overlap = chunk_size // 8 if overlapping else 0
    body = sentences(count, min(sentence, chunk_size // 8))
    chunks = texts(split(body, len(body) + chunk_size, chunk_size, overlap).chunks)
    lengths = [len(chunk) for chunk in chunks]
    assert min(lengths) >= 0.5 * max(lengths) or len(chunks) == 1
