"""What each session of each caller has read: one item a document, expiring with the session."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kb.stores.dynamodb import (
    Item,
    answering,
    from_item,
    to_item,
    write_all,
    write_if,
)


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What a session has read of one document."""

    document: str
    domain: str
    parts: frozenset[str]
    """Digests of the delivered texts."""
    content_hash: str
    """Of the document as it was when last delivered."""
    first_seen: int
    """Nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class SessionContents:
    """One session as read at one moment; it never changes."""

    documents: dict[str, ReadDocument]
    requests: dict[str, frozenset[str]]
    """request id -> digests of the texts its first answer delivered."""

    @property
    def domains(self) -> list[str]:
        """In first-seen order, each once."""
        seen = sorted(self.documents.values(), key=lambda read: read.first_seen)
        return list(dict.fromkeys(read.domain for read in seen))

    @property
    def digests(self) -> frozenset[str]:
        """Of all texts delivered, whichever document they came from."""
        return frozenset().union(*(read.parts for read in self.documents.values()))


NOTHING_READ = SessionContents({}, {})
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
        documents: dict[str, ReadDocument] = {}
        requests: dict[str, frozenset[str]] = {}
        for item in self._items(session):
            if item["expires_at"] <= self._seconds():
                continue
            if "request" in item:
                requests[item["request"]] = frozenset(item["parts"])
            else:
                documents[item["document"]] = ReadDocument(
                    item["document"],
                    item["domain"],
                    frozenset(item["parts"]),
                    item["content_hash"],
                    item["first_seen"],
                )
        return SessionContents(documents, requests)

    def mark_retrieved(
        self, session: str, domain: str, document: str, part: str = WHOLE, content_hash: str = ""
    ) -> bool:
        """Remember that `part` (digest of its text) of the document was delivered.

        False where a call before this one delivered the same text: then this one must not.
        """
        while True:
            if self._add(session, domain, document, part, content_hash):
                return True
            if self._replace_expired(session, domain, document, part, content_hash):
                return True
            # Either the text was delivered, or another call has just replaced an expired item.
            read = self.read(session).documents.get(document)
            if read and part in read.parts:
                return False

    def remember_request(self, session: str, request: str, parts: frozenset[str]) -> None:
        """Remember what the answer to this request id delivered, so that a retry gets it again."""
        if not parts:
            return
        item = {
            "session": self._id(session),
            "item": "request#" + _digest(request),
            "request": request,
            "parts": set(parts),
            "expires_at": self._expiry(),
        }
        with answering("session"):
            self._client.put_item(TableName=self._table, Item=to_item(item))

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

    def _add(self, session: str, domain: str, document: str, part: str, content_hash: str) -> bool:
        return write_if(
            "session",
            self._client.update_item,
            TableName=self._table,
            Key=to_item(self._key(session, document)),
            UpdateExpression="SET #document = :document, #domain = :domain,"
            " content_hash = :hash, expires_at = :expiry,"
            " first_seen = if_not_exists(first_seen, :seen) ADD parts :parts",
            ConditionExpression="attribute_not_exists(#session)"
            " OR (expires_at > :now AND NOT contains(parts, :part))",
            ExpressionAttributeNames={
                "#document": "document",
                "#domain": "domain",
                "#session": "session",
            },
            ExpressionAttributeValues=to_item(
                {
                    ":document": document,
                    ":domain": domain,
                    ":hash": content_hash,
                    ":expiry": self._expiry(),
                    ":seen": self._now(),
                    ":parts": {part},
                    ":part": part,
                    ":now": self._seconds(),
                }
            ),
        )

    def _replace_expired(
        self, session: str, domain: str, document: str, part: str, content_hash: str
    ) -> bool:
        """DynamoDB deletes expired items late, so one may still be in the way."""
        item = self._key(session, document) | {
            "document": document,
            "domain": domain,
            "parts": {part},
            "content_hash": content_hash,
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

    def _key(self, session: str, document: str) -> dict[str, Any]:
        return {"session": self._id(session), "item": "document#" + _digest(document)}

    def _id(self, session: str) -> str:
        """Caller and session hashed together, so that no id of one caller can name another's."""
        return _digest(json.dumps([self._caller, session]))

    def _seconds(self) -> int:
        return self._now() // 1_000_000_000

    def _expiry(self) -> int:
        return self._seconds() + int(self._ttl)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
