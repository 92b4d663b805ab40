"""The index behind the domain's back: what the node itself holds."""

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

NAME = "kb-chunks"


@dataclass(frozen=True, slots=True)
class Index:
    """The stack's index in the node at `endpoint`."""

    endpoint: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The node's answer. Raises urllib.error.HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - the node of these tests
            self.endpoint + path, data, {"content-type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return json.load(answer)

    def chunks_of(self, key: str) -> int:
        """How many there are of the document, whatever their version."""
        return int(self.ask("POST", f"/{NAME}/_count", {"query": {"term": {"key": key}}})["count"])

    def count(self) -> int:
        return int(self.ask("GET", f"/{NAME}/_count")["count"])

    @contextmanager
    def with_chunk(self, chunk: Mapping[str, Any]) -> Iterator[None]:
        """One more, under an id that no other has."""
        self.ask("PUT", f"/{NAME}-1/_doc/extra?refresh=true", chunk)
        try:
            yield
        finally:
            query = {"query": {"ids": {"values": ["extra"]}}}
            self.ask("POST", f"/{NAME}-1/_delete_by_query?refresh=true", query)

    @contextmanager
    def without_alias(self) -> Iterator[None]:
        """There is an index, but not under the name that it is asked for by."""
        alias = {"index": f"{NAME}-1", "alias": NAME}
        self.ask("POST", "/_aliases", {"actions": [{"remove": alias}]})
        try:
            yield
        finally:
            self.ask("POST", "/_aliases", {"actions": [{"add": alias}]})

    @contextmanager
    def with_index(self, name: str, mapping: Mapping[str, Any]) -> Iterator[None]:
        """Another index under this alias."""
        body = {
            "settings": {"index": {"knn": True}},
            "aliases": {name: {}},
            "mappings": mapping,
        }
        self.ask("PUT", f"/{name}-1", body)
        try:
            yield
        finally:
            self.ask("DELETE", f"/{name}-1")
