"""What happens to documents in the bucket of the deployed stack, seen through its API."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import markdown
from tests.deploy.stack import Stack, until

KEYS = [
    "names/C++ 指南 100%.md",
    "names/a+b c&d=é?#;,.MD",
    "names/%2B%20already encoded.md",
    "names/深/层/🙂 e\u0301.markdown",
    "names/quote'\"<>|\\.md",
    "names/:!@$(1)*~^`{}[].md",
]


def test_a_document_lives_through_creation_update_and_deletion(stack: Stack) -> None:
    key = "life/refund.md"
    stack.put(key, markdown("Refund", "[LIFE-1]", "Refunds take three days."))
    stack.until_indexed(key)
    created = stack.ask("LIFE-1").body
    by_meaning = stack.ask("Refunds take three days").body

    stack.put(key, markdown("Refund", "[LIFE-2]", "Refunds now take a fortnight."))
    updated = until(lambda: stack.ask("LIFE-2").body, lambda answer: answer["primary"])
    old_keyword = stack.ask("LIFE-1", domain="life").body

    stack.delete(key)
    stack.until_gone(key)
    deleted = stack.ask("LIFE-2", domain="life").body

    assert created["primary"]["content"] == "Refunds take three days."
    assert (created["relevanceLevel"], created["degraded"]) == ("PRECISE", [])
    assert by_meaning["supplement"]["source"] == key
    assert by_meaning["relevanceLevel"] in ("HIGHLY_RELEVANT", "REFERENCE")
    assert updated["primary"]["content"] == "Refunds now take a fortnight."
    assert old_keyword["primary"] is None
    assert (deleted["found"], deleted["primary"], deleted["supplement"]) == (False, None, None)
    assert key not in stack.documents("life")
    until(lambda: stack.index.chunks_of(key), lambda count: count == 0)


def test_a_renamed_document_is_found_under_its_new_key_alone(stack: Stack) -> None:
    old, new = "renamed/old name.md", "renamed/新 name.md"
    stack.put(old, markdown("Renamed", "[RENAMED-1]", "Text that moves."))
    stack.until_indexed(old)
    stack.rename(old, new)
    stack.until_indexed(new)
    stack.until_gone(old)
    answer = stack.ask("RENAMED-1").body
    assert (answer["relevanceLevel"], answer["primary"]["source"]) == ("PRECISE", new)
    assert stack.documents("renamed").keys() == {new}
    until(
        lambda: (stack.index.chunks_of(old), stack.index.chunks_of(new)),
        lambda seen: seen == (0, 1),
    )


def test_a_key_is_its_documents_name_byte_for_byte(stack: Stack) -> None:
    for number, key in enumerate(KEYS):
        stack.put(key, markdown(f"Name {number}", f"[NAME-{number}]", f"Text of {number}."))
    stack.until_indexed(*KEYS)
    sources = [stack.ask(f"NAME-{n}").body["primary"]["source"] for n in range(len(KEYS))]
    titles = [stack.document(key).body["title"] for key in KEYS]
    assert sources == KEYS
    assert titles == [f"Name {number}" for number in range(len(KEYS))]
    stack.delete(KEYS[0])
    stack.until_gone(KEYS[0])
    assert stack.documents("names").keys() == set(KEYS[1:])


@pytest.mark.parametrize(
    ("name", "data", "status", "reason"),
    [
        ("no-text.md", b"\xff\xfe\x00", "failed", "UTF-16"),
        ("bad-frontmatter.md", b"---\ntitle: [\n---\n\nText.\n", "semantic_only", "line"),
    ],
    ids=["no text", "bad frontmatter"],
)
def test_a_writer_reads_what_became_of_a_bad_document(
    stack: Stack, name: str, data: bytes, status: str, reason: str
) -> None:
    key = f"bad/{name}"
    stack.put(key, data)
    row = until(lambda: stack.documents("bad"), lambda seen: key in seen)[key]
    assert row["status"] == status
    assert reason in row["reason"]


def test_two_hundred_documents_at_once_are_all_indexed_and_none_twice(
    stack: Stack,
) -> None:
    keys = [f"many/document {number:03}.md" for number in range(200)]

    def put(number: int) -> None:
        body = f"The answer of number {number} is {number * 7919}."
        stack.put(keys[number], markdown(f"Document {number}", f"[MANY-{number:03}]", body))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(put, range(200)))
    stack.until_indexed(*keys)
    sources = [stack.ask(f"MANY-{n:03}").body["primary"]["source"] for n in range(0, 200, 20)]
    assert sources == keys[::20]
    assert stack.documents("many").keys() == set(keys)
    assert [stack.index.chunks_of(key) for key in keys] == [1] * 200
