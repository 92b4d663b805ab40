"""An encoder with its tokenizer: texts in, unit vectors out (state of the first token, L2 norm)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

Vectors = NDArray[np.float32]

INPUTS = {
    "input_ids": "ids",
    "attention_mask": "attention_mask",
    "token_type_ids": "type_ids",
}
"""What a model may ask for, and what the tokenizer calls it."""
CHARACTERS_A_TOKEN = 16
"""The most that a token of SentencePiece has. What lies behind `max_tokens` of such tokens cannot
be read, and tokenising megabytes of it would take half a minute and a gigabyte."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector a text, in order: (texts, dimension), each of norm 1."""

    vectors: Vectors
    truncated: tuple[int, ...]
    """Indices of the texts whose end was left out."""


class Encoder:
    """`folder` holds model.onnx, what that refers to, and tokenizer.json; `threads` compute."""

    def __init__(self, folder: Path, threads: int, max_tokens: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin while they wait use up the function's share of processor time.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            folder / "model.onnx", options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [declared.name for declared in self._session.get_inputs()]
        if not set(self._inputs) <= set(INPUTS):
            raise ValueError(f"the model wants {self._inputs}; a text has {list(INPUTS)}")
        self._states = _hidden_states(self._session.get_outputs())
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._most_characters = CHARACTERS_A_TOKEN * max_tokens

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of `texts`; none of them may hold a lone surrogate.

        Raises ArithmeticError where the model computes no finite vector.
        """
        # One text a run: int8 scales are taken over everything in a run, so that in a batch a
        # text's vector would depend on its neighbours (cosine down to .992 with itself alone, on
        # real weights). A batch would gain nothing for chunks: one already fills the processor.
        encodings = self._tokenizer.encode_batch([text[: self._most_characters] for text in texts])
        vectors = np.stack([self._first_state(encoding) for encoding in encodings])
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.all(np.isfinite(norms) & (norms > 0)):
            raise ArithmeticError("the model computed a vector without a direction")
        truncated = (
            index
            for index, (text, encoding) in enumerate(zip(texts, encodings, strict=True))
            if encoding.overflowing or len(text) > self._most_characters
        )
        return Embedded(vectors / norms, tuple(truncated))

    def _first_state(self, encoding: Encoding) -> Vectors:
        feed = {
            name: np.array([getattr(encoding, INPUTS[name])], np.int64) for name in self._inputs
        }
        (states,) = self._session.run([self._states], feed)
        first: Vectors = states[0, 0]
        return first


def _hidden_states(outputs: Sequence[Any]) -> str:
    """The output of one vector a token; exports may have a pooled one beside it."""
    names = [output.name for output in outputs if len(output.shape) == 3]
    if len(names) != 1:
        raise ValueError(f"the model has {len(names)} outputs of one vector a token, not one")
    return str(names[0])
