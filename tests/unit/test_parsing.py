"""Bytes in any encoding that writers use become clean text, or a reason."""

import hashlib
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kb.documents import Document
from kb.errors import Refused
from kb.parsing import parse_document

TEXT = (
    "---\ntitle: 磁盘写满处理\nkeywords: [磁盘告警]\nsummary: 步骤\n---\n"
    "# 处理步骤\n\n先清理旧日志。😀\n"
)


def parse(data: bytes) -> Document:
    return parse_document(data, frontmatter_limit=65536, keyword_length=256)


def reason(data: bytes) -> str:
    with pytest.raises(Refused) as refused:
        parse(data)
    return str(refused.value)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        ("", "utf-8"),
        ("\ufeff", "utf-8"),
        ("\ufeff\ufeff", "utf-8"),
        ("\ufeff", "utf-16-le"),
        ("\ufeff", "utf-16-be"),
        ("\ufeff", "utf-32-le"),
        ("\ufeff", "utf-32-be"),
        ("", "gb18030"),
        ("\ufeff", "gb18030"),
    ],
)
def test_every_encoding_gives_the_same_document(mark: str, encoding: str) -> None:
    document = parse((mark + TEXT).encode(encoding))
    assert document == parse(TEXT.encode())
    assert document.frontmatter is not None
    assert document.frontmatter.title == "磁盘写满处理"
    assert document.body == "\n# 处理步骤\n\n先清理旧日志。😀\n"
    assert document.problems == ()
    assert document.content_hash == hashlib.sha256(TEXT.encode()).hexdigest()


def test_utf_16_text_that_begins_like_utf_32_is_read() -> None:
    assert (
        parse("\ufeff\0正文很长很长很长很长很长很长很长很长很长".encode("utf-16-le")).body[:2]
        == "正文"
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(
            "\ufeff正文".encode("utf-16-le")[:-1],
            "begins as UTF-16 but byte 5 is none; save it as UTF-8",
            id="utf-16 cut in a character",
        ),
        pytest.param(
            "\ufeff正".encode("utf-16-be") + b"\xd8\x00\x00a",
            "begins as UTF-16 but byte 5 is none; save it as UTF-8",
            id="lone surrogate",
        ),
        pytest.param(
            b"\xef\xbb\xbfabc\xff",
            "begins as UTF-8 but byte 7 is none; save it as UTF-8",
            id="utf-8 mark, not utf-8",
        ),
        pytest.param(
            b"\x00\x00\xfe\xff\x00\x11\x00\x00",
            "begins as UTF-32 but byte 5 is none; save it as UTF-8",
            id="beyond unicode",
        ),
        pytest.param(
            "首行\n磁盘写满时的处理步骤".encode()[:-1] + "。".encode(),
            "damaged UTF-8: byte 35, in line 2, belongs to no character",
            id="one damaged character in utf-8",
        ),
        pytest.param(
            "caf\xe9 au lait".encode("latin-1"),
            "neither UTF-8, UTF-16 nor GB18030 (byte 4); save it as UTF-8",
            id="latin-1",
        ),
        pytest.param(
            b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff",
            "neither UTF-8, UTF-16 nor GB18030 (byte 17); save it as UTF-8",
            id="image",
        ),
        pytest.param(
            "plain words".encode("utf-16-le"),
            "not a text: 50% of its characters are control or replacement characters"
            " (UTF-16 needs its byte order mark); save it as UTF-8",
            id="utf-16 without mark",
        ),
        pytest.param(
            ("磁盘" + "\ufffd" * 2).encode(),
            "not a text: 50% of its characters are control or replacement characters"
            " (UTF-16 needs its byte order mark); save it as UTF-8",
            id="damaged before it was stored",
        ),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_a_reason(data: bytes, problem: str) -> None:
    assert reason(data) == problem


def test_body_is_cleaned_of_what_is_no_text() -> None:
    words = "磁盘写满时先看挂载点再清理旧日志" * 20
    noise = "a\0b\x07c\x7fd\x85e\ufefff\ufffdg\uffffh\ufdd0i\U0001fffej"
    document = parse(f"{words}\r\n{noise}\r\tend\n".encode())
    assert document.body == f"{words}\nabcdefghij\n\tend\n"


def test_hash_is_of_the_text_as_it_was_stored() -> None:
    document = parse(b"one\r\ntwo")
    assert document.body == "one\ntwo"
    assert document.content_hash == hashlib.sha256(b"one\r\ntwo").hexdigest()
    assert document.content_hash != parse(b"one\ntwo").content_hash


def test_places_in_reasons_are_those_of_a_file_with_dos_newlines() -> None:
    document = parse(b"\r\n---\r\ntitle: t\r\nkeywords: {}\r\nsummary: s\r\n---\r\nbody\r\n")
    assert document.problems == (
        "frontmatter unusable: line 4, column 11: keywords must be a list or text, not a mapping",
    )
    assert document.body == "\nbody\n"


def test_old_mac_newlines_are_lines() -> None:
    document = parse(b"---\rtitle: t\rkeywords: k\rsummary: s\r---\rbody\r")
    assert document.frontmatter is not None
    assert document.body == "\nbody\n"


def test_empty_object_is_a_blank_document() -> None:
    assert parse(b"") == Document(
        body="",
        content_hash=hashlib.sha256(b"").hexdigest(),
        frontmatter=None,
        problems=("no frontmatter: the document is blank",),
    )


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_clean_text_or_refused(data: bytes) -> None:
    body = ""
    with suppress(Refused):
        body = parse(data).body
    controls = {character for character in body if unicodedata.category(character) in ("Cc", "Cs")}
    assert controls <= {"\n", "\t"}
    assert not {"\ufffd", "\ufeff"} & set(body)


ENCODINGS = ["utf-8-sig", "utf-16", "utf-32", "gb18030"]


@settings(deadline=None)
@given(st.text(min_size=1).map(lambda text: "正文" * 200 + text), st.sampled_from(ENCODINGS))
def test_text_is_the_same_from_every_encoding(text: str, encoding: str) -> None:
    stored = text.encode("utf-8", "ignore").decode()
    assert parse(stored.encode(encoding)) == parse(stored.encode())
