"""Sessions under parallel calls, and against a model of what they may read."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from kb.answers import Answer, Question

from tests.conftest import System, markdown

PARTS = "\n\n".join(f"## 节 {n}\n\n{'正文' * 900} 第 {n} 节" for n in range(1, 5))


def texts_of(answer: Answer) -> list[str]:
    return [passage.content for passage in (answer.primary, answer.supplement) if passage]


def test_32_parallel_lookups_of_a_session_deliver_each_text_once(system: System) -> None:
    system.ingest("a/long.md", markdown("长文", "[长文]", PARTS))
    system.ingest("a/one.md", markdown("alpha", "[alpha beta]", "alpha beta gamma one"))
    system.ingest("b/two.md", markdown("alpha", "[zeta]", "alpha beta gamma two"))
    lookups = [system.new_lookup().lookup for _ in range(4)]
    asked = [
        Question("长文", section_title="节 1", session_id="s1"),
        Question("长文", part=2, session_id="s1"),
        Question("长文", part=3, session_id="s1"),
        Question("alpha beta gamma", session_id="s1"),
    ]

    def ask(number: int) -> Answer:
        return lookups[number % 4].answer(asked[number // 8], "caller")

    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(ask, range(32)))
    given = Counter(text for answer in answers for text in texts_of(answer))
    assert set(given.values()) == {1}
    assert len(given) == 5
    assert all(answer.found for answer in answers)
    assert all(answer.message for answer in answers if answer.primary is None)


def test_parallel_retries_of_one_request_all_get_the_text(system: System) -> None:
    system.ingest("a/one.md", markdown("1", "[长文]", "eins"))
    lookup = system.new_lookup().lookup
    question = Question("长文", session_id="s1", request_id="r1")
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: lookup.answer(question, "caller"), range(8)))
    assert [texts_of(answer) for answer in answers] == [["eins"]] * 8
    assert texts_of(lookup.answer(Question("长文", session_id="s1"), "caller")) == []


def test_200_sessions_at_once_do_not_mix(system: System) -> None:
    for number in range(3):
        body = f"text {number}"
        system.ingest(f"d{number}/x.md", markdown(f"{number}", f"[word{number}]", body))
    lookup = system.new_lookup().lookup
    chance = random.Random(7)  # noqa: S311 - a plan, not a secret
    plans = {
        (f"caller {n % 2}", f"s{n // 2}"): chance.choices(range(3), k=chance.randint(1, 2))
        for n in range(200)
    }

    def converse(who: tuple[str, str]) -> tuple[list[list[str]], tuple[str, ...]]:
        caller, session = who
        answers = [
            lookup.answer(Question(f"word{number}", session_id=session), caller)
            for number in plans[who]
        ]
        return [texts_of(answer) for answer in answers], answers[-1].domains

    with ThreadPoolExecutor(16) as threads:
        conversations = dict(zip(plans, threads.map(converse, plans), strict=True))
    for who, (given, domains) in conversations.items():
        plan = plans[who]
        assert given == [
            [] if number in plan[:at] else [f"text {number}"] for at, number in enumerate(plan)
        ]
        assert domains == tuple(dict.fromkeys(f"d{number}" for number in plan))


KEYS = ("a/x.md", "b/y.md")
SESSIONS = ("s1", "s2")


@dataclass(slots=True)
class Model:
    """What there is, and what each session may not be given again."""

    texts: dict[str, str] = field(default_factory=dict)
    """Of each document."""
    read: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """Session and document -> texts read, each with the request it was first given to."""
    expiry: dict[tuple[str, str], float] = field(default_factory=dict)

    def gives(self, session: str, key: str, request: str, force: bool) -> bool:
        text = self.texts[key]
        own = self.read.get((session, key), {})
        given_to = {
            read[text]
            for (reader, _), read in self.read.items()
            if reader == session and text in read
        }
        is_retry = bool(request) and request in given_to and own.get(text, request) == request
        return force or not given_to or is_retry


def machine_of(system: System) -> type[RuleBasedStateMachine]:
    """Lookups of single strong matches in two sessions, while documents come, change and go."""
    parts = system.new_lookup()
    runs = iter(range(10**6))

    class Sessions(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.model = Model()
            self.prefix = f"run {next(runs)} "
            for key in KEYS:
                system.delete(key)
                system.ingest(key)
            system.clock.advance(2)

        @rule(key=st.sampled_from(KEYS), text=st.sampled_from(["eins", "zwei", "drei"]))
        def change(self, key: str, text: str) -> None:
            system.ingest(key, markdown(key, f"[word {key[0]}]", text))
            self.model.texts[key] = text
            system.clock.advance(2)

        @rule(key=st.sampled_from(KEYS))
        def delete(self, key: str) -> None:
            system.delete(key)
            system.ingest(key)
            self.model.texts.pop(key, None)
            system.clock.advance(2)

        @rule(
            key=st.sampled_from(KEYS),
            session=st.sampled_from(SESSIONS),
            force=st.booleans(),
            request=st.sampled_from(["", "", "r1", "r2"]),
        )
        def look_up(self, key: str, session: str, force: bool, request: str) -> None:
            model = self.model
            answer = parts.lookup.answer(
                Question(
                    f"word {key[0]}",
                    session_id=self.prefix + session,
                    force=force,
                    request_id=request or None,
                ),
                "caller",
            )
            assert answer.found == (key in model.texts)
            if key not in model.texts:
                return
            text = model.texts[key]
            gives = model.gives(session, key, request, force)
            assert texts_of(answer) == ([text] if gives else [])
            if gives:
                read = model.read.setdefault((session, key), {})
                if text not in read:
                    read[text] = request
                    model.expiry[session, key] = system.clock.seconds() + 86400
            assert (answer.message is None) == gives

        @rule(session=st.sampled_from(SESSIONS))
        def clear(self, session: str) -> None:
            parts.sessions("caller").clear_session(self.prefix + session)
            for place in [place for place in self.model.read if place[0] == session]:
                del self.model.read[place]

        @rule(seconds=st.sampled_from([3600, 50_000, 90_000]))
        def wait(self, seconds: int) -> None:
            system.clock.advance(seconds)
            now = system.clock.seconds()
            for place in [place for place in self.model.read if self.model.expiry[place] <= now]:
                del self.model.read[place]

        @invariant()
        def sessions_remember_what_the_model_does(self) -> None:
            for session in SESSIONS:
                read = parts.sessions("caller").read(self.prefix + session).documents
                assert read.keys() == {k for s, k in self.model.read if s == session}

    return Sessions


def test_sessions_agree_with_a_small_model(system: System) -> None:
    run_state_machine_as_test(
        machine_of(system),
        settings=settings(
            max_examples=15,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert True
