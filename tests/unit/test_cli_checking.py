"""kb check: one line a problem, at its place, and an exit code for a commit hook."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.cli import run
from kb.commands.document_check import CheckedDocument, check_document
from kb.commands.keyword_check import across
from kb.commands.markdown_files import MarkdownFile
from kb.documents import CatalogRow, Status
from kb.folding import fold
from kb.keywords import KeywordIndex
from kb.settings import DocumentLimits, read_settings

from tests.conftest import markdown

LIMITS = read_settings(DocumentLimits, {})
FINE = markdown("Disk", "[disk alarm handling]", "# Cause\n\nText.\n\n# Cure\n\nText.")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with `docs` in it."""
    monkeypatch.chdir(tmp_path)
    docs = tmp_path / "docs"
    docs.mkdir()
    return docs


def write(folder: Path, **texts: str | bytes) -> None:
    """One file an argument: `a__b` is a/b.md."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def problems(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, the problems' lines and the last line."""
    code = run(["check", *arguments])
    *lines, last = capsys.readouterr().out.splitlines()
    return code, lines, last


def test_a_good_folder_has_no_problem(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, disk=FINE, net__dns=markdown("DNS", "[name resolution]", "Text."))
    assert problems(capsys, "docs") == (0, [], "2 documents: 2 indexed; no problem")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "---\ntitle: a: b\nkeywords: [x]\nsummary: s\n---\nText.",
            "2:9: error: frontmatter unusable: mapping values are not allowed here"
            " (put quotes around a value that holds `: `) [frontmatter]",
        ),
        (
            "---\nkeywords: [disk alarm]\n---\nText.",
            "2:1: error: frontmatter unusable: title, summary missing or blank [frontmatter]",
        ),
        (
            "\n\nText.",
            "3:1: warning: no frontmatter: line 3 is not `---` [frontmatter]",
        ),
        (
            f"---\ntitle: t\nkeywords: [disk alarm, {'long' * 100}]\nsummary: s\n---\nText.",
            "3:11: warning: frontmatter: keyword `longlonglonglonglong…` is dropped, it has 400"
            " characters, at most 256 are allowed [frontmatter]",
        ),
        (
            "---\ntitle: t\nkeywords: [disk alarm]\nsummary: s\n---\n",
            "1:1: warning: there is no text below the frontmatter [empty]",
        ),
        (
            b"\x00\x01\x02\x03" * 100,
            "1:1: error: not a text: 100% of its characters are control or replacement characters"
            " (UTF-16 needs its byte order mark); save it as UTF-8 [refused]",
        ),
        (
            "---\ntitle: t\nkeywords: [磁盘]\nsummary: s\n---\n数据数据数据数据".encode() + b"\xff",
            "6:1: error: damaged UTF-8: byte 72, in line 6, belongs to no character [refused]",
        ),
    ],
    ids=["yaml", "missing", "none", "keyword", "empty", "binary", "damaged"],
)
def test_what_ingest_would_say_has_its_place(
    text: str | bytes, line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, one=text)
    code, lines, _ = problems(capsys, "docs")
    assert (code, lines) == (4, [f"docs/one.md:{line}"])


def test_limits_are_those_of_ingests_environment(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, disk=FINE)
    monkeypatch.setenv("DOCUMENT_BYTES", "10")
    _, lines, _ = problems(capsys, "docs")
    size = len(FINE.encode())
    assert lines == [
        f"docs/disk.md:1:1: error: the file has {size} bytes; at most 10 are indexed: split it"
        " [refused]"
    ]
    monkeypatch.setenv("CHUNK_SIZE", "x")
    assert run(["check", "docs"]) == 1
    assert capsys.readouterr().err.startswith("kb: CHUNK_SIZE: ")


def test_a_keyword_of_two_documents_is_a_collision_in_both(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        folder,
        a=markdown("A", "[disk alarm, Quota  limit]", "Text a."),
        b=markdown("B", "\n  - tape alarm\n  - ＱＵＯＴＡ LIMIT", "Text b."),
    )
    code, lines, last = problems(capsys, "docs")
    tail = "asked for, none is PRECISE; leave it to one of them [keyword-collision]"
    assert (code, lines) == (
        4,
        [
            f"docs/a.md:3:24: warning: `Quota limit` is also a keyword of docs/b.md: {tail}",
            f"docs/b.md:5:5: warning: `ＱＵＯＴＡ LIMIT` is also a keyword of docs/a.md: {tail}",
        ],
    )
    assert last == "2 documents: 2 indexed; 2 warnings"


def test_equal_content_is_a_twin_and_no_collision(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, b=FINE, a=FINE)
    code, lines, _ = problems(capsys, "docs")
    tail = "it counts once, as docs/a.md [twin]"
    assert (code, lines) == (
        0,
        [
            f"docs/a.md:1:1: note: its content is also that of docs/b.md: {tail}",
            f"docs/b.md:1:1: note: its content is also that of docs/a.md: {tail}",
        ],
    )


def test_a_keyword_inside_others_keywords_is_told_where_it_stands(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        folder,
        a=markdown("A", "[回滚]", "Text a."),
        b=markdown("B", "[发布回滚]", "Text b."),
        c=markdown("C", "[email]", "Text c."),
        d=markdown("D", "[mail]", "Text d."),
    )
    code, lines, _ = problems(capsys, "docs")
    assert (code, lines) == (
        4,
        [
            "docs/a.md:3:12: warning: `回滚` stands in keywords of docs/b.md (`发布回滚`): asked"
            " for, or they, none is PRECISE; write what only this document is about"
            " [keyword-common]"
        ],
    )


