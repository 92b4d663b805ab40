"""The numbered indexes behind one alias: the one in use, the one being made, those before.

`{alias}` leads to the index in use, and `{alias}-next`, while there is one, to the one being
made. The alias moves in one step; indexes are then removed when nobody asks them any more.
"""

from dataclasses import dataclass
from typing import Any

from kb.errors import Misconfigured
from kb.stores.opensearch_index import OpenSearchIndex
from kb.stores.opensearch_mapping import SETTINGS, is_for, mapping_for, number_of
from kb.stores.opensearch_place import GONE
from kb.stores.opensearch_requests import Requests


@dataclass(frozen=True, slots=True)
class Generation:
    """One of the indexes."""

    name: str
    model: str
    is_fit: bool
    """Whether it has the mapping, dimension and model of now."""


class Generations:
    """Of the alias that `index` is asked by, for its model; methods raise as its own do."""

    def __init__(self, index: OpenSearchIndex, patience: float) -> None:
        self._index = index
        self._client = index.client
        self._alias = index.index
        self._next = f"{index.index}-next"
        self._requests = Requests(index.index, patience)

    def current(self) -> Generation | None:
        """The one in use; None where nothing was ever indexed."""
        found = self._behind(self._alias)
        if len(found) > 1:
            raise Misconfigured(
                f"{self._alias} must be an alias of one OpenSearch index, and stands for"
                f" {', '.join(one.name for one in found)}: delete what is not this system's"
            )
        return found[0] if found else None

    def earlier(self, current: Generation | None = None) -> list[Generation]:
        """Those before the one in use, the newest first."""
        current = current or self.current()
        mine = number_of(current.name, self._alias) if current else 0
        found = [
            one
            for one in self._behind(f"{self._alias}-*")
            if 0 < number_of(one.name, self._alias) < mine
        ]
        return sorted(found, key=lambda one: -number_of(one.name, self._alias))

    def next(self) -> OpenSearchIndex:
        """The one being made, as it was left, or a new one."""
        left = self._behind(self._next)
        if not left or not left[0].is_fit:
            for abandoned in left:
                self.remove(abandoned)
            numbers = [number_of(one.name, self._alias) for one in self._behind(f"{self._alias}-*")]
            self._create(f"{self._alias}-{max(numbers, default=0) + 1}")
        return self.at(self._next)

    def in_use(self) -> OpenSearchIndex:
        """Whatever the alias leads to."""
        return self.at(self._alias)

    def at(self, name: str) -> OpenSearchIndex:
        """The index of that name or alias, for reading whatever its model is."""
        index = self._index
        return OpenSearchIndex(
            self._client,
            index=name,
            model=index.model,
            dimension=index.dimension,
            patience=self._requests.patience,
        )

    def switch(self, current: Generation) -> str:
        """Make the alias lead to the one being made, which then is one no more, in one step.

        Its name.
        """
        [made] = self._behind(self._next)
        actions = [
            {"remove": {"index": current.name, "alias": self._alias}},
            {"remove": {"index": made.name, "alias": self._next}},
            {"add": {"index": made.name, "alias": self._alias}},
        ]
        self._requests.ask(
            "move the alias",
            lambda: self._client.indices.update_aliases(body={"actions": actions}),
        )
        return made.name

    def remove(self, generation: Generation) -> None:
        self._requests.ask(
            "delete",
            lambda: self._client.indices.delete(index=generation.name),
            unless=GONE,
        )

    def _create(self, name: str) -> None:
        index = self._index
        body = {
            "settings": SETTINGS,
            "aliases": {self._next: {}},
            "mappings": mapping_for(index.model, index.dimension),
        }
        self._requests.ask(
            "create",
            lambda: self._client.indices.create(index=name, body=body),
            unless="resource_already_exists_exception",  # another was faster, and makes it too
        )

    def _behind(self, name: str) -> list[Generation]:
        answer: dict[str, Any] | None = self._requests.ask(
            "read the mapping of",
            lambda: self._client.indices.get_mapping(index=name),
            unless=GONE,
        )
        return [
            Generation(
                index,
                str(found["mappings"].get("_meta", {}).get("embedding_model")),
                is_for(found["mappings"], index, self._index.model, self._index.dimension),
            )
            for index, found in sorted((answer or {}).items())
        ]
