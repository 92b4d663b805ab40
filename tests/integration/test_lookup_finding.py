"""Which document answers, and at which level: L0 and L1 together, domains, copies, changes."""

import json
from typing import Any

import pytest
from kb.documents import Status
from kb.errors import Unavailable

from tests.api_client import ApiClient
from tests.conftest import System, markdown
from tests.wire import Wire

BODY = "alpha beta gamma delta"


def brief(answer: dict[str, Any]) -> tuple[Any, ...]:
    """Level, and the sources of primary and supplement."""
    return (
        answer["relevanceLevel"],
        (answer["primary"] or {}).get("source"),
        (answer["supplement"] or {}).get("source"),
    )


def details_of(api: ApiClient) -> dict[str, Any]:
    (row,) = api.parts.log.read_all()
    details: dict[str, Any] = json.loads(row.retrieval_details)
    return details


def test_weak_single_match_that_l1_agrees_with_is_precise(system: System, api: ApiClient) -> None:
    system.ingest("a/one.md", markdown("alpha", "[alpha beta]", BODY))
    system.ingest("b/two.md", markdown("other", "[zeta]", "sigma tau"))
    answer = api.ask(f"{BODY} x")
    assert brief(answer) == ("PRECISE", "a/one.md", None)
    assert answer["primary"]["confidence"] == "high"
    assert answer["primary"]["matchType"] == "exact_L0"
    details = details_of(api)
    assert details["l0_match_count"] == 1
    assert 0.75 < details["l1_top_similarity"] == details["l1_evidence"] < 1


def test_weak_single_match_that_l1_surpasses_is_no_primary(system: System, api: ApiClient) -> None:
    system.ingest("a/one.md", markdown("sigma", "[alpha beta]", "sigma tau upsilon"))
    system.ingest("b/two.md", markdown("alpha", "[zeta]", BODY))
    assert brief(api.ask(f"{BODY} x")) == ("HIGHLY_RELEVANT", None, "b/two.md")


def test_weak_single_match_without_evidence_is_reference(system: System, api: ApiClient) -> None:
    system.ingest("a/one.md", markdown("sigma", "[kappa]", "sigma tau upsilon"))
    answer = api.ask("kappa qqqqqqq wwwwwwww zzzzzzzz")
    assert brief(answer) == ("REFERENCE", "a/one.md", None)
    assert answer["primary"]["confidence"] == "low"
    assert answer["message"] is None


@pytest.mark.parametrize(("coverage", "level"), [("0", "PRECISE"), ("0.9", "REFERENCE")])
def test_coverage_of_a_strong_match_is_a_setting(system: System, coverage: str, level: str) -> None:
    system.overrides["RETRIEVAL_PRECISE_MIN_COVERAGE"] = coverage
    system.ingest("a/one.md", markdown("sigma", "[kappa]", "sigma tau upsilon"))
    system.embedder.failure = Unavailable("embedding") if coverage == "0" else None
    answer = ApiClient(system.new_lookup()).ask("kappa qqqqqqq wwwwwwww zzzzzzzz")
    assert answer["relevanceLevel"] == level


def test_of_several_matches_l1_chooses_the_primary(system: System, api: ApiClient) -> None:
    system.ingest("a/one.md", markdown("sigma", "[alpha beta]", "sigma tau upsilon"))
    system.ingest("b/two.md", markdown("alpha", "[alpha beta]", BODY))
    answer = api.ask(f"{BODY} x")
    assert brief(answer) == ("HIGHLY_RELEVANT", "b/two.md", None)
    assert answer["primary"]["confidence"] == "low"
    assert details_of(api)["l0_match_count"] == 2


def test_of_several_matches_without_l1_the_first_of_l0_is_primary(
    system: System, api: ApiClient
) -> None:
    system.ingest("a/one.md", markdown("one", "[告警]", "eins"))
    system.ingest("b/two.md", markdown("two", "[磁盘告警]", "zwei"))
    system.embedder.failure = Unavailable("embedding")
    answer = api.ask("磁盘告警")
    assert brief(answer) == ("REFERENCE", "b/two.md", None)


