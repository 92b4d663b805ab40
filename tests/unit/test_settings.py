"""What is wrong with an environment is said at once; the README's table comes from the models."""

import re
from pathlib import Path

import pytest
from kb.cli import run
from kb.commands.settings_table import BEGIN, END, markdown_table
from kb.errors import Misconfigured
from kb.grading import EMBEDDED, SPECIFIED
from kb.settings import (
    DocumentLimits,
    FromEnvironment,
    IngestSettings,
    LookupSettings,
    check_settings,
    read_settings,
    variables_of,
)

SHARED = {
    "CATALOG_TABLE": "c",
    "CONTENT_TABLE": "d",
    "EMBEDDER": "embedded",
    "VECTOR_INDEX": "embedded",
}
INGEST = SHARED | {"KNOWLEDGE_BUCKET": "b"}
LOOKUP = SHARED | {"SESSION_TABLE": "s", "INVOCATION_TABLE": "i"}


def faults(model: type[FromEnvironment], **environment: str) -> list[str]:
    with pytest.raises(Misconfigured) as wrong:
        read_settings(model, environment)
    return str(wrong.value).split("; ")


def test_every_missing_variable_is_named_at_once() -> None:
    assert faults(IngestSettings) == [
        "CATALOG_TABLE: is missing",
        "CONTENT_TABLE: is missing",
        "EMBEDDING_FUNCTION: is needed where EMBEDDER is function",
        "OPENSEARCH_ENDPOINT: is needed where VECTOR_INDEX is opensearch",
        "KNOWLEDGE_BUCKET: is missing",
    ]


def test_a_contradiction_is_named_beside_other_faults() -> None:
    wrong = {"CHUNK_SIZE": "500", "CHUNK_OVERLAP": "300", "ROW_BYTES": "x", "RETRY_DELAY": "0.5"}
    assert faults(IngestSettings, **INGEST | wrong) == [
        "CHUNK_OVERLAP: may be at most half of CHUNK_SIZE",
        "ROW_BYTES: Input should be a valid integer, unable to parse string as an integer",
        "RETRY_DELAY: Input should be a valid integer, unable to parse string as an integer",
    ]


@pytest.mark.parametrize(
    ("variables", "fault"),
    [
        ({"CHUNK_SIZE": "3000"}, "CHUNK_SIZE: may be at most CONTENT_LIMIT"),
        ({"CONTENT_LIMIT": "100001"}, "CONTENT_LIMIT: Input should be less than"),
        ({"EMBED_BATCH": "65"}, "EMBED_BATCH: Input should be less than or equal to 64"),
        ({"READ_TIMEOUT": "nan"}, "READ_TIMEOUT: Input should be"),
        ({"READ_TIMEOUT": "inf"}, "READ_TIMEOUT: Input should be"),
        ({"READ_TIMEOUT": "0"}, "READ_TIMEOUT: Input should be greater than 0"),
        ({"EMBEDDER": "other"}, "EMBEDDER: Input should be 'function' or 'embedded'"),
    ],
)
def test_a_wrong_value_of_ingest_is_named(variables: dict[str, str], fault: str) -> None:
    [told] = faults(IngestSettings, **INGEST | variables)
    assert told.startswith(fault)


@pytest.mark.parametrize(
    ("variables", "fault"),
    [
        (
            {"RETRIEVAL_REFERENCE_THRESHOLD": "0.9", "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD": "0.8"},
            "RETRIEVAL_REFERENCE_THRESHOLD: may be at most RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD",
        ),
        (
            {"RETRIEVAL_NORMALIZATION_HIGHLY_RELEVANT_THRESHOLD": "2"},
            "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD: Input should be less than or equal to 1",
        ),
        ({"LANGUAGE": "fr"}, "LANGUAGE: Input should be 'zh' or 'en'"),
        ({"ANSWER_TIMEOUT": "5"}, "ANSWER_TIMEOUT: must be at least "),
        ({"SESSION_TTL": "0"}, "SESSION_TTL: Input should be greater than or equal to 1"),
    ],
)
def test_a_wrong_value_of_lookup_is_named(variables: dict[str, str], fault: str) -> None:
    [told] = faults(LookupSettings, **LOOKUP | variables)
    assert told.startswith(fault)


