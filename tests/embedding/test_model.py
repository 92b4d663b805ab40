"""Loading, pooling and truncating, against the same network in plain numpy."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import Tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from model import Encoder
from tokenizers import Tokenizer
from xlm_r import TINY, random_weights, reference, write_encoder

TEXTS = ["知识检索系统", "the finding of a document", "的", "数据" * 40, "running 龘龘, 2 文档。"]


@pytest.fixture(scope="module")
def encoder(tiny: Tiny) -> Encoder:
    return Encoder(tiny.folder, threads=2, max_tokens=8192)


@pytest.fixture(scope="module")
def int8(tiny_int8: Path) -> Encoder:
    return Encoder(tiny_int8, threads=2, max_tokens=8192)


def ids_of(folder: Path, text: str) -> list[int]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids: list[int] = tokenizer.encode(text).ids
    return ids


def test_vectors_are_those_of_the_network_in_plain_numpy(encoder: Encoder, tiny: Tiny) -> None:
    expected = [reference(ids_of(tiny.folder, text), TINY, tiny.weights) for text in TEXTS]
    assert np.abs(encoder.embed(TEXTS).vectors - expected).max() < 1e-4


@pytest.mark.parametrize("model", ["encoder", "int8"])
def test_a_text_has_the_same_vector_whatever_its_neighbours(
    model: str, request: pytest.FixtureRequest
) -> None:
    one: Encoder = request.getfixturevalue(model)
    alone = np.vstack([one.embed([text]).vectors for text in TEXTS])
    assert np.array_equal(one.embed(TEXTS[::-1]).vectors[::-1], alone)


def test_a_text_is_cut_at_the_limit_and_said_to_be(tiny: Tiny) -> None:
    encoder = Encoder(tiny.folder, threads=1, max_tokens=12)
    fits, longer = "数据" * 9, "数据" * 10
    ids = ids_of(tiny.folder, longer)
    assert (len(ids_of(tiny.folder, fits)), len(ids)) == (12, 13)
    embedded = encoder.embed([longer, fits, "短", longer * 50])
    assert embedded.truncated == (0, 3)
    expected = reference([*ids[:11], ids[-1]], TINY, tiny.weights)
    assert np.abs(embedded.vectors[0] - expected).max() < 1e-4


def test_blanks_without_end_are_not_read_to_the_end(tiny: Tiny) -> None:
    encoder = Encoder(tiny.folder, threads=1, max_tokens=12)
    within, beyond = "数据".ljust(16 * 12), "数据".ljust(16 * 12 + 1)
    embedded = encoder.embed([within, beyond])
    assert embedded.truncated == (1,)
    assert np.array_equal(embedded.vectors[0], embedded.vectors[1])


def test_the_longest_text_needs_memory_that_grows_with_its_length_alone(int8: Encoder) -> None:
    # One score matrix of all heads would need 1 GB here, and 4 GB in BGE-M3.
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    embedded = int8.embed(["数据" * 9000])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert embedded.truncated == (0,)
    assert grown < 200_000


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_any_text_has_a_finite_vector_of_norm_1(encoder: Encoder, texts: list[str]) -> None:
    embedded = encoder.embed(texts)
    norms = np.linalg.norm(embedded.vectors, axis=1)
    assert embedded.vectors.shape == (len(texts), TINY.hidden)
    assert norms == pytest.approx(np.ones(len(texts)), abs=1e-6)


def test_a_vector_without_a_direction_is_no_answer(copied: Path) -> None:
    weights = random_weights(TINY, seed=7)
    weights["layer.1.output.norm"][:] = 0
    weights["layer.1.output.norm.bias"][:] = 0
    write_encoder(copied, TINY, weights)
    with pytest.raises(ArithmeticError, match="without a direction"):
        Encoder(copied, threads=1, max_tokens=64).embed(["知识"])


@pytest.mark.parametrize(("kept", "count"), [([], 0), (["token_embeddings"] * 2, 2)])
def test_a_model_without_one_output_of_states_is_refused(
    copied: Path, kept: list[str], count: int
) -> None:
    model = onnx.load(copied / "model.onnx", load_external_data=False)
    outputs = {output.name: output for output in model.graph.output}
    again = onnx.helper.make_node("Identity", ["token_embeddings"], ["again"])
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(outputs["token_embeddings"])
    copy.name = "again"
    del model.graph.output[:]
    model.graph.node.append(again)
    wanted = [outputs["token_embeddings"], copy] if kept else [outputs["sentence_embedding"]]
    model.graph.output.extend(wanted)
    onnx.save_model(model, copied / "model.onnx")
    with pytest.raises(ValueError, match=f"{count} outputs"):
        Encoder(copied, threads=1, max_tokens=64)


def test_a_model_that_wants_more_than_a_text_has_is_refused(copied: Path) -> None:
    model = onnx.load(copied / "model.onnx", load_external_data=False)
    wanted = onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, [1])
    model.graph.input.append(wanted)
    onnx.save_model(model, copied / "model.onnx")
    with pytest.raises(ValueError, match="pixels"):
        Encoder(copied, threads=1, max_tokens=64)
