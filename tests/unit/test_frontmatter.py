"""Every shape of frontmatter: what is read, what stays text, and what its writer is told."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kb.documents import Frontmatter
from kb.frontmatter import NOTES, SUMMARY_LENGTH, TITLE_LENGTH, Reading, read_frontmatter

GOOD = "title: t\nkeywords: [k]\nsummary: s\n"


def read(text: str, limit: int = 65536, keyword_length: int = 256) -> Reading:
    return read_frontmatter(text, limit=limit, keyword_length=keyword_length)


def accepted(fields: str) -> Frontmatter:
    """The frontmatter of a block of these lines, which has no problem."""
    reading = read(f"---\n{fields}---\nbody")
    assert reading.problems == ()
    assert reading.frontmatter is not None
    return reading.frontmatter


def refused(fields: str) -> str:
    """The one reason why a block of these lines is unusable; the body is there all the same."""
    reading = read(f"---\n{fields}---\nbody")
    assert reading.frontmatter is None
    assert reading.body.endswith("\nbody")
    (reason,) = reading.problems
    return reason


def test_every_field_keeps_the_authors_spelling() -> None:
    fields = (
        "title: 010\nkeywords: [1.10, yes, 2024-01-05]\nsummary: |\n  two\n  lines\ncategory: on\n"
        "version: 1.10\nauthor: 0x1F\nlastUpdated: 2024-01-05\nsections: {安装: 第 1 章, 'no': 2}\n"
        "tags: [a, {b: ~}]\n"
    )
    assert accepted(fields) == Frontmatter(
        title="010",
        keywords=("1.10", "yes", "2024-01-05"),
        summary="two\nlines",
        category="on",
        version="1.10",
        author="0x1F",
        last_updated="2024-01-05",
        sections={"安装": "第 1 章", "no": "2"},
        metadata={
            "title": "010",
            "keywords": ["1.10", "yes", "2024-01-05"],
            "summary": "two\nlines\n",
            "category": "on",
            "version": "1.10",
            "author": "0x1F",
            "lastUpdated": "2024-01-05",
            "sections": {"安装": "第 1 章", "no": "2"},
            "tags": ["a", {"b": None}],
        },
    )


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        pytest.param("---\n", "---\n", id="plain"),
        pytest.param("\n \n\u3000\n---\n", "---\n", id="blank lines first"),
        pytest.param("--- \t\n", "---\u3000\n", id="blanks after the rules"),
        pytest.param("-----\n", "-----\n", id="longer rules"),
        pytest.param("---\n", "...\n", id="closed as YAML closes a document"),
    ],
)
def test_rules_around_the_block_may_be_written_loosely(opening: str, closing: str) -> None:
    reading = read(f"{opening}{GOOD}{closing}# body\n")
    assert reading.frontmatter is not None
    assert (reading.frontmatter.title, reading.body) == ("t", "\n# body\n")


def test_block_may_end_the_file() -> None:
    reading = read(f"---\n{GOOD}---")
    assert reading.frontmatter is not None
    assert (reading.frontmatter.keywords, reading.body) == (("k",), "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no frontmatter: the document is blank"),
        (" \n\u200b\n", "no frontmatter: the document is blank"),
        ("# body\n", "no frontmatter: line 1 is not `---`"),
        ("\n\n+++\na = 1\n+++\n", "no frontmatter: line 3 is not `---`"),
        (" ---\ntitle: t\n---\n", "no frontmatter: line 1 is not `---`"),
        ("\n---\ntitle: t\n\nbody\n", "no frontmatter: `---` in line 2 is never closed"),
        ("---", "no frontmatter: `---` in line 1 is never closed"),
    ],
)
def test_document_without_a_block_is_all_body(text: str, problem: str) -> None:
    assert read(text) == Reading(None, text, (problem,))


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("\ncall 8001.\n\n", "line 3, column 1: it is text, not `name: value` lines"),
        ("- a\n- b\n", "line 2, column 1: it is text, not `name: value` lines"),
        (
            "title：t\n",
            "line 2, column 1: it is text, not `name: value` lines;"
            " a full-width ： is no colon to YAML",
        ),
        (
            "Note: call 8001.\n",
            "line 2, column 1: none of its fields is title, keywords or summary",
        ),
        (
            "title: a : b\n",
            "line 2, column 10: mapping values are not allowed here"
            " (put quotes around a value that holds `: `)",
        ),
        (
            "title: t\nkeywords:\n  - %\n",
            "line 4, column 5: found character '%' that cannot start any token"
            " (put quotes around the value)",
        ),
        ("title: a\x00b\n", "line 2, column 9: character U+0000 is not allowed"),
        ("summary: *none\n", "line 2, column 10: found undefined alias 'none'"),
        ('title: "\\UFFFFFFFF"\n', "an escape, tag or directive in it is invalid"),
        ("", "line 2, column 1: it is empty"),
        ("# only a comment\n~\n", "line 2, column 1: it is empty"),
    ],
)
def test_block_that_is_no_metadata_stays_without_its_rules(block: str, problem: str) -> None:
    assert read(f"---\n{block}---\nbody\n") == Reading(
        None, f"{block}\n\nbody\n", (f"frontmatter unusable: {problem}",)
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("title: t\n", "line 2, column 1: keywords, summary missing or blank"),
        ("summary: s\ntitle: ' '\nkeywords: k\n", "line 2, column 1: title missing or blank"),
        ("title: ~\nkeywords: k\nsummary: s\n", "line 2, column 1: title missing or blank"),
        (
            "title: {{ title }}\nkeywords: k\nsummary: s\n",
            "line 2, column 9: a field's name is a list or a mapping",
        ),
        (
            "title: [t]\nkeywords: k\nsummary: s\n",
            "line 2, column 8: title must be text, not a list or mapping",
        ),
        (
            "title: t\nkeywords: k\nsummary: {s: t}\n",
            "line 4, column 10: summary must be text, not a list or mapping",
        ),
        (
            "title: t\nsummary: s\nkeywords: {k: 1}\n",
            "line 4, column 11: keywords must be a list or text, not a mapping",
        ),
        (
            "title: t\nsummary: s\nkeywords:\n  - a\n  - b: c\n",
            "line 6, column 5: a keyword must be text, not a list or mapping",
        ),
        (
            "title: t\nsummary: s\nkeywords: [~, '', ' ']\n",
            "line 4, column 11: keywords holds no keyword",
        ),
        (
            "title: t\nsummary: s\nkeywords: '，;'\n",
            "line 4, column 11: keywords holds no keyword",
        ),
    ],
)
def test_unusable_metadata_leaves_the_body_and_names_its_place(fields: str, problem: str) -> None:
    assert read(f"---\n{fields}---\nbody\n") == Reading(
        None, "\nbody\n", (f"frontmatter unusable: {problem}",)
    )


def test_places_count_the_files_lines() -> None:
    (problem,) = read("\n\n---\ntitle: t\u2028x\nkeywords: [[k]]\nsummary: s\n---\n").problems
    assert problem == (
        "frontmatter unusable: line 5, column 12: a keyword must be text, not a list or mapping"
    )


def test_keyword_text_is_split_at_every_separator_but_list_items_are_not() -> None:
    text = accepted("title: t\nsummary: s\nkeywords: 'a，b、 C# ;d；a ,e f,A'\n")
    items = accepted("title: t\nsummary: s\nkeywords: ['a，b', 'c, d', ~, '', C#]\n")
    lines = accepted("title: t\nsummary: s\nkeywords: |\n  a\n  b c\n")
    assert text.keywords == ("a", "b", "C#", "d", "e f")
    assert items.keywords == ("a，b", "c, d", "C#")
    assert lines.keywords == ("a", "b c")


def test_keywords_that_fold_alike_are_one_in_the_first_spelling() -> None:
    assert accepted(
        "title: t\nsummary: s\nkeywords: [Mocking, ＭＯＣＫＩＮＧ, ' mocking', Straße, STRASSE]\n"
    ).keywords == ("Mocking", "Straße")


def test_only_plain_null_is_no_value() -> None:
    assert accepted(
        "title: 'null'\nsummary: \"~\"\nkeywords: [null, NULL, ~, 'null', '~', none]\n"
    ).keywords == ("NULL", "~", "none")


def test_long_keyword_is_dropped_and_said() -> None:
    reading = read(
        f"---\ntitle: t\nsummary: s\nkeywords: [ok, {'长' * 11}]\n---\n", keyword_length=10
    )
    assert reading.frontmatter is not None
    assert reading.frontmatter.keywords == ("ok",)
    assert reading.problems == (
        f"frontmatter, line 4, column 11: keyword `{'长' * 11}…` is dropped, it has 11 characters,"
        " at most 10 are allowed",
    )


def test_keyword_of_just_the_length_is_kept() -> None:
    reading = read(f"---\n{GOOD}---\n", keyword_length=1)
    assert reading.frontmatter is not None
    assert reading.frontmatter.keywords == ("k",)


def test_block_whose_keywords_are_all_too_long_is_unusable() -> None:
    reading = read("---\ntitle: t\nsummary: s\nkeywords: [abc]\n---\n", keyword_length=2)
    assert reading.frontmatter is None
    assert reading.problems[0] == (
        "frontmatter unusable: line 4, column 11: every keyword is too long"
    )


def test_long_title_and_summary_are_cut_and_said() -> None:
    title, summary = "题" * (TITLE_LENGTH + 1), "e\u0301" * SUMMARY_LENGTH
    reading = read(f"---\ntitle: {title}\nkeywords: k\nsummary: {summary}\n---\n")
    assert reading.frontmatter is not None
    assert reading.frontmatter.title == "题" * TITLE_LENGTH
    assert reading.frontmatter.summary == "e\u0301" * (SUMMARY_LENGTH // 2)
    assert reading.problems == (
        "frontmatter, line 2, column 8: cut to 300 characters, it has 301",
        "frontmatter, line 4, column 10: cut to 2000 characters, it has 4000",
    )


def test_wrong_shapes_of_optional_fields_are_ignored_and_said() -> None:
    reading = read(
        f"---\n{GOOD}version: [1]\nauthor: {{a: b}}\ncategory: ~\nlastUpdated: ' '\nsections: [a]\n"
        "---\n"
    )
    assert reading.frontmatter is not None
    assert (reading.frontmatter.version, reading.frontmatter.author) == ("", "")
    assert (reading.frontmatter.category, reading.frontmatter.last_updated) == ("", "")
    assert reading.frontmatter.sections == {}
    assert reading.problems == (
        "frontmatter, line 5, column 10: version is ignored, it must be text",
        "frontmatter, line 6, column 9: author is ignored, it must be text",
        "frontmatter, line 9, column 11: sections is ignored, it must map a name to a heading",
    )


def test_sections_without_a_heading_are_left_out() -> None:
    reading = read(f"---\n{GOOD}sections:\n  a: ~\n  b: [x]\n  c: ' '\n  ' ': d\n  e:  f  g\n---\n")
    assert reading.frontmatter is not None
    assert reading.frontmatter.sections == {"e": "f g"}
    assert reading.problems == (
        "frontmatter, line 6, column 3: sections: `b` is ignored, it must name a heading",
    )


def test_last_of_equal_fields_counts_and_is_said() -> None:
    reading = read("---\ntitle: a\nkeywords: k\ntitle: b\nsummary: s\n---\n")
    assert reading.frontmatter is not None
    assert reading.frontmatter.title == "b"
    assert reading.problems == (
        "frontmatter, line 4, column 1: `title` is given twice, this last one counts",
    )


def test_problems_of_one_block_are_bounded() -> None:
    repeated = "a: b\n" * 101
    reading = read(f"---\n{GOOD}{repeated}---\n")
    assert len(reading.problems) == NOTES + 1
    assert reading.problems[-1] == "frontmatter: and 80 more"


def test_escapes_never_make_characters_that_are_no_text() -> None:
    fields = accepted(
        'title: "a\\0b\\uD800c\\uFFFD\\uFEFF"\nkeywords: ["k\\0", "\\0"]\n'
        'summary: "s\\x07\\uFFFE"\n'
        '"x\\0y": {"\\b": "\\uDFFF"}\n'
    )
    assert (fields.title, fields.keywords, fields.summary) == ("abc", ("k",), "s")
    assert fields.metadata["xy"] == {"": ""}


def test_tags_are_ignored_and_never_make_objects() -> None:
    fields = accepted("title: !Ref t\nkeywords: !!int 1\nsummary: !!python/object:os.system s\n")
    assert (fields.title, fields.keywords, fields.summary) == ("t", ("1",), "s")


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param(BOMB + "title: t\n", "expand to more than", id="aliases"),
        pytest.param("title: t\na: &a [*a]\n", "nested deeper than 20 levels", id="self in list"),
        pytest.param("title: t\na: &a {b: *a}\n", "nested deeper than 20", id="self in mapping"),
        pytest.param("title: &t {*t : x}\n", "name is a list or a mapping", id="self as name"),
        pytest.param(
            f"title: t\na: {'[' * 30}{']' * 30}\n", "nested deeper than 20", id="deep list"
        ),
        pytest.param("title: " + "[" * 20_000 + "\n", "nested too deeply", id="very deep list"),
        pytest.param("title: " + "{a: " * 9_000 + "\n", "nested too deeply", id="deep mapping"),
        pytest.param("title: &t " + "x" * 30_000 + f"\na: [{'*t,' * 10}]\n", "expand", id="text"),
    ],
)
def test_yaml_without_end_is_a_reason(fields: str, problem: str) -> None:
    assert problem in refused(fields)


def test_aliases_of_an_honest_size_are_followed() -> None:
    fields = accepted("title: &t disk\nkeywords: [*t, b]\nsummary: *t\n")
    assert (fields.title, fields.keywords, fields.summary) == ("disk", ("disk", "b"), "disk")


def test_block_longer_than_the_limit_is_text_and_names_the_limit() -> None:
    reading = read(f"---\n{GOOD}---\nbody", limit=10)
    assert reading == Reading(
        None,
        f"{GOOD}\n\nbody",
        ("frontmatter unusable: it has 34 characters, at most 10 are read",),
    )


def test_block_just_within_the_limit_is_read_whole() -> None:
    many = ",".join(f"k{number}" for number in range(2000))
    fields = f"title: t\nsummary: s\nkeywords: [{many}]\n"
    reading = read(f"---\n{fields}---\n", limit=len(fields))
    assert reading.frontmatter is not None
    assert len(reading.frontmatter.keywords) == 2000


NAMES = ["title", "keywords", "summary", "sections", "version", "x"]
VALUES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["", "~", "[a, b]", "{a: b}", "&a [*a]", "|\n  x", "- a", "'", '"\\0"', "*a"]),
)
LINES = st.one_of(
    st.builds("{}: {}".format, st.sampled_from(NAMES), VALUES),
    st.text(max_size=20),
    st.sampled_from(["---", "...", "  - k", "  a: b", "\t", "%YAML 1.1", "? a", "&x"]),
)


@settings(deadline=None)
@given(st.lists(LINES, max_size=12).map("\n".join), st.integers(0, 80), st.integers(1, 8))
@example("---\ntitle: t\nkeywords: k\nsummary: s\n---\nx", 80, 8)
def test_whatever_stands_on_top_is_read_or_stays_or_is_said(
    text: str, limit: int, keyword_length: int
) -> None:
    text = re.sub(r"\r\n?", "\n", text)
    reading = read("---\n" + text, limit=limit, keyword_length=keyword_length)
    if reading.frontmatter is None:
        assert reading.problems != ()
    else:
        assert reading.frontmatter.title.strip()
        assert reading.frontmatter.summary.strip()
        assert all(0 < len(word) <= keyword_length for word in reading.frontmatter.keywords)
    assert (
        reading.body in text
        or reading.body in "---\n" + text
        or _lines_without_rules(reading.body) == _lines_without_rules(text)
    )


def _lines_without_rules(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    return [line for line in lines if line and not re.fullmatch(r"-{3,}|\.{3}", line)]
