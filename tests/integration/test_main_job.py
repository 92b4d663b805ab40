"""The thinnest path: a document goes in, a graded answer comes out, once a session."""

from tests.conftest import System, markdown


def test_document_is_found_by_its_keyword_and_graded_precise(system: System) -> None:
    system.ingest(
        "运维/disk.md", markdown("磁盘告警处理", "[磁盘告警, disk full]", "# 处理\n\n清理旧日志。")
    )
    answer = system.ask("磁盘告警", session_id="s1")
    assert answer.primary is not None
    assert (answer.level, answer.primary.content, answer.primary.row.key, answer.domains) == (
        "PRECISE",
        "# 处理\n\n清理旧日志。",
        "运维/disk.md",
        ("运维",),
    )
