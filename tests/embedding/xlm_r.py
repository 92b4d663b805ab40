"""Makes XLM-RoBERTa encoders with random weights, as ONNX graphs shaped like PyTorch's exports.

`reference` computes the same network in plain numpy, so that no test trusts the runtime it tests.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PADDING_ID = 1
LOWEST = float(np.finfo(np.float32).min)
EPSILON = 1e-5
CONSTANT_FILE = "Constant_7_attr__value"

Weights = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    inner: int
    """Width of the feed-forward layer."""
    vocabulary: int
    positions: int
    """Longest text in tokens, plus 2: position ids begin after the padding id."""


TINY = Shape(layers=2, hidden=32, heads=4, inner=64, vocabulary=400, positions=8194)
BGE_M3 = Shape(24, 1024, 16, 4096, 250_002, 8194)


def random_weights(shape: Shape, seed: int) -> Weights:
    """Weights by the names that PyTorch gives them; linear ones as (in, out)."""
    random = np.random.default_rng(seed)

    def normal(*size: int, spread: float) -> np.ndarray:
        return random.standard_normal(size, np.float32) * np.float32(spread)

    hidden, inner = shape.hidden, shape.inner
    weights = {
        "embeddings.word": normal(shape.vocabulary, hidden, spread=0.5),
        "embeddings.position": normal(shape.positions, hidden, spread=0.1),
        "embeddings.token_type": normal(1, hidden, spread=0.1),
    }
    linear = {
        "query": (hidden, hidden),
        "key": (hidden, hidden),
        "value": (hidden, hidden),
        "attention": (hidden, hidden),
        "intermediate": (hidden, inner),
        "output": (inner, hidden),
    }
    norms = ["embeddings.norm"]
    for layer in range(shape.layers):
        for name, (rows, columns) in linear.items():
            weights[f"layer.{layer}.{name}"] = normal(rows, columns, spread=rows**-0.5)
            weights[f"layer.{layer}.{name}.bias"] = normal(columns, spread=0.02)
        norms += [f"layer.{layer}.attention.norm", f"layer.{layer}.output.norm"]
    for name in norms:
        weights[name] = 1 + normal(hidden, spread=0.02)
        weights[f"{name}.bias"] = normal(hidden, spread=0.02)
    return weights


class _Graph:
    """Nodes in order; every call names its own output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str, **attributes: object) -> str:
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], output, **attributes))
        return output

    def constant(self, value: object, kind: type[np.generic]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def linear(self, states: str, name: str) -> str:
        return self("Add", f"{name}.bias", self("MatMul", states, name))

    def norm(self, states: str, name: str) -> str:
        centred = self("Sub", states, self("ReduceMean", states, axes=[-1]))
        square = self("Pow", centred, self.constant(2, np.float32))
        variance = self("ReduceMean", square, axes=[-1])
        deviation = self("Sqrt", self("Add", variance, self.constant(EPSILON, np.float32)))
        return self("Add", self("Mul", self("Div", centred, deviation), name), f"{name}.bias")

    def gelu(self, states: str) -> str:
        erf = self("Erf", self("Div", states, self.constant(2**0.5, np.float32)))
        both = self("Mul", states, self("Add", erf, self.constant(1, np.float32)))
        return self("Mul", both, self.constant(0.5, np.float32))


def _token_types(graph: _Graph, shape: Shape) -> str:
    """All 0, cut out of a constant that lies in a file of its own, as in BGE-M3's export."""
    zeros = TensorProto(name="zeros", dims=[1, shape.positions], data_type=TensorProto.INT64)
    zeros.data_location = TensorProto.EXTERNAL
    zeros.external_data.add(key="location", value=CONSTANT_FILE)
    length = graph("Gather", graph("Shape", "input_ids"), graph.constant([1], np.int64))
    first, axis = graph.constant([0], np.int64), graph.constant([1], np.int64)
    cut = graph("Slice", graph("Constant", value=zeros), first, length, axis)
    return graph("Expand", cut, graph("Shape", "input_ids"))


def _encoder(shape: Shape) -> _Graph:
    graph = _Graph()
    size = shape.hidden // shape.heads
    padding = graph.constant(PADDING_ID, np.int64)
    real = graph("Cast", graph("Not", graph("Equal", "input_ids", padding)), to=TensorProto.INT64)
    counted = graph("Mul", graph("CumSum", real, graph.constant(1, np.int64)), real)
    position = graph("Gather", "embeddings.position", graph("Add", counted, padding))
    word = graph("Gather", "embeddings.word", "input_ids")
    typed = graph("Add", word, graph("Gather", "embeddings.token_type", _token_types(graph, shape)))
    states = graph.norm(graph("Add", typed, position), "embeddings.norm")
    wide = graph("Unsqueeze", graph("Unsqueeze", "attention_mask", axes=[1]), axes=[2])
    one = graph.constant(1, np.float32)
    hidden_out = graph("Sub", one, graph("Cast", wide, to=TensorProto.FLOAT))
    mask = graph("Mul", hidden_out, graph.constant(LOWEST, np.float32))
    apart = graph.constant([0, 0, shape.heads, size], np.int64)
    together = graph.constant([0, 0, shape.hidden], np.int64)
    for layer in range(shape.layers):
        at = f"layer.{layer}"

        def heads(name: str, order: list[int], states: str = states, at: str = at) -> str:
            split = graph("Reshape", graph.linear(states, f"{at}.{name}"), apart)
            return graph("Transpose", split, perm=order)

        query, value = heads("query", [0, 2, 1, 3]), heads("value", [0, 2, 1, 3])
        scores = graph("MatMul", query, heads("key", [0, 2, 3, 1]))
        scaled = graph("Div", scores, graph.constant(size**0.5, np.float32))
        shares = graph("Softmax", graph("Add", scaled, mask), axis=-1)
        mixed = graph("Transpose", graph("MatMul", shares, value), perm=[0, 2, 1, 3])
        attended = graph.linear(graph("Reshape", mixed, together), f"{at}.attention")
        states = graph.norm(graph("Add", attended, states), f"{at}.attention.norm")
        widened = graph.gelu(graph.linear(states, f"{at}.intermediate"))
        narrowed = graph.linear(widened, f"{at}.output")
        states = graph.norm(graph("Add", narrowed, states), f"{at}.output.norm")
    graph.nodes[-1].output[0] = "token_embeddings"
    return graph


def write_encoder(folder: Path, shape: Shape, weights: Mapping[str, np.ndarray]) -> Path:
    """Write model.onnx and, beside it, model.onnx_data with every weight; like BGE-M3's export.

    The graph also has the pooled output that such exports have; nothing here reads it.
    """
    graph = _encoder(shape)
    path = folder / "model.onnx"
    external = []
    (folder / CONSTANT_FILE).write_bytes(bytes(8 * shape.positions))
    with (folder / "model.onnx_data").open("wb") as data:
        for name, value in weights.items():
            tensor = TensorProto(name=name, dims=value.shape, data_type=TensorProto.FLOAT)
            tensor.data_location = TensorProto.EXTERNAL
            place = {"location": "model.onnx_data", "offset": data.tell(), "length": value.nbytes}
            for key, entry in place.items():
                tensor.external_data.add(key=key, value=str(entry))
            external.append(tensor)
            value.tofile(data)
    first = graph("Gather", "token_embeddings", graph.constant(0, np.int64), axis=1)
    graph.nodes.append(helper.make_node("LpNormalization", [first], ["sentence_embedding"], axis=1))
    axes = ["batch_size", "sequence_length"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, axes)
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [*kept, shape.hidden])
        for name, kept in (("token_embeddings", axes), ("sentence_embedding", axes[:1]))
    ]
    made = helper.make_graph(
        graph.nodes, "xlm-r", inputs, outputs, initializer=[*graph.constants, *external]
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def reference(ids: list[int], shape: Shape, weights: Weights) -> np.ndarray:
    """The unit vector of one text, in numpy and float64: last state of the first token."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    size = shape.hidden // shape.heads

    def linear(states: np.ndarray, name: str) -> np.ndarray:
        return states @ w[name] + w[f"{name}.bias"]

    def norm(states: np.ndarray, name: str) -> np.ndarray:
        centred = states - states.mean(-1, keepdims=True)
        deviation = np.sqrt(np.mean(centred**2, -1, keepdims=True) + EPSILON)
        return centred / deviation * w[name] + w[f"{name}.bias"]

    def heads(states: np.ndarray, name: str) -> np.ndarray:
        return linear(states, name).reshape(-1, shape.heads, size).swapaxes(0, 1)

    positions = np.arange(len(ids)) + PADDING_ID + 1
    states = w["embeddings.word"][ids] + w["embeddings.position"][positions]
    states = norm(states + w["embeddings.token_type"][0], "embeddings.norm")
    for at in (f"layer.{layer}" for layer in range(shape.layers)):
        query, key, value = (heads(states, f"{at}.{name}") for name in ("query", "key", "value"))
        scores = np.exp(query @ key.swapaxes(1, 2) / size**0.5)
        mixed = scores / scores.sum(-1, keepdims=True) @ value
        attended = linear(mixed.swapaxes(0, 1).reshape(len(ids), -1), f"{at}.attention")
        states = norm(states + attended, f"{at}.attention.norm")
        inner = linear(states, f"{at}.intermediate")
        inner = inner * (1 + np.vectorize(math.erf)(inner / 2**0.5)) / 2
        states = norm(states + linear(inner, f"{at}.output"), f"{at}.output.norm")
    first: np.ndarray = states[0]
    return first / np.linalg.norm(first)
