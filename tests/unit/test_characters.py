"""What counts as text, and where a text may be cut."""

import pytest
from kb.characters import clean, is_blank, is_safe_bound, share_of_no_text, shorten


def test_clean_text_has_plain_newlines_and_no_character_that_is_none() -> None:
    assert clean(
        "a\r\nb\rc\td\0\x1b\x7f\x9f\ud800\ufdd0\ufeff\ufffd\uffff\U0010ffff\u00e9\u200d"
    ) == ("a\nb\nc\td\u00e9\u200d")


@pytest.mark.parametrize(
    ("text", "share"), [("", 0), ("a\r\nb\t", 0), ("a\0b\x01", 0.5), ("\ufffd", 1)]
)
def test_share_counts_what_cleaning_drops_but_newlines(text: str, share: float) -> None:
    assert share_of_no_text(text) == share


@pytest.mark.parametrize(
    ("text", "blank"), [("", True), (" \n\u3000\u200b\u2060\ufe0f", True), ("\u200b.", False)]
)
def test_blank_is_what_shows_nothing(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        pytest.param("ab", [0, 1, 2], id="letters"),
        pytest.param("ae\u0301\u0302b", [0, 1, 4, 5], id="combining marks"),
        pytest.param("\u1112\u1161\u11ab\u1112", [0, 3, 4], id="hangul letters"),
        pytest.param("👩\u200d🚀👩", [0, 3, 4], id="joined emoji"),
        pytest.param("a\u200db", [0, 3], id="joined letters"),
        pytest.param("👍🏽👍", [0, 2, 3], id="skin tone"),
        pytest.param("🇩🇪🇫🇷🇨", [0, 2, 4, 5], id="flags"),
        pytest.param("❤\ufe0f❤", [0, 2, 3], id="variation selector"),
        pytest.param("🏴\U000e0067\U000e007fx", [0, 3, 4], id="tags"),
    ],
)
def test_bounds_leave_visible_characters_whole(text: str, bounds: list[int]) -> None:
    assert [at for at in range(len(text) + 1) if is_safe_bound(text, at)] == bounds


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("ab cd", 3, "ab"),
        ("abe\u0301", 3, "ab"),
        ("\u0301" * 5, 3, "\u0301" * 3),
        ("🇩🇪🇫🇷", 3, "🇩🇪"),
    ],
)
def test_shortened_text_ends_with_a_whole_character(text: str, limit: int, short: str) -> None:
    assert shorten(text, limit) == short