def test_meaning_alone_sits_in_the_supplement(system: System, api: ApiClient) -> None:
    system.ingest("b/two.md", markdown("alpha", "[zeta]", BODY))
    answer = api.ask(f"{BODY} x", session_id="s1")
    assert brief(answer) == ("HIGHLY_RELEVANT", None, "b/two.md")
    assert (answer["found"], answer["message"]) == (True, None)
    assert answer["supplement"]["matchType"] == "semantic_L1"
    assert answer["retrievedDomainsThisSession"] == ["b"]
    repeat = api.ask(f"{BODY} x", session_id="s1")
    assert brief(repeat) == ("HIGHLY_RELEVANT", None, None)
    assert repeat["message"] == "本会话已返回过该内容，不再重复。该文档已全部读完。"


def test_section_can_be_asked_of_what_meaning_found(system: System, api: ApiClient) -> None:
    body = f"## first\n\n{BODY}\n\n{'x' * 1900}\n\n## second\n\nsigma tau"
    system.ingest("b/two.md", markdown("alpha", "[zeta]", body))
    answer = api.ask(f"{BODY} x", section_title="second")
    assert answer["supplement"]["content"].endswith("sigma tau")
    assert answer["supplement"]["section"] == "second"


def test_nothing_near_enough_is_not_found(system: System, api: ApiClient) -> None:
    system.ingest("b/two.md", markdown("alpha", "[zeta]", BODY))
    answer = api.ask("qqqqqqq wwwwwwww zzzzzzzz", session_id="s1")
    assert answer == {
        "found": False,
        "primary": None,
        "supplement": None,
        "relevanceLevel": None,
        "completenessHint": None,
        "retrievedDomainsThisSession": [],
        "message": "知识库中没有与此问题相关的内容。换关键词重试不会有结果，请勿重复检索。",
        "degraded": [],
        "invocationId": answer["invocationId"],
    }
    assert api.get("/session", id="s1").json["documents"] == []


def test_empty_knowledge_base_has_nothing(api: ApiClient) -> None:
    assert brief(api.ask("磁盘告警")) == (None, None, None)
    assert details_of(api)["l1_top_similarity"] == 0.0


def test_copy_costs_nobody_their_precise(system: System, api: ApiClient) -> None:
    text = markdown("磁盘", "[磁盘告警]", "清理旧日志。")
    for key in ("b/copy.md", "a/disk.md", "c/copy.md"):
        system.ingest(key, text)
    assert brief(api.ask("磁盘告警")) == ("PRECISE", "a/disk.md", None)
    assert details_of(api)["l0_match_count"] == 1


# Domain filter: what is outside is never delivered, and is no word in the answer's favour.


@pytest.fixture
def two_domains(system: System) -> System:
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警, 告警]", "清理旧日志。"))
    system.ingest("pay/refund.md", markdown("退款", "[退款, 告警]", "先查订单。"))
    return system


@pytest.mark.parametrize(
    ("query", "domain", "expected"),
    [
        ("磁盘告警 处理", "ops", ("REFERENCE", "ops/disk.md", None)),
        ("退款", "pay", ("PRECISE", "pay/refund.md", None)),
        ("退款", "ops", (None, None, None)),
        ("告警", None, ("REFERENCE", "ops/disk.md", None)),
        ("告警", "pay", ("REFERENCE", "pay/refund.md", None)),
        ("退款", "nowhere", (None, None, None)),
        ("退款", "Pay", (None, None, None)),
    ],
    ids=[
        "two matches, one inside: not the only one",
        "only match inside",
        "only match outside: as if there were none",
        "no filter",
        "two matches, one inside",
        "no such domain",
        "another case is another domain",
    ],
)
def test_domain_filters(
    two_domains: System,
    api: ApiClient,
    query: str,
    domain: str | None,
    expected: tuple[str | None, ...],
) -> None:
    answer = api.ask(query, domain=domain)
    assert brief(answer) == expected
    if domain and not answer["found"]:
        assert answer["message"] == (
            f"领域“{domain}”中没有与此问题相关的内容（其他领域未检索）。"
            "换关键词重试不会有结果，请勿重复检索。"
        )
        assert details_of(api)["l0_match_count"] == 0


def test_domain_filters_meaning_too(system: System, api: ApiClient) -> None:
    system.ingest("a/one.md", markdown("alpha", "[zeta]", BODY))
    system.ingest("b/two.md", markdown("alpha", "[eta]", f"{BODY} epsilon"))
    assert brief(api.ask(f"{BODY} x")) == ("HIGHLY_RELEVANT", None, "a/one.md")
    assert brief(api.ask(f"{BODY} x", domain="b")) == ("HIGHLY_RELEVANT", None, "b/two.md")
    assert brief(api.ask(f"{BODY} x", domain="c")) == (None, None, None)


