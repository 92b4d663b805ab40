"""Build step: an fp32 export becomes the int8 model that the container serves.

Attention is fused first, so that memory grows with a text's length and not with its square: 8,192
tokens would need 9 GB. Weights are read one at a time, so that a laptop can build the image.
"""

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from check import LEAST_COSINE, least_cosine
from model import Encoder
from numpy.typing import NDArray
from onnx import TensorProto, external_data_helper, helper, numpy_helper
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_by_fusion

LARGEST_IN_PRODUCT = 64
"""Of 127. A processor without VNNI adds two products of uint8 and int8 in 16 bits: 2 x 255 x 64
fits; 2 x 255 x 127 would saturate there, and only there, so no check on another would tell."""
LARGEST = 127
"""Where nothing is multiplied in int8."""
PAGE = 4096
"""Bytes to which weights are aligned, so that they can be mapped into memory."""


def fuse_attention(path: Path) -> onnx.ModelProto:
    """The graph of `path` with fused attention, for texts without padding; matrices stay outside.

    Raises ValueError where an attention block has another shape than BERT's.
    """
    model = onnx.load(path, load_external_data=False)
    constants = [a.t for node in model.graph.node for a in node.attribute if a.HasField("t")]
    vectors = [tensor for tensor in model.graph.initializer if len(tensor.dims) < 2]
    for tensor in [*constants, *vectors]:
        _load(tensor, path.parent)
    blocks = _count(model, "Softmax")
    options = FusionOptions("bert")
    options.use_multi_head_attention = True
    options.enable_embed_layer_norm = False
    options.disable_attention_mask()
    with contextlib.chdir(path.parent):  # where the optimizer looks for matrices
        fused: onnx.ModelProto = optimize_by_fusion(
            model, "bert", optimization_options=options
        ).model
    if not 0 < blocks == _count(fused, "MultiHeadAttention"):
        done = _count(fused, "MultiHeadAttention")
        raise ValueError(f"{done} of {blocks} attention blocks could be fused")
    return fused


def quantize(source: Path, target: Path) -> None:
    """Write the int8 form of the model in folder `source` to folder `target`, tokenizer included.

    Matrices have scales of their own for every column or row; what flows between them is quantised
    as it comes. Raises ValueError where attention cannot be fused.
    """
    model = fuse_attention(source / "model.onnx")
    with (target / "model.onnx_data").open("wb") as data:
        _Int8(model.graph, source, data).convert()
    onnx.save_model(model, target / "model.onnx")
    shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")


