"""Every sentence that an agent reads in an answer, in both languages."""

from collections.abc import Sequence
from typing import Literal

from kb.grading import Level

Language = Literal["zh", "en"]

REPEAT_LENGTH_MOST = 100
"""Characters of the message of an answer without text, which is to cost under 400 in all."""
RANGES_MOST = 4
"""Ranges of parts in one message."""
NAME_LENGTH_MOST = 24
"""Characters of a name in a message that only informs."""
SECTIONS_NAMED_MOST = 50
"""Sections named to an agent that asked for one that there is not."""

_HINTS: dict[Language, dict[Level, str]] = {
    "zh": {
        Level.PRECISE: "知识库中不存在比上述结果更精准的文档",
        Level.HIGHLY_RELEVANT: "当前结果已高度相关，继续检索不太可能找到更精准的文档",
        Level.REFERENCE: "当前结果为相关参考，如需更精准信息请明确缺少的具体维度",
    },
    "en": {
        Level.PRECISE: "Nothing in the knowledge base is more precise",
        Level.HIGHLY_RELEVANT: "Highly relevant; a further search is unlikely to find better",
        Level.REFERENCE: "A related reference; for more, name the aspect that is missing",
    },
}
_SENTENCES: dict[Language, dict[str, str]] = {
    "zh": {
        "not_found": "知识库中没有与此问题相关的内容。换关键词重试不会有结果，请勿重复检索。",
        "not_found_in_domain": "领域“{domain}”中没有与此问题相关的内容（其他领域未检索）。"
        "换关键词重试不会有结果，请勿重复检索。",
        "read": "本会话已返回过该内容，不再重复。",
        "unread": "未读：第 {numbers} 部分{names}。",
        "names": "（{names}）",
        "between": "、",
        "more": "等",
        "all_read": "该文档已全部读完。",
        "no_section": "该文档没有名为“{name}”的章节。现有章节：{names}。",
        "no_sections": "该文档没有名为“{name}”的章节，也没有其他章节。",
        "no_part": "该文档没有第 {number} 部分，共 {parts} 部分。",
        "supplement_read": "补充内容本会话已返回过，不再重复。",
    },
    "en": {
        "not_found": "Nothing in the knowledge base answers this question. Other keywords will"
        " not change that: do not search again.",
        "not_found_in_domain": 'Nothing in the domain "{domain}" answers this question (other'
        " domains were not searched). Other keywords will not change that: do not search again.",
        "read": "Already given in this session; not repeated.",
        "unread": " Not read yet: part {numbers}{names}.",
        "names": " ({names})",
        "between": ", ",
        "more": ", …",
        "all_read": " The document is read whole.",
        "no_section": 'The document has no section named "{name}". It has: {names}.',
        "no_sections": 'The document has no section named "{name}", nor any other.',
        "no_part": "The document has no part {number}; it has {parts}.",
        "supplement_read": "The supplement was given in this session before; it is not repeated.",
    },
}


def hint(level: Level, language: Language) -> str:
    """Whether looking further is worth it."""
    return _HINTS[language][level]


def not_found(domain: str | None, language: Language) -> str:
    """Says that there is nothing, as far as was searched, and not to rephrase."""
    if domain is None:
        return _SENTENCES[language]["not_found"]
    return _SENTENCES[language]["not_found_in_domain"].format(domain=_short(domain))


def already_read(sections: Sequence[str], parts: Sequence[int], language: Language) -> str:
    """Says that the text was delivered before, and which parts and sections were not yet.

    As many of the sections as the message has room for.
    """
    say = _SENTENCES[language]
    if not parts:
        return say["read"] + say["all_read"]
    message = _unread((), parts, "", language)
    for count in range(1, len(sections) + 1):
        more = say["more"] if count < len(sections) else ""
        longer = _unread(sections[:count], parts, more, language)
        if len(longer) > REPEAT_LENGTH_MOST:
            break
        message = longer
    return message


def supplement_read(language: Language) -> str:
    """Says that only the second best text was delivered before."""
    return _SENTENCES[language]["supplement_read"]


def no_section(name: str, sections: Sequence[str], language: Language) -> str:
    """Says that the document has no such section, and which it has, spelled as to be asked for."""
    say = _SENTENCES[language]
    if not sections:
        return say["no_sections"].format(name=_short(name))
    names = say["between"].join(sections[:SECTIONS_NAMED_MOST])
    more = say["more"] if len(sections) > SECTIONS_NAMED_MOST else ""
    return say["no_section"].format(name=_short(name), names=names + more)


def no_part(number: int, parts: int, language: Language) -> str:
    """Says that the document has fewer parts."""
    return _SENTENCES[language]["no_part"].format(number=number, parts=parts)


def _unread(names: Sequence[str], parts: Sequence[int], more: str, language: Language) -> str:
    say = _SENTENCES[language]
    listed = say["between"].join(map(_short, names)) + more
    named = say["names"].format(names=listed) if names else ""
    return say["read"] + say["unread"].format(numbers=_ranges(parts), names=named)


def _short(name: str) -> str:
    return name if len(name) <= NAME_LENGTH_MOST else name[: NAME_LENGTH_MOST - 1] + "…"


def _ranges(numbers: Sequence[int]) -> str:
    """1-3, 5 for 1, 2, 3, 5."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [f"{low}-{high}" if high > low else f"{low}" for low, high in ranges[:RANGES_MOST]]
    return ", ".join(shown) + (", …" if len(ranges) > RANGES_MOST else "")
