"""What owners see: documents and their state, domains, sessions, the executor's prompt."""

import hashlib
from typing import Any

import pytest
from kb import views
from kb.documents import CatalogRow, Status, Version

from tests.api_client import ApiClient
from tests.conftest import System, markdown

DISK = markdown("磁盘", "[磁盘告警, Disk Full]", "# 处理\n\n清理旧日志。")


def listed(api: ApiClient, **parameters: str) -> list[Any]:
    """Every document of every page."""
    documents: list[Any] = []
    token = ""
    for _ in range(10):
        page = api.get("/documents", **parameters, **({"next": token} if token else {})).json
        assert page.keys() == {"documents", "next"}
        documents += page["documents"]
        if not (token := page["next"]):
            return documents
    raise AssertionError("the pages do not end")


def test_documents_are_listed_by_key_with_their_state(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    system.ingest("notes.md", "只有正文")
    system.ingest("b/bad.md", b"\xff\xfe\xff")
    system.ingest("b/empty.md", markdown("空", "[空文档]", "", lastUpdated="2026-01-02"))
    system.ingest("gone.md", DISK)
    system.delete("gone.md")
    system.ingest("gone.md")
    rows = api.get("/documents").json["documents"]
    assert [(row["key"], row["status"], row["domain"]) for row in rows] == [
        ("b/bad.md", "failed", "b"),
        ("b/empty.md", "empty", "b"),
        ("notes.md", "semantic_only", "default"),
        ("ops/disk.md", "indexed", "ops"),
    ]
    assert rows[1] == {
        "key": "b/empty.md",
        "title": "空",
        "keywords": ["空文档"],
        "summary": "一句话",
        "domain": "b",
        "status": "empty",
        "reason": "there is no text below the frontmatter",
        "updatedAt": "2026-01-02",
        "twin": None,
    }
    assert (rows[3]["keywords"], rows[3]["reason"]) == (["磁盘告警", "Disk Full"], None)
    assert rows[0]["reason"]
    assert rows[2]["reason"]


@pytest.mark.parametrize(
    ("parameters", "keys"),
    [
        ({"status": "indexed"}, ["a/1.md", "b/2.md"]),
        ({"status": "semantic_only"}, ["a/3.md"]),
        ({"status": "deleted"}, ["b/gone.md"]),
        ({"domain": "a"}, ["a/1.md", "a/3.md"]),
        ({"domain": "a", "status": "indexed"}, ["a/1.md"]),
        ({"domain": " a ", "status": " "}, ["a/1.md", "a/3.md"]),
        ({"domain": "A"}, []),
    ],
)
def test_documents_are_filtered(
    system: System, api: ApiClient, parameters: dict[str, str], keys: list[str]
) -> None:
    system.ingest("a/1.md", markdown("1", "[one]", "eins"))
    system.ingest("b/2.md", markdown("2", "[two]", "zwei"))
    system.ingest("a/3.md", "drei")
    system.ingest("b/gone.md", "vier")
    system.delete("b/gone.md")
    system.ingest("b/gone.md")
    assert [row["key"] for row in listed(api, **parameters)] == keys


def stored_rows(api: ApiClient, rows: list[CatalogRow]) -> None:
    for row in rows:
        api.parts.documents.commit(row, expected_revision=0)


def test_pages_lead_to_the_end_each_document_once(api: ApiClient) -> None:
    keys = sorted(f"a/文档 {n} #?&+%.md" for n in range(205))
    stored_rows(api, [CatalogRow(key, 1, Status.FAILED, 1, domain="a") for key in keys])
    sizes: list[int] = []
    token = ""
    for _ in range(3):
        page = api.get("/documents", **({"next": token} if token else {})).json
        sizes.append(len(page["documents"]))
        token = page["next"]
    assert (sizes, token) == ([100, 100, 5], None)
    assert [row["key"] for row in listed(api)] == keys
    assert [row["key"] for row in listed(api, domain="a", status="failed")] == keys


def test_page_that_is_full_and_the_last_has_no_next(api: ApiClient) -> None:
    stored_rows(
        api, [CatalogRow(f"{n:03}.md", 1, Status.FAILED, 1) for n in range(views.PAGE_ROWS)]
    )
    assert len(api.get("/documents").json["documents"]) == views.PAGE_ROWS
    assert api.get("/documents").json["next"] is None


def test_page_of_large_rows_stays_what_lambda_passes_on(api: ApiClient) -> None:
    large = tuple("词" * 250 + str(n) for n in range(80))
    rows = [CatalogRow(f"{n:03}.md", 1, Status.FAILED, 1, keywords=large) for n in range(120)]
    stored_rows(api, rows)
    first = api.get("/documents")
    assert len(first.text) < views.PAGE_CHARACTERS + 64 * 1024
    assert 1 < len(first.json["documents"]) < views.PAGE_ROWS
    assert [row["key"] for row in listed(api)] == [row.key for row in rows]


def test_listing_sees_a_change_within_the_refresh_interval(system: System, api: ApiClient) -> None:
    assert listed(api) == []
    system.ingest("ops/disk.md", DISK)
    assert listed(api) == []
    system.clock.advance(api.parts.settings.refresh_interval)
    assert [row["key"] for row in listed(api)] == ["ops/disk.md"]


def test_document_shows_what_is_in_it(system: System, api: ApiClient) -> None:
    key = "支付/退款 100% #1+?&.md"
    text = markdown(
        "退款",
        "[退款, 退款流程]",
        f"# 退款\n\n## 步骤\n\n{'甲' * 1900}\n\n## 错误\n\n乙",
        category="payment",
        sections="{steps: 步骤}",
        version="1.10",
        author="'007'",
        lastUpdated="2026-01-02",
        custom="[a, b]",
    )
    system.ingest(key, text)
    assert api.get("/document", key=key).json == {
        "key": key,
        "title": "退款",
        "keywords": ["退款", "退款流程"],
        "summary": "一句话",
        "domain": "payment",
        "status": "indexed",
        "reason": None,
        "updatedAt": "2026-01-02",
        "twin": None,
        "version": "1.10",
        "author": "007",
        "parts": 1,
        "sections": [
            {"title": "退款", "level": 1, "firstPart": 1, "lastPart": 1},
            {"title": "步骤", "level": 2, "firstPart": 1, "lastPart": 1},
            {"title": "错误", "level": 2, "firstPart": 1, "lastPart": 1},
        ],
        "sectionNames": {"steps": "步骤"},
        "metadata": {
            "title": "退款",
            "keywords": ["退款", "退款流程"],
            "summary": "一句话",
            "category": "payment",
            "sections": {"steps": "步骤"},
            "version": "1.10",
            "author": "007",
            "lastUpdated": "2026-01-02",
            "custom": ["a", "b"],
        },
        "keywordCollisions": [],
        "contentHash": hashlib.sha256(text.encode()).hexdigest(),
        "changedAt": "2027-01-15T08:00:00+00:00",
    }


def test_document_names_its_twin_and_who_else_has_its_keywords(
    system: System, api: ApiClient
) -> None:
    system.ingest("a/one.md", markdown("1", "[退款, ＲＥＦＵＮＤ, 独有]", "甲"))
    system.ingest("b/copy.md", markdown("1", "[退款, ＲＥＦＵＮＤ, 独有]", "甲"))
    system.ingest("c/two.md", markdown("2", "[refund, 退款流程]", "乙"))
    system.ingest("d/three.md", markdown("3", "[Refund, 退款]", "丙"))
    shown = {key: api.get("/document", key=key).json for key in ("a/one.md", "b/copy.md")}
    collisions = [
        {"keyword": "退款", "documents": ["d/three.md"]},
        {"keyword": "ＲＥＦＵＮＤ", "documents": ["c/two.md", "d/three.md"]},
    ]
    assert shown["a/one.md"]["twin"] == "b/copy.md"
    assert shown["b/copy.md"]["twin"] == "a/one.md"
    assert [each["keywordCollisions"] for each in shown.values()] == [collisions, collisions]
    assert [row["twin"] for row in listed(api)] == ["b/copy.md", "a/one.md", None, None]
    assert api.get("/document", key="c/two.md").json["keywordCollisions"] == [
        {"keyword": "refund", "documents": ["a/one.md", "d/three.md"]}
    ]


def test_document_that_failed_or_went_shows_its_state(system: System, api: ApiClient) -> None:
    system.ingest("bad.md", b"\xff\xfe\xff")
    system.ingest("ops/disk.md", DISK)
    system.ingest("ops/disk.md", b"\xff\xfe\xff")
    system.ingest("gone.md", DISK)
    system.delete("gone.md")
    system.ingest("gone.md")
    shown = {
        key: api.get("/document", key=key).json for key in ("bad.md", "ops/disk.md", "gone.md")
    }
    assert {
        key: (each["status"], each["parts"], len(each["sections"])) for key, each in shown.items()
    } == {"bad.md": ("failed", 0, 0), "ops/disk.md": ("failed", 1, 1), "gone.md": ("deleted", 0, 0)}
    assert api.ask("磁盘告警")["primary"]["content"] == "# 处理\n\n清理旧日志。"


@pytest.mark.parametrize("key", ["none.md", "OPS/disk.md", "ops/disk.md ", " "])
def test_unknown_document_is_404(system: System, api: ApiClient, key: str) -> None:
    system.ingest("ops/disk.md", DISK)
    assert api.get("/document", key=key).error == (404, "not_found", "no document has this key")


def test_document_of_very_many_sections_lists_the_first(system: System, api: ApiClient) -> None:
    body = "\n\n".join(f"# s{n}\n\ntext {n}" for n in range(views.LISTED_MOST + 50))
    system.ingest("long.md", markdown("long", "[long]", body))
    sections = api.get("/document", key="long.md").json["sections"]
    assert [section["title"] for section in sections] == [f"s{n}" for n in range(views.LISTED_MOST)]


def test_domains_count_what_can_be_answered_with(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    system.ingest("ops/notes.md", "没有标题")
    system.ingest("pay/1.md", markdown("退款", "[退款]", "甲", category="支付"))
    system.ingest("bad/1.md", b"\xff\xfe\xff")
    system.ingest("root.md", markdown("根", "[根]", "乙"))
    assert api.get("/domains").json == {
        "domains": [
            {"domain": "default", "documents": 1, "titles": ["根"]},
            {"domain": "ops", "documents": 2, "titles": ["磁盘", "ops/notes.md"]},
            {"domain": "支付", "documents": 1, "titles": ["退款"]},
        ]
    }


def test_domain_of_many_documents_names_some_and_counts_all(api: ApiClient) -> None:
    assert api.get("/domains").json == {"domains": []}
    for number in range(60):
        key, version = f"a/{number:03}.md", Version(1, "f")
        row = CatalogRow(key, 1, Status.INDEXED, 1, version, content_hash=key, domain="a")
        api.parts.catalog.learn([row])
    (domain,) = api.get("/domains").json["domains"]
    assert (domain["documents"], len(domain["titles"])) == (60, views.NAMED_MOST)


def test_session_shows_what_it_has_read_first_seen_first(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "甲" * 1900 + "\n\n" + "乙" * 1900))
    system.ingest("a/one.md", markdown("1", "[one one]", "eins"))
    for query, part in (("磁盘告警", 2), ("one one", 1), ("磁盘告警", 1)):
        system.clock.advance(1)
        api.ask(query, session_id="s1", part=part)
    assert api.get("/session", id="s1").json == {
        "sessionId": "s1",
        "retrievedDomains": ["ops", "a"],
        "documents": [
            {
                "source": "ops/disk.md",
                "domain": "ops",
                "partsRead": 2,
                "firstSeen": "2027-01-15T08:00:01+00:00",
            },
            {
                "source": "a/one.md",
                "domain": "a",
                "partsRead": 1,
                "firstSeen": "2027-01-15T08:00:02+00:00",
            },
        ],
    }
    assert api.delete("/session", id="s1").json == {"sessionId": "s1", "cleared": True}
    assert api.get("/session", id="s1").json == {
        "sessionId": "s1",
        "retrievedDomains": [],
        "documents": [],
    }
    assert api.ask("one one", session_id="s1")["primary"] is not None


@pytest.mark.parametrize(
    ("parameters", "setting", "beginning"),
    [
        ({}, "zh", "# 执行者检索守则"),
        ({}, "en", "# Rules of retrieval for executors"),
        ({"language": "en"}, "zh", "# Rules of retrieval for executors"),
        ({"language": "zh"}, "en", "# 执行者检索守则"),
        ({"language": " "}, "zh", "# 执行者检索守则"),
    ],
)
def test_executor_prompt_comes_in_the_language_asked_for(
    system: System, parameters: dict[str, str], setting: str, beginning: str
) -> None:
    system.overrides["LANGUAGE"] = setting
    reply = ApiClient(system.new_lookup()).get("/prompts/executor", **parameters)
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert reply.text.splitlines()[0] == beginning
