"""What only a real node can show: the index as created, what is refused, and word search."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kb.documents import Version
from kb.errors import KbError, Misconfigured, Refused
from kb.ports import IndexedChunk
from kb.stores.opensearch_index import OpenSearchIndex
from kb.stores.opensearch_mapping import mapping_for
from opensearchpy import OpenSearch, RequestError

VERSION = Version(1, "f")
HERE = (1.0, 0.0)


def chunk(key: str, ordinal: int = 0, domain: str = "default", text: str = "text") -> IndexedChunk:
    return IndexedChunk(key, VERSION, ordinal, 1, "", domain, text, HERE)


def index_for(client: OpenSearch, name: str, model: str = "m") -> OpenSearchIndex:
    return OpenSearchIndex(client, index=name, model=model, dimension=2)


def create(client: OpenSearch, index: str, mapping: dict[str, Any], *aliases: str) -> None:
    body = {
        "settings": {"index": {"knn": True}},
        "aliases": {alias: {} for alias in aliases},
        "mappings": mapping,
    }
    client.indices.create(index=index, body=body)


def test_index_is_created_with_this_mapping_behind_an_alias(client: OpenSearch, name: str) -> None:
    index_for(client, name).prepare()
    created = client.indices.get(index=name)
    (settings,) = [found.pop("settings")["index"] for found in created.values()]
    assert created == {f"{name}-1": {"aliases": {name: {}}, "mappings": mapping_for("m", 2)}}
    assert {key: settings[key] for key in ("knn", "number_of_shards", "refresh_interval")} == {
        "knn": "true",
        "number_of_shards": "1",
        "refresh_interval": "-1",
    }


def test_creating_twice_is_fine(client: OpenSearch, name: str) -> None:
    index_for(client, name).prepare()
    index_for(client, name).prepare()
    assert list(client.indices.get_alias(name=name)) == [f"{name}-1"]


def test_many_creators_at_once_make_one_index(client: OpenSearch, name: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: index_for(client, name).prepare(), range(8)))
    assert (done, list(client.indices.get_alias(name=name))) == ([None] * 8, [f"{name}-1"])


def test_of_two_models_creating_at_once_one_is_refused(client: OpenSearch, name: str) -> None:
    def prepare(model: str) -> KbError | None:
        try:
            index_for(client, name, model).prepare()
        except KbError as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(prepare, ("m", "another")))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Misconfigured", "NoneType"]


def with_dynamic_fields(mapping: dict[str, Any]) -> None:
    mapping["dynamic"] = "true"


def of_another_version(mapping: dict[str, Any]) -> None:
    mapping["_meta"]["mapping_version"] = 99


def of_no_known_model(mapping: dict[str, Any]) -> None:
    del mapping["_meta"]


def of_three_dimensions(mapping: dict[str, Any]) -> None:
    mapping["properties"]["vector"]["dimension"] = 3


def by_cosine(mapping: dict[str, Any]) -> None:
    mapping["properties"]["vector"]["method"]["space_type"] = "cosinesimil"


def without_vectors(mapping: dict[str, Any]) -> None:
    del mapping["properties"]["vector"]


def with_analyzed_domains(mapping: dict[str, Any]) -> None:
    mapping["properties"]["domain"] = {"type": "text"}


def with_text_in_words_of_latin(mapping: dict[str, Any]) -> None:
    mapping["properties"]["text"]["analyzer"] = "standard"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (with_dynamic_fields, "dynamic is 'true' and not 'strict'"),
        (of_another_version, "_meta.mapping_version is 99 and not 1"),
        (of_no_known_model, "the embedding model None, and this function embeds with m"),
        (of_three_dimensions, "properties.vector.dimension is 3 and not 2"),
        (by_cosine, "properties.vector.method.space_type is 'cosinesimil' and not 'l2'"),
        (without_vectors, "properties.vector.type is None and not 'knn_vector'"),
        (with_analyzed_domains, "properties.domain.type is 'text' and not 'keyword'"),
        (with_text_in_words_of_latin, "properties.text.analyzer is 'standard' and not 'cjk'"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_index_of_another_kind_is_refused(
    client: OpenSearch, name: str, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    mapping = mapping_for("m", 2)
    change(mapping)
    create(client, f"{name}-1", mapping, name)
    with pytest.raises(Misconfigured) as refused:
        index_for(client, name).prepare()
    assert told in str(refused.value)
    assert f"delete index {name}-1" in str(refused.value)


def test_index_of_another_model_is_refused_by_name(client: OpenSearch, name: str) -> None:
    index_for(client, name, "bge").prepare()
    with pytest.raises(Misconfigured, match="model bge, and this function embeds with m;"):
        index_for(client, name).prepare()


def test_graph_may_be_tuned(client: OpenSearch, name: str) -> None:
    mapping = mapping_for("m", 2)
    mapping["properties"]["vector"]["method"]["parameters"]["m"] = 32
    create(client, f"{name}-7", mapping, name)
    index = index_for(client, name)
    index.prepare()
    index.write([chunk("a")])
    index.refresh()
    assert [hit.key for hit in index.search(HERE, 10)] == ["a"]


def test_plain_index_of_that_name_is_refused(client: OpenSearch, name: str) -> None:
    create(client, name, mapping_for("m", 2))
    with pytest.raises(Misconfigured, match=f"{name} must be an alias of one OpenSearch index"):
        index_for(client, name).prepare()


def test_alias_of_two_indexes_is_refused(client: OpenSearch, name: str) -> None:
    index_for(client, name).prepare()
    client.indices.create(index=f"{name}-2", body={"aliases": {name: {}}})
    with pytest.raises(Misconfigured, match=f"stands for {name}-1, {name}-2: delete"):
        index_for(client, name).prepare()


def test_index_without_its_alias_is_refused(client: OpenSearch, name: str) -> None:
    client.indices.create(index=f"{name}-1")
    with pytest.raises(Misconfigured, match=f"no alias {name} leads to it: add the alias"):
        index_for(client, name).prepare()


def test_deleted_index_is_an_error_and_does_not_come_back_without_mapping(
    client: OpenSearch, name: str
) -> None:
    index = index_for(client, name)
    index.prepare()
    client.indices.delete(index=f"{name}-1")
    for call in (
        lambda: index.write([chunk("a")]),
        index.refresh,
        lambda: index.search(HERE, 10),
        lambda: index.remove_others("a", VERSION, 1),
    ):
        with pytest.raises(Misconfigured, match="check OPENSEARCH_ENDPOINT and OPENSEARCH_INDEX"):
            call()
    assert not client.indices.exists(index=f"{name}*", params={"allow_no_indices": "false"})


def test_field_that_the_mapping_does_not_know_is_not_taken(client: OpenSearch, name: str) -> None:
    index_for(client, name).prepare()
    with pytest.raises(RequestError) as refused:
        client.index(index=name, body={"key": "a", "colour": "red"})
    assert refused.value.error == "strict_dynamic_mapping_exception"


def test_bad_chunk_is_refused_and_its_document_can_be_removed(
    client: OpenSearch, name: str
) -> None:
    index = index_for(client, name)
    index.prepare()
    bad = chunk("b", ordinal=1, domain="d" * 40_000)
    index.write([chunk("a")])
    with pytest.raises(Refused, match=r"does not take this document: .*immense term"):
        index.write([chunk("b"), bad, chunk("b", ordinal=2)])
    index.remove_others("b", None, 1)
    assert [hit.key for hit in index.search(HERE, 10)] == ["a"]


def test_chunks_written_with_another_mapping_in_place_are_an_operators_matter(
    client: OpenSearch, name: str
) -> None:
    mapping = mapping_for("m", 2)
    del mapping["properties"]["section"]
    create(client, f"{name}-1", mapping, name)
    with pytest.raises(Misconfigured, match=r"introduction of \[section\] within"):
        index_for(client, name).write([chunk("a")])


def test_document_larger_than_one_request_is_written_whole(client: OpenSearch, name: str) -> None:
    index = index_for(client, name)
    index.prepare()
    chunks = [chunk("long", ordinal, text="知识库 " * 20_000) for ordinal in range(40)]
    index.write(chunks)
    index.refresh()
    assert [hit.ordinal for hit in index.search(HERE, 100)] == list(range(40))


@pytest.mark.parametrize("words", ["知识", "退款流程", "REFUND"])
def test_text_is_ready_for_word_search(client: OpenSearch, name: str, words: str) -> None:
    index = index_for(client, name)
    index.prepare()
    index.write([chunk("a", text="知识库：退款流程 refund"), chunk("b", text="别的内容 other")])
    index.refresh()
    query = {"match": {"text": {"query": words, "operator": "and"}}}
    found = client.search(index=name, body={"query": query})["hits"]["hits"]
    assert [hit["_source"]["key"] for hit in found] == ["a"]
