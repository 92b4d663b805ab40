"""The handler in process: what it answers, and what it refuses by index."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from model import Encoder
from xlm_r import TINY


@pytest.fixture(scope="module")
def app(tiny_int8: Path) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL_FOLDER", str(tiny_int8))
        yield importlib.import_module("app")
    del sys.modules["app"]


def test_vectors_come_in_order_with_the_models_name(app: ModuleType, tiny_int8: Path) -> None:
    texts = ["知识", "a document", "知识"]
    answer = app.handler({"texts": texts}, None)
    expected = Encoder(tiny_int8, threads=1, max_tokens=8192).embed(texts).vectors
    assert answer.keys() == {"vectors", "model", "truncated"}
    assert (answer["model"], answer["truncated"]) == ("BAAI/bge-m3", [])
    assert np.abs(np.array(answer["vectors"]) - expected).max() < 1e-6
    assert answer["vectors"][0] == answer["vectors"][2]


def test_a_text_over_8192_tokens_is_named(app: ModuleType) -> None:
    answer = app.handler({"texts": ["知识", "数据" * 9000]}, None)
    assert answer["truncated"] == [1]


def test_the_largest_answer_is_far_below_what_lambda_carries(app: ModuleType) -> None:
    vectors = app.handler({"texts": ["知识"] * 64}, None)["vectors"]
    size_of_a_number = len(json.dumps(vectors)) / (64 * TINY.hidden)
    assert size_of_a_number * 64 * 1024 < 1_000_000


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (None, 'an object of "texts" alone is wanted'),
        (["知识"], 'an object of "texts" alone is wanted'),
        ({}, 'an object of "texts" alone is wanted'),
        ({"texts": ["知识"], "model": "other"}, 'an object of "texts" alone is wanted'),
        ({"texts": "知识"}, "texts: a list of 1 to 64 is wanted"),
        ({"texts": []}, "texts: a list of 1 to 64 is wanted"),
        ({"texts": ["知识"] * 65}, "texts: a list of 1 to 64 is wanted"),
        ({"texts": ["知识", 7]}, "texts[1] is no string"),
        ({"texts": [None, ["知识"]]}, "texts[0] is no string; texts[1] is no string"),
        ({"texts": ["", "知识", " \t\n　"]}, "texts[0] is blank; texts[2] is blank"),
        ({"texts": ["\ufeff\u200b\u2060"]}, "texts[0] is blank"),
        ({"texts": ["知\0识"]}, "texts[0] holds a NUL"),
        ({"texts": ["知识", "a\ud83d"]}, "texts[1] holds a lone surrogate"),
        ({"texts": ["\0", "\udc00", "", 0]}, None),
    ],
)
def test_bad_input_is_answered_not_raised(
    app: ModuleType, event: object, message: str | None
) -> None:
    answer = app.handler(event, None)
    several = (
        "texts[0] holds a NUL; texts[1] holds a lone surrogate; texts[2] is blank;"
        " texts[3] is no string"
    )
    assert answer == {"error": {"code": "invalid_input", "message": message or several}}


def test_a_model_that_fails_raises(app: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(texts: list[str]) -> None:
        raise ArithmeticError("no direction")

    monkeypatch.setattr(app._encoder, "embed", fail, raising=False)
    with pytest.raises(ArithmeticError):
        app.handler({"texts": ["知识"]}, None)


@pytest.mark.parametrize(
    ("memory", "processors", "threads"),
    [
        ("1024", 2, 1),
        ("1769", 2, 1),
        ("1770", 2, 2),
        ("3008", 2, 2),
        ("10240", 6, 6),
        ("10240", 4, 4),
        ("", 3, 3),
    ],
)
def test_threads_are_as_many_as_the_functions_processors(
    app: ModuleType, memory: str, processors: int, threads: int
) -> None:
    assert app._threads(memory, processors) == threads


def test_a_missing_model_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, app: ModuleType
) -> None:
    monkeypatch.setenv("MODEL_FOLDER", str(tmp_path))
    monkeypatch.delitem(sys.modules, "app")
    with pytest.raises(Exception, match=r"model\.onnx"):
        importlib.import_module("app")
    sys.modules["app"] = app
