"""Which keywords do not lead to one document: too short, shared, or part of others' keywords."""

from collections.abc import Iterator, Sequence

from kb.commands.document_check import CheckedDocument, Problem, Severity, place_of
from kb.documents import CatalogRow
from kb.folding import Query, fold
from kb.keywords import KeywordIndex

NAMED_MOST = 3
"""Other documents named in one message."""


def across(documents: Sequence[CheckedDocument]) -> dict[str, list[Problem]]:
    """What documents mean for each other, by path.

    A question that is a keyword should match one document: matched twice, it is never PRECISE.
    Each keyword is therefore asked as a question, with the rules of L0 itself.
    """
    rows = {str(one.file.path): one.row for one in documents if one.row}
    index = KeywordIndex((path, row.keywords, row.content_hash) for path, row in rows.items())
    twins: dict[str, list[str]] = {}
    for path, row in rows.items():
        twins.setdefault(row.content_hash, []).append(path)
    problems: dict[str, list[Problem]] = {}
    for one in documents:
        path = str(one.file.path)
        if one.row:
            found = problems.setdefault(path, [])
            found += _twins(path, twins[one.row.content_hash])
            for keyword in one.row.keywords:
                line, column = place_of(one.text, keyword, "keywords")
                for rule, message in _of_keyword(keyword, one.row, rows, index):
                    found.append(Problem(line, column, Severity.WARNING, rule, message))
    return problems


def _twins(path: str, same: Sequence[str]) -> Iterator[Problem]:
    if len(same) > 1:
        others = _named([other for other in same if other != path])
        message = f"its content is also that of {others}: it counts once, as {min(same)}"
        yield Problem(1, 1, Severity.NOTE, "twin", message)


def _of_keyword(
    keyword: str, row: CatalogRow, rows: dict[str, CatalogRow], index: KeywordIndex
) -> Iterator[tuple[str, str]]:
    folded = fold(keyword)
    if Query(folded).is_short:
        yield (
            "keyword-short",
            f"`{keyword}` is so short that every question that mentions it matches this document,"
            " whatever it asks: write a longer term",
        )
    matches = [
        match for match in index.match(folded) if rows[match.key].content_hash != row.content_hash
    ]
    if equal := [match.key for match in matches if match.whole]:
        yield (
            "keyword-collision",
            f"`{keyword}` is also a keyword of {_named(equal)}: asked for, none is PRECISE;"
            " leave it to one of them",
        )
    if inside := [m for m in matches if not m.whole and folded in m.keyword]:
        names = _named([f"{match.key} (`{match.keyword}`)" for match in inside])
        yield (
            "keyword-common",
            f"`{keyword}` stands in keywords of {names}: asked for, or they, none is PRECISE;"
            " write what only this document is about",
        )


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:NAMED_MOST])
    left = len(names) - NAMED_MOST
    return f"{shown} and {left} more" if left > 0 else shown