class _Int8:
    """Converts a graph in place; matrices are read from `source` and written to `data`."""

    def __init__(self, graph: onnx.GraphProto, source: Path, data: BinaryIO) -> None:
        self._graph = graph
        self._source = source
        self._data = data
        self._given = {tensor.name: tensor for tensor in graph.initializer}
        self._made: dict[str, TensorProto] = {}
        self._nodes: dict[str, onnx.NodeProto] = {}

    def convert(self) -> None:
        for node in self._graph.node:
            match node.op_type, list(node.input):
                case "MatMul", [_, weight] if self._is_matrix(weight):
                    self._linear(node)
                case "Gather", [table, _] if self._is_matrix(table):
                    self._table(node)
                case _:
                    self._nodes[node.output[0]] = node
        used = {name for node in self._nodes.values() for name in node.input}
        kept = [tensor for name, tensor in self._given.items() if name in used]
        for tensor in kept:
            _load(tensor, self._source)
        nodes = list(self._nodes.values())
        del self._graph.node[:], self._graph.initializer[:]
        self._graph.node.extend(nodes)
        self._graph.initializer.extend([*kept, *self._made.values()])

    def _is_matrix(self, name: str) -> bool:
        tensor = self._given.get(name)
        return bool(tensor and len(tensor.dims) == 2 and tensor.data_type == TensorProto.FLOAT)

    def _linear(self, node: onnx.NodeProto) -> None:
        """states x weight = (int8 states x int8 weight) x scale of states x scales of columns."""
        (states, weight), (out,) = node.input, node.output
        made = f"{weight}_columns"
        if made not in self._made:
            levels, steps = to_levels(self._values(weight), axis=0, largest=LARGEST_IN_PRODUCT)
            self._outside(made, levels)
            self._inside(f"{made}_steps", steps[0])
        parts = [f"{states}_{part}" for part in ("uint8", "step", "zero")]
        self._add("DynamicQuantizeLinear", [states], parts)
        self._add("MatMulInteger", [parts[0], made, parts[2]], [f"{out}_int32"])
        self._add("Cast", [f"{out}_int32"], [f"{out}_levels"], to=TensorProto.FLOAT)
        self._add("Mul", [parts[1], f"{made}_steps"], [f"{out}_steps"])
        self._add("Mul", [f"{out}_levels", f"{out}_steps"], [out])

    def _table(self, node: onnx.NodeProto) -> None:
        """row = int8 row x its scale x spreads of columns.

        Few columns are many times wider than the rest, in every row; with scales of rows alone
        they would leave the rest few levels (measured on real weights: cosine .9898, not .9948).
        """
        (table, rows), (out,) = node.input, node.output
        made = f"{table}_rows"
        if made not in self._made:
            values = self._values(table)
            spread = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values))
            spread[spread == 0] = 1
            values = values / spread  # under the same name, so that a gigabyte is free again
            levels, steps = to_levels(values, axis=1, largest=LARGEST)
            self._outside(made, levels)
            self._inside(f"{made}_steps", steps)
            self._inside(f"{made}_spread", spread)
        self._add("Gather", [made, rows], [f"{out}_int8"])
        self._add("Cast", [f"{out}_int8"], [f"{out}_levels"], to=TensorProto.FLOAT)
        self._add("Gather", [f"{made}_steps", rows], [f"{out}_steps"])
        self._add("Mul", [f"{out}_levels", f"{out}_steps"], [f"{out}_even"])
        self._add("Mul", [f"{out}_even", f"{made}_spread"], [out])

    def _add(self, operator: str, inputs: list[str], outputs: list[str], **given: Any) -> None:
        self._nodes[outputs[0]] = helper.make_node(operator, inputs, outputs, outputs[0], **given)

    def _values(self, name: str) -> NDArray[np.float32]:
        values: NDArray[np.float32] = numpy_helper.to_array(self._given[name], str(self._source))
        return values

    def _inside(self, name: str, values: NDArray[np.float32]) -> None:
        self._made[name] = numpy_helper.from_array(values, name)

    def _outside(self, name: str, values: NDArray[np.int8]) -> None:
        self._data.write(bytes(-self._data.tell() % PAGE))
        tensor = TensorProto(name=name, dims=values.shape, data_type=TensorProto.INT8)
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": "model.onnx_data", "offset": self._data.tell(), "length": values.size}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        values.tofile(self._data)
        self._made[name] = tensor


def to_levels(
    values: NDArray[np.float32], axis: int, largest: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """`values` as int8 levels x steps, one step for each line along `axis`."""
    most = np.maximum(values.max(axis, keepdims=True), -values.min(axis, keepdims=True))
    steps = np.where(most > 0, most / largest, 1).astype(np.float32)
    levels = values / steps
    return np.rint(levels, out=levels).astype(np.int8), steps


def _load(tensor: TensorProto, folder: Path) -> None:
    if external_data_helper.uses_external_data(tensor):
        external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _count(model: onnx.ModelProto, operator: str) -> int:
    return sum(node.op_type == operator for node in model.graph.node)


def main(source: Path, target: Path, max_tokens: int = 8192) -> None:
    """Quantise and compare; exits with a message where the int8 model strays too far."""
    target.mkdir()
    quantize(source, target)
    threads = os.cpu_count() or 1
    both = [Encoder(folder, threads, max_tokens) for folder in (source, target)]
    cosine = least_cosine(*both)
    print(f"least cosine between fp32 and int8: {cosine:.4f}")
    if cosine < LEAST_COSINE:
        sys.exit(f"at least {LEAST_COSINE} is wanted: the int8 model is not used")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
