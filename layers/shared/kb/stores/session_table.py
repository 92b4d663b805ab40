"""What each session of each caller has read: one item a document, expiring with the session."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kb.errors import Unavailable
from kb.stores.dynamodb import Item, answering, from_item, to_item, write_all, write_if


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What a session has read of one document."""

    document: str
    domain: str
    parts: frozenset[str]
    """Digests of the delivered texts."""
    answers: frozenset[str]
    """Which request each of them was first delivered to, as `_answer_id` makes it."""
    content_hash: str
    """Of the document as it was when last delivered; "" where it was not known."""
    first_seen: int
    """Nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class SessionContents:
    """One session as read at one moment; it never changes."""

    documents: dict[str, ReadDocument]

    @property
    def domains(self) -> list[str]:
        """In first-seen order, each once."""
        seen = sorted(self.documents.values(), key=lambda read: read.first_seen)
        return list(dict.fromkeys(read.domain for read in seen))

    @property
    def digests(self) -> frozenset[str]:
        """Of all texts delivered, whichever document they came from."""
        return frozenset().union(*(read.parts for read in self.documents.values()))

    def delivered_to(self, request: str) -> frozenset[str]:
        """Digests of the texts that were first delivered to this request."""
        return frozenset(
            part
            for read in self.documents.values()
            for part in read.parts
            if _answer_id(part, request) in read.answers
        )


NOTHING_READ = SessionContents({})
ATTEMPTS = 4
"""Tries of a mark while other calls replace what is in its way; the second nearly always does."""
WHOLE = "whole"
"""Stands for a document's text where the caller names no part of it."""


class SessionMemory:
    """The sessions of one caller; methods raise Unavailable("session") when they get no answer.

    `now` returns nanoseconds since 1970; `ttl` is in seconds.
    """

    def __init__(
        self, client: Any, table: str, caller: str, *, ttl: float, now: Callable[[], int]
    ) -> None:
        self._client = client
        self._table = table
        self._caller = caller
        self._ttl = ttl
        self._now = now

    def read(self, session: str) -> SessionContents:
        """Everything the session remembers (consistent); expired items are not."""
        return SessionContents(
            {
                item["document"]: ReadDocument(
                    item["document"],
                    item["domain"],
                    frozenset(item["parts"]),
                    frozenset(item["answers"]),
                    item["content_hash"],
                    item["first_seen"],
                )
                for item in self._items(session)
                if self._is_live(item)
            }
        )

    def mark_retrieved(
        self,
        session: str,
        domain: str,
        document: str,
        part: str = WHOLE,
        content_hash: str = "",
        request: str = "",
    ) -> bool:
        """Remember that `part` (digest of its text) of the document is delivered to `request`.

        False where a call before this one delivered the same text: then this one must not. But
        the same `request` (if not blank) is told True again, be it another call with its id or
        this very one, sent twice because its reply got lost.
        """
        mark = _Mark(domain, document, part, content_hash, request)
        for _ in range(ATTEMPTS):
            there = self._add(session, mark)
            if there is None:
                return True
            if self._is_live(there):
                return bool(request) and mark.answer in there["answers"]
            if self._replace_expired(session, mark):
                return True
            # Another call has just replaced or cleared the expired item: look again.
        raise Unavailable("session", "an item keeps changing")

    def is_doc_retrieved(self, session: str, document: str) -> bool:
        """Whether any text of the document was delivered in the session."""
        return document in self.read(session).documents

    is_already_retrieved = is_doc_retrieved

    def is_domain_retrieved(self, session: str, domain: str) -> bool:
        """Whether any document of the domain was delivered in the session."""
        return domain in self.read(session).domains

    def retrieved_domains(self, session: str) -> list[str]:
        """The domains the session has read from, in first-seen order."""
        return self.read(session).domains

    def clear_session(self, session: str) -> None:
        """Forget the session."""
        with answering("session"):
            write_all(
                self._client,
                self._table,
                [
                    {
                        "DeleteRequest": {
                            "Key": to_item({"session": item["session"], "item": item["item"]})
                        }
                    }
                    for item in self._items(session)
                ],
            )

    def _items(self, session: str) -> list[Item]:
        items: list[Item] = []
        with answering("session"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="#session = :session",
                ExpressionAttributeNames={"#session": "session"},
                ExpressionAttributeValues=to_item({":session": self._id(session)}),
            )
            for page in pages:
                items += map(from_item, page["Items"])
        return items

    def _add(self, session: str, mark: "_Mark") -> Item | None:
        """None where the text was added, else the item that holds it already or is expired."""
        with answering("session"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=to_item(self._key(session, mark.document)),
                    UpdateExpression="SET #document = :document, #domain = :domain,"
                    " content_hash = :hash, expires_at = :expiry,"
                    " first_seen = if_not_exists(first_seen, :seen)"
                    " ADD parts :parts, answers :answers",
                    ConditionExpression="attribute_not_exists(#session)"
                    " OR (expires_at > :now AND NOT contains(parts, :part))",
                    ExpressionAttributeNames={
                        "#document": "document",
                        "#domain": "domain",
                        "#session": "session",
                    },
                    ExpressionAttributeValues=to_item(
                        {
                            ":document": mark.document,
                            ":domain": mark.domain,
                            ":hash": mark.content_hash,
                            ":expiry": self._expiry(),
                            ":seen": self._now(),
                            ":parts": {mark.part},
                            ":answers": {mark.answer},
                            ":part": mark.part,
                            ":now": self._seconds(),
                        }
                    ),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as error:
                return from_item(error.response["Item"])
        return None

    def _replace_expired(self, session: str, mark: "_Mark") -> bool:
        """DynamoDB deletes expired items late, so one may still be in the way."""
        item = self._key(session, mark.document) | {
            "document": mark.document,
            "domain": mark.domain,
            "parts": {mark.part},
            "answers": {mark.answer},
            "content_hash": mark.content_hash,
            "first_seen": self._now(),
            "expires_at": self._expiry(),
        }
        return write_if(
            "session",
            self._client.put_item,
            TableName=self._table,
            Item=to_item(item),
            ConditionExpression="expires_at <= :now",
            ExpressionAttributeValues=to_item({":now": self._seconds()}),
        )

    def _is_live(self, item: Item) -> bool:
        return bool(item["expires_at"] > self._seconds())

    def _key(self, session: str, document: str) -> dict[str, Any]:
        return {"session": self._id(session), "item": "document#" + _digest(document)}

    def _id(self, session: str) -> str:
        """Caller and session hashed together, so that no id of one caller can name another's."""
        return _digest(json.dumps([self._caller, session]))

    def _seconds(self) -> int:
        return self._now() // 1_000_000_000

    def _expiry(self) -> int:
        return self._seconds() + int(self._ttl)


@dataclass(frozen=True, slots=True)
class _Mark:
    """One text on its way to a session."""

    domain: str
    document: str
    part: str
    content_hash: str
    request: str

    @property
    def answer(self) -> str:
        return _answer_id(self.part, self.request)


def _answer_id(part: str, request: str) -> str:
    """A text and the request it was delivered to, short since a session may hold thousands."""
    return _digest(json.dumps([part, request]))[:16]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
