"""Labelled questions over a folder of documents."""

import json
from dataclasses import dataclass
from pathlib import Path

from kb.documents import is_document
from kb.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question with the documents that answer it; none: nothing in the set does."""

    text: str
    relevant: frozenset[str]
    holds: str = ""
    """Text that the part which answers contains; "" where nobody said."""
    kind: str = ""
    """What is reported apart, such as "cross-language"; "" for the ordinary ones."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Documents by key, and questions over them."""

    name: str
    documents: dict[str, bytes]
    questions: tuple[LabelledQuestion, ...]


def read_set(folder: Path) -> LabelledSet:
    """`folder` holds `questions.jsonl` and `documents/`, or names in its first line a folder.

    A line is `{"question", "relevant": [keys]}`, optionally with `holds` and `kind`; a line
    `{"documents": path}` names the folder of the documents, relative to the file.
    Raises InvalidInput naming the line that is wrong.
    """
    file = folder / "questions.jsonl"
    if not file.is_file():
        raise InvalidInput(str(folder), "has no questions.jsonl")
    root = folder / "documents"
    questions = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            if "documents" in value:
                root = (folder / value["documents"]).resolve()
                continue
            questions.append(
                LabelledQuestion(
                    value["question"],
                    frozenset(value["relevant"]),
                    value.get("holds", ""),
                    value.get("kind", ""),
                )
            )
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{file}:{number}", "is no labelled question") from error
    documents = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if is_document(path.name) and path.is_file()
    }
    if not documents:
        raise InvalidInput(str(root), "holds no documents")
    for question in questions:
        if missing := question.relevant - documents.keys():
            raise InvalidInput(f"{file}: {question.text}", f"names {sorted(missing)[0]}: not there")
    return LabelledSet(folder.name, documents, tuple(questions))
