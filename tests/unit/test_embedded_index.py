"""The embedded index against a plain list of chunks, whatever is written and removed when."""

from hypothesis import given
from hypothesis import strategies as st
from kb.documents import Version
from kb.local.embedded_index import EmbeddedIndex
from kb.ports import IndexedChunk

KEYS = ("a", "b", "ab")
versions = st.builds(Version, st.integers(1, 3), st.sampled_from(("f", "g")))
chunks = st.builds(
    IndexedChunk,
    key=st.sampled_from(KEYS),
    version=versions,
    ordinal=st.integers(0, 40),
    part=st.just(1),
    section=st.just(""),
    domain=st.sampled_from(("d", "e")),
    text=st.just("text"),
    vector=st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (-1.0, 0.0)]),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(chunks, max_size=60)),
        st.tuples(
            st.just("remove_others"),
            st.sampled_from(KEYS),
            st.none() | versions,
            st.integers(0, 4),
        ),
        st.tuples(st.just("refresh")),
    ),
    max_size=12,
)


@given(
    steps,
    st.integers(1, 130),
    st.sampled_from((None, "d", "e")),
    st.sets(st.sampled_from(KEYS), max_size=2),
)
def test_search_is_that_of_a_plain_list(
    steps: list[tuple[object, ...]], k: int, domain: str | None, without: set[str]
) -> None:
    index = EmbeddedIndex(model="m", dimension=2)
    held: dict[tuple[str, Version, int], IndexedChunk] = {}
    for name, *arguments in [*steps, ("refresh",)]:
        getattr(index, str(name))(*arguments)
        match name, arguments:
            case "write", [written]:
                held |= {(chunk.key, chunk.version, chunk.ordinal): chunk for chunk in written}
            case "remove_others", [key, kept, through]:
                held = {
                    at: chunk
                    for at, chunk in held.items()
                    if chunk.key != key or chunk.version == kept or chunk.version.revision > through
                }
    question = (1.0, 0.0)
    expected = sorted(
        (
            -1 / (1 + (chunk.vector[0] - 1) ** 2 + chunk.vector[1] ** 2),
            chunk.key,
            chunk.ordinal,
            chunk.version.revision,
            chunk.version.fingerprint,
        )
        for chunk in held.values()
        if domain in (None, chunk.domain) and chunk.key not in without
    )
    hits = index.search(question, k, domain, without)
    found = [
        (-hit.score, hit.key, hit.ordinal, hit.version.revision, hit.version.fingerprint)
        for hit in hits
    ]
    assert [(key, *rest) for _, key, *rest in found] == [
        (key, *rest) for _, key, *rest in expected[:k]
    ]
    assert all(abs(a[0] - b[0]) < 1e-6 for a, b in zip(found, expected, strict=False))


def test_written_chunks_are_not_found_before_refresh() -> None:
    index = EmbeddedIndex(model="m", dimension=2)
    index.write([IndexedChunk("a", Version(1, "f"), 0, 1, "", "d", "text", (1.0, 0.0))])
    assert index.search((1.0, 0.0), 10) == []