def test_a_start_that_needs_several_models_names_the_faults_of_all_once() -> None:
    environment = {**INGEST, "CONNECT_TIMEOUT": "x", "CHUNK_SIZE": "1", "LANGUAGE": "fr"}
    with pytest.raises(Misconfigured) as wrong:
        check_settings(environment, IngestSettings, LookupSettings)
    names = [fault.partition(":")[0] for fault in str(wrong.value).split("; ")]
    assert names == ["CONNECT_TIMEOUT", "CHUNK_SIZE", "SESSION_TABLE", "INVOCATION_TABLE",
                     "LANGUAGE"]  # fmt: skip
    assert check_settings({**INGEST, **LOOKUP}, IngestSettings, LookupSettings) is None


def test_blank_values_count_as_absent_and_others_are_ignored() -> None:
    settings = read_settings(DocumentLimits, {"CHUNK_SIZE": " ", "PATH": "/bin", "CHUNK": "1"})
    assert settings == read_settings(DocumentLimits, {})


@pytest.mark.parametrize(("embedder", "profile"), [("embedded", EMBEDDED), ("function", SPECIFIED)])
def test_unset_thresholds_are_those_of_the_embedders_profile(
    embedder: str, profile: object
) -> None:
    environment = {**LOOKUP, "EMBEDDER": embedder, "EMBEDDING_FUNCTION": "f"}
    assert read_settings(LookupSettings, environment).profile == profile


def test_the_thresholds_own_name_wins_over_the_other_spelling() -> None:
    environment = {
        **LOOKUP,
        "RETRIEVAL_REFERENCE_THRESHOLD": "0.1",
        "RETRIEVAL_NORMALIZATION_REFERENCE_THRESHOLD": "0.2",
    }
    assert read_settings(LookupSettings, environment).reference_threshold == 0.1


def test_table_has_a_row_a_setting_with_default_unit_and_bounds() -> None:
    rows = markdown_table().splitlines()[2:]
    names = [row.split("`")[1] for row in rows]
    assert sorted(names) == sorted(
        {*variables_of(IngestSettings).values(), *variables_of(LookupSettings).values()}
    )
    assert "| `CHUNK_OVERLAP` | 100 | characters |" in "\n".join(rows)
    assert "| ≥ 200, ≤ 100000 | ingest |" in "\n".join(rows)
    assert "| `LANGUAGE` | zh |  | of hints and messages | `zh` or `en` | lookup |" in rows
    assert not [row for row in rows if re.search(r"PydanticUndefined|None|typing", row)]


def test_every_number_has_its_unit() -> None:
    rows = [row.split(" | ") for row in markdown_table().splitlines()[2:]]
    assert not [row[0] for row in rows if re.match(r"\d", row[1]) and not row[2]]


def test_a_file_is_checked_and_written_between_its_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "README.md"
    file.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nMore.\n", encoding="utf-8")
    assert run(["settings", "--check", str(file)]) == 4
    assert capsys.readouterr().out == (
        f"{file}: the table of settings is not up to date; kb settings --write {file}\n"
    )
    assert run(["settings", "--write", str(file)]) == 0
    assert run(["settings", "--check", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == (
        f"# Title\n\n{BEGIN}\n{markdown_table()}\n{END}\n\nMore.\n"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"no marks", "does not hold <!-- settings:begin -->"),
        (f"{END} {BEGIN}".encode(), "does not hold <!-- settings:begin -->"),
        (b"\xff", "cannot be read (it is not UTF-8)"),
        (None, "cannot be read (No such file or directory)"),
    ],
)
def test_a_file_without_marks_is_wrong_usage(
    text: bytes | None, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "README.md"
    if text is not None:
        file.write_bytes(text)
    assert run(["settings", "--check", str(file)]) == 2
    assert line in capsys.readouterr().err
