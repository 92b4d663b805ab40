"""No step of an answer takes the time of a later one."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from kb.deadline import Deadline, Step, Timeouts
from kb.errors import Misconfigured, Unavailable
from kb.settings import ATTEMPTS, LookupSettings, read_settings

TABLES = {
    "CATALOG_TABLE": "a",
    "CONTENT_TABLE": "b",
    "SESSION_TABLE": "c",
    "INVOCATION_TABLE": "d",
    "EMBEDDING_FUNCTION": "f",
    "OPENSEARCH_ENDPOINT": "https://search.example",
}
TIMEOUTS = Timeouts(answer=27, question=10, table=4)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def test_each_step_leaves_later_steps_their_time() -> None:
    assert {step.name: TIMEOUTS.after(step) for step in Step} == {
        "START": 10 + 3 * 4,
        "SEARCH": 3 * 4,
        "READ": 2 * 4,
        "MARK": 4,
        "LOG": 0,
    }
    assert TIMEOUTS.least == 4 + TIMEOUTS.after(Step.START)


def test_default_timeouts_fit_into_the_function_in_the_worst_case() -> None:
    settings = read_settings(LookupSettings, TABLES)
    table = ATTEMPTS * (settings.connect_timeout + settings.table_timeout)
    worst = table + settings.question_timeout + table + table + table
    template = Path(__file__).parents[2] / "template.yaml"
    lines = template.read_text(encoding="utf-8").partition("  LookupFunction:")[2].splitlines()
    timeout = next(yaml.safe_load(line) for line in lines if line.strip().startswith("Timeout:"))
    assert settings.timeouts == Timeouts(settings.answer_timeout, settings.question_timeout, table)
    assert worst <= settings.answer_timeout < timeout["Timeout"] < 29


@pytest.mark.parametrize(
    ("setting", "value", "least"),
    [
        ("ANSWER_TIMEOUT", "25.5", "26"),
        ("QUESTION_TIMEOUT", "20", "36"),
        ("TABLE_TIMEOUT", "3", "42"),
    ],
)
def test_timeouts_that_do_not_fit_are_refused_at_start(
    setting: str, value: str, least: str
) -> None:
    with pytest.raises(Misconfigured) as fault:
        read_settings(LookupSettings, TABLES | {setting: value})
    assert str(fault.value) == (
        f"ANSWER_TIMEOUT: must be at least {least}, or the other timeouts shorter"
    )


def test_result_and_error_of_a_call_are_passed_on(threads: ThreadPoolExecutor) -> None:
    deadline = Deadline(TIMEOUTS, threads)
    assert deadline.call(Step.READ, "content", divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        deadline.call(Step.READ, "content", divmod, 7, 0)


class Hanging(Future[str]):
    """Answers never; keeps how long it was waited for."""

    waited: float | None = None

    def result(self, timeout: float | None = None) -> str:
        self.waited = timeout
        raise TimeoutError


@pytest.mark.parametrize(
    ("step", "now", "left"),
    [
        (Step.START, 0.5, 4.5),
        (Step.START, 5.0, 0),
        (Step.SEARCH, 0.5, 14.5),
        (Step.SEARCH, 14.5, 0.5),
        (Step.READ, 1, 18),
        (Step.MARK, 1, 22),
        (Step.LOG, 26.5, 0.5),
        (Step.LOG, 99, 0),
    ],
)
def test_call_is_waited_for_until_later_steps_need_the_time(
    threads: ThreadPoolExecutor, step: Step, now: float, left: float
) -> None:
    times = iter([0.0, now])
    deadline = Deadline(TIMEOUTS, threads, lambda: next(times))
    future = Hanging()
    with pytest.raises(Unavailable) as error:
        deadline.wait(step, "catalog", future)
    assert str(error.value) == "catalog did not answer (took too long)"
    assert future.waited == left
    assert future.cancelled()


def test_what_is_done_already_counts_even_too_late(threads: ThreadPoolExecutor) -> None:
    times = iter([0.0, 99.0])
    deadline = Deadline(TIMEOUTS, threads, lambda: next(times))
    future = deadline.start(divmod, 7, 2)
    future.exception()
    assert deadline.wait(Step.LOG, "log", future) == (3, 1)