@pytest.mark.parametrize(
    ("keyword", "is_short"),
    [("卡", True), ("退款", False), ("db", True), ("dns", False), ("x 光", False), ("k 8", True)],
)
def test_a_keyword_shorter_than_a_question_can_be_is_told(
    keyword: str, is_short: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a=markdown("A", f"[{keyword}]", "Text."))
    _, lines, _ = problems(capsys, "docs")
    assert [line.endswith("[keyword-short]") for line in lines] == [True] * is_short


def test_sections_that_cannot_be_asked_for_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "# Steps\n\nOne.\n\n## Ｓteps\n\nTwo.\n\n#\n\nThree.\n\n```\n# Steps\n```"
    names = "{how: steps, why: Reasons}"
    write(folder, a=markdown("A", "[disk alarm]", body, sections=names))
    code, lines, _ = problems(capsys, "docs")
    assert (code, lines) == (
        4,
        [
            "docs/a.md:5:24: warning: sections: `why` leads to `Reasons`, and no heading is that"
            " [section-name]",
            "docs/a.md:12:1: warning: 2 headings are `steps` (lines 8, 12): asked for by title,"
            " the first is read, and the others only after it in the same session"
            " [section-duplicate]",
            "docs/a.md:16:1: warning: this heading has no text, so that nobody can ask for its"
            " section [section-untitled]",
        ],
    )


def test_lines_are_counted_in_the_file_also_where_the_block_is_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a="\n---\nno: yaml: here\n---\n# A\n\nText.\n\n# A\n\nText.")
    _, lines, _ = problems(capsys, "docs")
    assert [line.split(": ")[0] for line in lines] == ["docs/a.md:3:9", "docs/a.md:9:1"]


def test_files_are_compared_with_the_folder_but_only_they_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        folder,
        a=markdown("A", "[disk alarm]", "A."),
        b=markdown("B", "[disk alarm]", "B."),
        c="no frontmatter",
    )
    assert problems(capsys, "docs/a.md") == (0, [], "1 document: 1 indexed; no problem")
    code, lines, last = problems(capsys, "docs/a.md", "--within", "docs")
    assert code == 4
    assert [line.split(":")[0] for line in lines] == ["docs/a.md"]
    assert last == "1 document: 1 indexed; 1 warning"


def test_warnings_can_be_allowed_and_errors_cannot(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a="no frontmatter")
    assert run(["check", "docs", "--allow-warnings"]) == 0
    write(folder, b="---\ntitle: [\n---\nText.")
    assert run(["check", "docs", "--allow-warnings"]) == 4


def test_what_is_no_document_or_hidden_is_left_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a=FINE)
    (folder / "b.txt").write_text("x")
    (folder / ".hidden").mkdir()
    write(folder / ".hidden", c="x")
    (folder / "D.MarkDown").write_text(FINE.replace("disk alarm", "tape alarm"))
    code, _, last = problems(capsys, "docs", "docs/b.txt")
    assert (code, last) == (0, "2 documents: 2 indexed; no problem")


def test_a_folder_without_documents_is_exit_code_3(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "docs"]) == 3
    assert run(["check", "nowhere"]) == 2
    assert capsys.readouterr().err == "kb: nowhere does not exist\n"


def test_what_cannot_be_read_is_an_error_and_the_rest_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a=FINE)
    (folder / "broken.md").symlink_to("nowhere.md")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / os.fsdecode(b"\xff.md")).write_bytes(b"x")
    code, lines, last = problems(capsys, "docs")
    assert code == 4
    assert [line.partition(": ")[2] for line in lines] == [
        "error: it cannot be read (No such file or directory) [unreadable]",
        "error: it cannot be read (it is no regular file) [unreadable]",
        "error: the file's name is not valid UTF-8 [refused]",
    ]
    assert last == "4 documents: 3 failed, 1 indexed; 3 errors"


def test_json_has_every_document_and_its_problems(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a=FINE, sub__b="Text.")
    assert run(["check", "docs", "--json"]) == 4
    assert json.loads(capsys.readouterr().out) == {
        "documents": [
            {"path": "docs/a.md", "key": "a.md", "status": "indexed", "problems": []},
            {
                "path": "docs/sub/b.md",
                "key": "sub/b.md",
                "status": "semantic_only",
                "problems": [
                    {
                        "line": 1,
                        "column": 1,
                        "severity": "warning",
                        "rule": "frontmatter",
                        "message": "no frontmatter: line 1 is not `---`",
                    }
                ],
            },
        ]
    }


WORDS = st.lists(st.text("ab 回滚", min_size=1, max_size=5), max_size=4)


@given(st.lists(WORDS, min_size=1, max_size=5))
def test_where_a_keyword_leads_elsewhere_too_one_of_the_two_is_told(words: list[list[str]]) -> None:
    documents = [
        CheckedDocument(
            MarkdownFile(f"{number}.md", Path(f"{number}.md")),
            Status.INDEXED,
            "",
            (),
            CatalogRow(
                f"{number}.md", 1, Status.INDEXED, 0, content_hash=str(number), keywords=tuple(own)
            ),
            "",
        )
        for number, own in enumerate(words)
    ]
    found = across(documents)
    told = {
        path: {fold(problem.message.split("`")[1]) for problem in problems}
        for path, problems in found.items()
    }
    index = KeywordIndex((f"{n}.md", own, str(n)) for n, own in enumerate(words))
    for number, own in enumerate(words):
        key = f"{number}.md"
        for word in filter(None, map(fold, own)):
            others = [match for match in index.match(word) if match.key != key]
            assert all(word in told[key] or m.keyword in told[m.key] for m in others)


def test_check_of_one_file_needs_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(FINE)
    checked = check_document(MarkdownFile("a.md", path), LIMITS)
    assert (checked.status, checked.reason, checked.problems) == (Status.INDEXED, "", ())
