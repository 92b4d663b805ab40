"""Which of the indexes behind an alias a process asks: one it has checked, until that is gone.

The alias moves to another model's index in one step (opensearch_generations). A process that has
found its own goes on asking that by name, so that no question meets another model's vectors. A
write goes by the alias, and is an error where it landed in another model's index.
"""

from collections.abc import Callable, Iterable
from typing import Any

from opensearchpy import OpenSearch

from kb.errors import Misconfigured
from kb.stores.opensearch_mapping import SETTINGS, check, is_for, mapping_for, number_of
from kb.stores.opensearch_requests import Requests

GONE = "index_not_found_exception"


class Place:
    """`may_lag` is for lookups: where the alias has moved on to another model's index, the newest
    of this model before it is asked, which is as it was then."""

    def __init__(
        self,
        client: OpenSearch,
        requests: Requests,
        alias: str,
        model: str,
        dimension: int,
        may_lag: bool,
    ) -> None:
        self._client = client
        self._requests = requests
        self._alias = alias
        self._model = model
        self._dimension = dimension
        self._may_lag = may_lag
        self._found: str | None = None

    @property
    def name(self) -> str:
        """Of the index found; the alias, before `prepare`."""
        return self._found or self._alias

    def prepare(self) -> None:
        """Find the index, or create the first. Raises Misconfigured where it is another model's."""
        if not self._find():
            self._create()
            if not self._find():
                raise Misconfigured(
                    f"OpenSearch index {self._alias}-1 exists, but no alias {self._alias} leads to"
                    " it: add the alias, or delete the index"
                )

    def ask(self, doing: str, call: Callable[[], Any]) -> Any:
        """The answer, never None, of the index found or, if it is gone, of what took its place."""
        answer = self._requests.ask(doing, call, unless=GONE if self._found else "")
        if answer is None:
            self._find()
            answer = self._requests.ask(doing, call)
        return answer

    def check_written(self, names: Iterable[str | None]) -> None:
        """Raise Misconfigured where these indexes, written to, are another model's."""
        if self._found and any(name not in (None, self._found) for name in names):
            self._find()

    def _find(self) -> bool:
        """Whether there is any."""
        found = self._mappings(self._alias)
        if not found:
            return False
        if len(found) > 1 or self._alias in found:
            raise Misconfigured(
                f"{self._alias} must be an alias of one OpenSearch index, and stands for"
                f" {', '.join(sorted(found))}: delete what is not this system's, or set another"
                " OPENSEARCH_INDEX"
            )
        [(name, mapping)] = found.items()
        try:
            check(mapping, name, self._model, self._dimension)
        except Misconfigured:
            earlier = self._earlier(name) if self._may_lag else None
            if earlier is None:
                raise
            name = earlier
        self._found = name
        return True

    def _earlier(self, name: str) -> str | None:
        """The newest index of this model before the one of that name."""
        numbers = {
            number_of(other, self._alias): other
            for other, mapping in self._mappings(f"{self._alias}-*").items()
            if is_for(mapping, other, self._model, self._dimension)
        }
        before = [n for n in numbers if 0 < n < number_of(name, self._alias)]
        return numbers[max(before)] if before else None

    def _mappings(self, name: str) -> dict[str, Any]:
        """Index -> its mapping, for all that the name leads to; empty: nothing."""
        answer = self._requests.ask(
            "read the mapping of",
            lambda: self._client.indices.get_mapping(index=name),
            unless=GONE,
        )
        return {index: found["mappings"] for index, found in (answer or {}).items()}

    def _create(self) -> None:
        body = {
            "settings": SETTINGS,
            "aliases": {self._alias: {}},
            "mappings": mapping_for(self._model, self._dimension),
        }
        self._requests.ask(
            "create",
            lambda: self._client.indices.create(index=f"{self._alias}-1", body=body),
            unless="resource_already_exists_exception",  # another was faster; the check decides
        )
