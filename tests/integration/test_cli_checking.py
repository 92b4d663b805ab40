"""kb check against ingest itself: the same status, the same words."""

from pathlib import Path

import pytest
from kb.commands.document_check import check_document
from kb.commands.markdown_files import markdown_below, markdown_file
from kb.settings import DocumentLimits, read_settings

from tests.conftest import System, markdown

DOCUMENTS = Path(__file__).parents[1] / "documents"


def test_check_says_what_ingest_says_of_every_kind_of_document(system: System) -> None:
    limits = read_settings(DocumentLimits, system.environment)
    files = list(markdown_below(DOCUMENTS))
    checked = {file.key: check_document(file, limits) for file in files}
    ingested = {file.key: system.ingest(file.key, file.path.read_bytes()) for file in files}
    assert {key: (one.status, one.reason) for key, one in checked.items()} == {
        key: (outcome.status, outcome.reason) for key, outcome in ingested.items()
    }
    assert len(files) >= 40


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("DOCUMENT_BYTES", "100"),
        ("CHUNKS_PER_DOCUMENT", "1"),
        ("FRONTMATTER_LIMIT", "20"),
        ("KEYWORD_LENGTH", "5"),
        ("ROW_BYTES", "4096"),
    ],
)
def test_check_says_what_ingest_says_of_each_limit(
    limit: str, value: str, system: System, tmp_path: Path
) -> None:
    system.overrides[limit] = value
    path = tmp_path / "long.md"
    body = "\n\n".join(f"# Section {number}\n\n{'text ' * 100}" for number in range(9))
    keywords = ", ".join(f"keyword {number}" for number in range(200))
    path.write_text(markdown("Long", f"[k, {keywords}]", body))
    checked = check_document(
        markdown_file(path, "long.md"), read_settings(DocumentLimits, system.environment)
    )
    outcome = system.ingest("long.md", path.read_bytes())
    assert (checked.status, checked.reason) == (outcome.status, outcome.reason)
    assert checked.reason
