"""Every sentence that an agent reads in an answer, in both languages."""

from collections.abc import Sequence
from typing import Literal

from kb.grading import Level

Language = Literal["zh", "en"]

UNREAD_NAMED_MOST = 5
"""Sections named in one message; an answer without text stays short."""
NAME_LENGTH_MOST = 24
"""Characters of a name in a message."""

_HINTS: dict[Language, dict[Level, str]] = {
    "zh": {
        Level.PRECISE: "知识库中不存在比上述结果更精准的文档",
        Level.HIGHLY_RELEVANT: "当前结果已高度相关，继续检索不太可能找到更精准的文档",
        Level.REFERENCE: "当前结果为相关参考，如需更精准信息请明确缺少的具体维度",
    },
    "en": {
        Level.PRECISE: "The knowledge base holds no document more precise than this one",
        Level.HIGHLY_RELEVANT: "This is highly relevant; searching on is unlikely to find"
        " anything more precise",
        Level.REFERENCE: "This is a related reference; for something more precise, name the"
        " specific aspect that is missing",
    },
}
_SENTENCES: dict[Language, dict[str, str]] = {
    "zh": {
        "not_found": "知识库中没有与此问题相关的内容。换关键词重试不会有结果，请勿重复检索。",
        "read": "本会话已返回过该内容，不再重复。",
        "unread": "未读：{names}。",
        "all_read": "该文档已全部读完。",
        "parts": "第 {numbers} 部分",
        "more": "等",
        "no_section": "该文档没有名为“{name}”的章节。现有章节：{names}。",
        "no_part": "该文档没有第 {name} 部分，共 {parts} 部分。",
        "supplement_read": "补充内容本会话已返回过，不再重复。",
    },
    "en": {
        "not_found": "Nothing in the knowledge base answers this question. Other keywords will"
        " not change that: do not search again.",
        "read": "This session already has this text; it is not repeated.",
        "unread": " Not read yet: {names}.",
        "all_read": " The document is read whole.",
        "parts": "part {numbers}",
        "more": ", …",
        "no_section": 'The document has no section named "{name}". It has: {names}.',
        "no_part": "The document has no part {name}; it has {parts}.",
        "supplement_read": "The supplement was given in this session before; it is not repeated.",
    },
}


def hint(level: Level, language: Language) -> str:
    """Whether looking further is worth it."""
    return _HINTS[language][level]


def not_found(language: Language) -> str:
    return _SENTENCES[language]["not_found"]


def already_read(sections: Sequence[str], parts: Sequence[int], language: Language) -> str:
    """Says that the text was delivered before, and which sections and parts were not yet."""
    say = _SENTENCES[language]
    if not parts:
        return say["read"] + say["all_read"]
    numbers = say["parts"].format(numbers=_ranges(parts))
    named = _names(sections, language)
    return say["read"] + say["unread"].format(names=f"{numbers}（{named}）" if named else numbers)


def supplement_read(language: Language) -> str:
    """Says that only the second best text was delivered before."""
    return _SENTENCES[language]["supplement_read"]


def no_section(name: str, sections: Sequence[str], language: Language) -> str:
    """Says that the document has no such section, and which it has."""
    named = "、".join(map(_short, sections)) if language == "zh" else ", ".join(sections)
    return _SENTENCES[language]["no_section"].format(name=_short(name), names=named or "-")


def no_part(number: int, parts: int, language: Language) -> str:
    """Says that the document has fewer parts."""
    return _SENTENCES[language]["no_part"].format(name=number, parts=parts)


def _names(names: Sequence[str], language: Language) -> str:
    separator = "、" if language == "zh" else ", "
    more = _SENTENCES[language]["more"] if len(names) > UNREAD_NAMED_MOST else ""
    return separator.join(map(_short, names[:UNREAD_NAMED_MOST])) + more


def _short(name: str) -> str:
    return name if len(name) <= NAME_LENGTH_MOST else name[: NAME_LENGTH_MOST - 1] + "…"


def _ranges(numbers: Sequence[int]) -> str:
    """1-3, 5 for 1, 2, 3, 5; at most four ranges."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [f"{low}-{high}" if high > low else f"{low}" for low, high in ranges[:4]]
    return ", ".join(shown) + (", …" if len(ranges) > 4 else "")
