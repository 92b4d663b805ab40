"""Every troublesome document from its bytes to keywords and chunks, as the manifest says."""

import json
from pathlib import Path

import pytest
from kb.chunking import Pieces, split_document
from kb.documents import Document
from kb.parsing import parse_document

DOCUMENTS = Path(__file__).parents[1] / "documents"
MANIFEST = json.loads((DOCUMENTS / "manifest.json").read_text(encoding="utf-8"))

COLON = "mapping values are not allowed here (put quotes around a value that holds `: `)"
PERCENT = "found character '%' that cannot start any token (put quotes around the value)"
TEXT = "it is text, not `name: value` lines"
PROBLEMS = {
    "html_comment_first.md": "no frontmatter: line 1 is not `---`",
    "hr_first.md": f"frontmatter unusable: line 3, column 1: {TEXT}",
    "fullwidth_colon.md": (
        f"frontmatter unusable: line 2, column 1: {TEXT}; a full-width ： is no colon to YAML"
    ),
    "colon_in_title.md": f"frontmatter unusable: line 2, column 13: {COLON}",
    "percent_scalar.md": f"frontmatter unusable: line 4, column 5: {PERCENT}",
    "template_braces.md": (
        "frontmatter unusable: line 2, column 9: a field's name is a list or a mapping"
    ),
    "nested_list.md": (
        "frontmatter unusable: line 3, column 12: a keyword must be text, not a list or mapping"
    ),
    "yaml_bomb.md": (
        "frontmatter unusable: line 2, column 8: its aliases expand to more than 131072 characters"
    ),
    "toml.md": "no frontmatter: line 1 is not `---`",
    "json_first_line.md": "no frontmatter: line 1 is not `---`",
    "unterminated.md": "no frontmatter: `---` in line 1 is never closed",
    "whitespace_only.md": "no frontmatter: the document is blank",
    "zero.md": "no frontmatter: the document is blank",
    "nul_in_fm.md": "frontmatter unusable: line 2, column 9: character U+0000 is not allowed",
    "long_keyword.md": "frontmatter unusable: line 3, column 11: every keyword is too long",
    "dup_keys.md": "frontmatter, line 3, column 1: `title` is given twice, this last one counts",
}
"""The first problem of each file that has one."""

HEADINGS = {
    "fence_at_eof.md": [],
    "fullwidth_colon.md": [],
    "hash_in_code.md": ["真标题"],
    "setext.md": ["真标题", "小标题"],
    "hr_first.md": ["第二段"],
    "yaml_in_code.md": [],
    "unterminated.md": ["标题"],
    "toml.md": ["处理步骤"],
    "nul_in_fm.md": ["处理步骤"],
}


def read(name: str) -> tuple[Document, Pieces]:
    document = parse_document(
        (DOCUMENTS / name).read_bytes(), frontmatter_limit=65536, keyword_length=256
    )
    return document, split_document(document, content_limit=2000, chunk_size=800, overlap=100)


def test_manifest_names_every_document() -> None:
    assert {path.name for path in DOCUMENTS.glob("*.md")} - {"README.md"} == set(MANIFEST)


@pytest.mark.parametrize("name", MANIFEST)
def test_document_is_as_the_manifest_says(name: str) -> None:
    document, pieces = read(name)
    expected = MANIFEST[name]
    keywords = list(document.frontmatter.keywords) if document.frontmatter else None
    chunks = "\n".join(chunk.text for chunk in pieces.chunks)
    parts = "\n".join(part.text for part in pieces.parts)
    assert keywords == expected["keywords"]
    for text in expected["semantic_must_contain"]:
        assert text in chunks
        assert text in parts
    for text in expected["semantic_must_not_contain"]:
        assert text not in chunks
        assert text not in parts
    assert document.problems[:1] == ((PROBLEMS[name],) if name in PROBLEMS else ())


@pytest.mark.parametrize(("name", "headings"), HEADINGS.items())
def test_headings_are_those_a_reader_sees(name: str, headings: list[str]) -> None:
    _, pieces = read(name)
    assert [section.title for section in pieces.outline.sections] == headings


@pytest.mark.parametrize("name", MANIFEST)
def test_no_piece_is_longer_than_its_limit_and_no_character_is_lost(name: str) -> None:
    document, pieces = read(name)
    body = "".join(document.body.split())
    assert "".join("".join(part.text.split()) for part in pieces.parts) in (
        body,
        body or (document.frontmatter.summary if document.frontmatter else ""),
    )
    assert max((len(part.text) for part in pieces.parts), default=0) <= 2000
    assert max((len(chunk.text) for chunk in pieces.chunks), default=0) <= 800


def test_twins_by_another_name_have_equal_content() -> None:
    assert read("name_1.md") == read("name_2.md") == read("ok.md") == read("utf16.md")


def test_document_without_body_delivers_its_summary() -> None:
    _, pieces = read("fence_at_eof.md")
    assert [part.text for part in pieces.parts] == ["没有正文"]
    assert (pieces.chunks, pieces.outline.parts) == ((), 1)


@pytest.mark.parametrize("name", ["zero.md", "whitespace_only.md"])
def test_blank_document_has_no_pieces(name: str) -> None:
    _, pieces = read(name)
    assert (pieces.parts, pieces.chunks, pieces.outline.parts) == ((), (), 0)


def test_text_without_bounds_is_cut_evenly() -> None:
    _, pieces = read("long_cjk_no_punct.md")
    assert [len(part.text) for part in pieces.parts] == [2000] * 12
    assert len(pieces.chunks) == 36
    assert min(len(chunk.text) for chunk in pieces.chunks) >= 650