def test_domain_is_the_authors_category(system: System, api: ApiClient) -> None:
    text = markdown("磁盘", "[磁盘告警]", "清理旧日志。", category="运维 Ops")
    system.ingest("x/disk.md", text)
    inside = api.ask("磁盘告警", domain=" 运维 Ops ", session_id="s1")
    assert brief(inside) == ("PRECISE", "x/disk.md", None)
    assert inside["retrievedDomainsThisSession"] == ["运维 Ops"]
    assert api.ask("磁盘告警", domain="x")["found"] is False


def test_copy_inside_the_domain_answers_for_the_one_outside(system: System, api: ApiClient) -> None:
    text = markdown("磁盘", "[磁盘告警]", "清理旧日志。")
    for key in ("a/disk.md", "b/copy.md"):
        system.ingest(key, text)
    assert brief(api.ask("磁盘告警", domain="b")) == ("PRECISE", "b/copy.md", None)


# Changes: what the catalog in memory does not know yet is never shown, nor the old text.


@pytest.fixture
def knowing(system: System, api: ApiClient) -> ApiClient:
    """Holds the catalog of before, and is not due for a look at it."""
    system.ingest("a/one.md", markdown("alpha", "[磁盘告警]", BODY))
    assert api.ask("磁盘告警")["primary"]["content"] == BODY
    return api


@pytest.mark.parametrize("query", ["磁盘告警", f"{BODY} x"], ids=["by keyword", "by meaning"])
def test_changed_text_is_the_new_one(system: System, knowing: ApiClient, query: str) -> None:
    system.ingest("a/one.md", markdown("alpha", "[磁盘告警]", f"{BODY} epsilon"))
    answer = knowing.ask(query)
    passage = answer["primary"] or answer["supplement"]
    assert (answer["found"], passage["content"]) == (True, f"{BODY} epsilon")


@pytest.mark.parametrize("query", ["磁盘告警", f"{BODY} x"], ids=["by keyword", "by meaning"])
def test_removed_text_is_gone(system: System, knowing: ApiClient, query: str) -> None:
    system.delete("a/one.md")
    assert system.ingest("a/one.md").status is Status.DELETED
    answer = knowing.ask(query, session_id="s1")
    assert (answer["found"], answer["primary"], answer["supplement"]) == (False, None, None)


def test_new_document_is_found_by_meaning_at_once(system: System, knowing: ApiClient) -> None:
    system.ingest("b/new.md", markdown("sigma", "[omega]", "sigma tau upsilon phi"))
    answer = knowing.ask("sigma tau upsilon phi x")
    assert brief(answer) == ("HIGHLY_RELEVANT", None, "b/new.md")


def test_document_that_changes_between_every_two_looks_is_unavailable_not_wrong(
    wire: Wire, system: System
) -> None:
    system.ingest("a/one.md", markdown("alpha", "[磁盘告警]", BODY))
    api = ApiClient(system.new_lookup())
    versions = iter(range(10))
    read = api.parts.content.read

    def read_too_late(wanted: Any) -> Any:
        text = markdown("alpha", "[磁盘告警]", f"{BODY} {next(versions)}")
        system.ingest("a/one.md", text)
        return read(wanted)

    api.parts.content.read = read_too_late  # type: ignore[method-assign]
    reply = api.post('{"query": "磁盘告警", "session_id": "s1"}')
    assert reply.error[:2] == (503, "content_unavailable")
    assert api.get("/session", id="s1").json["documents"] == []


def test_one_long_document_does_not_hide_the_others(system: System) -> None:
    system.overrides["SEARCH_K"] = "2"
    paragraphs = "\n\n".join(f"{BODY} {'x' * 500} {n}" for n in range(6))
    system.ingest("a/long.md", markdown("alpha", "[alpha beta]", f"{BODY}\n\n{paragraphs}"))
    system.ingest("b/two.md", markdown("alpha", "[zeta]", f"{BODY} epsilon"))
    answer = ApiClient(system.new_lookup()).ask(f"{BODY} x")
    assert {answer["primary"]["source"], answer["supplement"]["source"]} == {
        "a/long.md",
        "b/two.md",
    }
