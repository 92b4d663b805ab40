"""Fusing attention and going to int8: what must not change, and what must be noticed."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import quantize
from check import LEAST_COSINE, SAMPLES, least_cosine
from conftest import Tiny
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from model import Encoder
from onnx import numpy_helper
from xlm_r import TINY


def matrix() -> st.SearchStrategy[np.ndarray]:
    return arrays.arrays(
        np.float32,
        arrays.array_shapes(min_dims=2, max_dims=2, max_side=8),
        elements=st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6),
    )


def encoder(folder: Path) -> Encoder:
    return Encoder(folder, threads=1, max_tokens=8192)


def test_fused_attention_computes_the_same_vectors(tiny: Tiny, copied: Path) -> None:
    fused = quantize.fuse_attention(copied / "model.onnx")
    onnx.save_model(fused, copied / "model.onnx")
    operators = {node.op_type for node in fused.graph.node}
    assert ("MultiHeadAttention" in operators, "Softmax" in operators) == (True, False)
    fused_vectors = encoder(copied).embed(SAMPLES).vectors
    assert np.abs(fused_vectors - encoder(tiny.folder).embed(SAMPLES).vectors).max() < 1e-5


def test_an_attention_block_of_another_shape_is_refused(copied: Path) -> None:
    model = onnx.load(copied / "model.onnx", load_external_data=False)
    softmax = next(node for node in model.graph.node if node.op_type == "Softmax")
    capped = onnx.helper.make_node("Tanh", [softmax.input[0]], ["capped"])
    softmax.input[0] = "capped"
    model.graph.node.insert(list(model.graph.node).index(softmax), capped)
    onnx.save_model(model, copied / "model.onnx")
    with pytest.raises(ValueError, match="1 of 2 attention blocks"):
        quantize.fuse_attention(copied / "model.onnx")


def test_int8_vectors_stay_near_the_fp32_ones(tiny: Tiny, tiny_int8: Path) -> None:
    assert 0.99 < least_cosine(encoder(tiny.folder), encoder(tiny_int8)) < 0.99999


def test_every_matrix_is_int8_and_lies_beside_the_graph(tiny: Tiny, tiny_int8: Path) -> None:
    model = onnx.load(tiny_int8 / "model.onnx", load_external_data=False)
    outside = {t.name: t for t in model.graph.initializer if t.external_data}
    matrices = [name for name, value in tiny.weights.items() if value.ndim == 2]
    kinds = {name: "rows" if name.startswith("embeddings.") else "columns" for name in matrices}
    assert set(outside) == {f"{name}_{kind}" for name, kind in kinds.items()}
    assert {tensor.data_type for tensor in outside.values()} == {onnx.TensorProto.INT8}
    assert all(int(t.external_data[1].value) % quantize.PAGE == 0 for t in outside.values())
    assert (tiny_int8 / "tokenizer.json").read_bytes() == (
        tiny.folder / "tokenizer.json"
    ).read_bytes()


def test_what_is_no_matrix_comes_along(tiny_int8: Path, copied: Path, tmp_path: Path) -> None:
    """Here a tensor of three axes that is added to the states, in a file of its own."""
    model = onnx.load(copied / "model.onnx", load_external_data=False)
    moved = onnx.TensorProto(name="moved", dims=[1, 1, TINY.hidden], data_type=1, data_location=1)
    moved.external_data.add(key="location", value="moved")
    np.arange(TINY.hidden, dtype=np.float32).tofile(copied / "moved")
    model.graph.initializer.append(moved)
    (last,) = (node for node in model.graph.node if "token_embeddings" in node.output)
    last.output[0] = "before"
    add = onnx.helper.make_node("Add", ["before", "moved"], ["token_embeddings"])
    model.graph.node.insert(list(model.graph.node).index(last) + 1, add)
    onnx.save_model(model, copied / "model.onnx")
    quantize.quantize(copied, tmp_path)
    moving = np.arange(TINY.hidden, dtype=np.float32)
    moving /= np.linalg.norm(moving)
    assert np.min(encoder(tmp_path).embed(SAMPLES).vectors @ moving) > 0.99
    assert np.max(encoder(tiny_int8).embed(SAMPLES).vectors @ moving) < 0.9


def test_no_two_products_saturate_16_bits(tiny_int8: Path) -> None:
    model = onnx.load(tiny_int8 / "model.onnx")
    weights = {node.input[1] for node in model.graph.node if node.op_type == "MatMulInteger"}
    values = [numpy_helper.to_array(t) for t in model.graph.initializer if t.name in weights]
    assert len(values) == len(weights) == 12
    assert 2 * 255 * max(int(np.abs(value.astype(int)).max()) for value in values) <= 32767


@given(matrix(), st.sampled_from([0, 1]), st.sampled_from([64, 127]))
def test_levels_are_within_half_a_step_and_the_largest(
    values: np.ndarray, axis: int, largest: int
) -> None:
    levels, steps = quantize.to_levels(values, axis, largest)
    assert levels.dtype == np.int8
    assert np.abs(levels.astype(int)).max() <= largest
    assert np.all(np.abs(levels * steps - values) <= steps * 0.501)


def test_a_model_that_strays_fails_the_build(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quantize.main(tiny.folder, tmp_path / "good")
    assert capsys.readouterr().out.startswith("least cosine between fp32 and int8: 0.99")
    monkeypatch.setattr(quantize, "LARGEST_IN_PRODUCT", 1)
    with pytest.raises(SystemExit, match=f"at least {LEAST_COSINE}"):
        quantize.main(tiny.folder, tmp_path / "coarse")
