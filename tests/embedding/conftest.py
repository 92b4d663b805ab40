"""The container's own modules and models made by the tests; run by run.sh in an environment."""

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).parent
CONTAINER = HERE.parents[1] / "functions" / "embedding"

if importlib.util.find_spec("onnxruntime") is None:
    # The product's environment; kb and the container share no dependency.
    collect_ignore_glob = ["test_*.py"]
else:
    sys.path[:0] = [str(CONTAINER), str(HERE)]

if TYPE_CHECKING:
    from xlm_r import Weights


@dataclass(frozen=True, slots=True)
class Tiny:
    """A folder as an export has it, and the weights that are in it."""

    folder: Path
    weights: "Weights"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    from tokens import write_tokenizer
    from xlm_r import TINY, random_weights, write_encoder

    folder = tmp_path_factory.mktemp("fp32")
    weights = random_weights(TINY, seed=7)
    write_encoder(folder, TINY, weights)
    write_tokenizer(folder)
    return Tiny(folder, weights)


@pytest.fixture(scope="session")
def tiny_int8(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from quantize import quantize

    folder = tmp_path_factory.mktemp("int8")
    quantize(tiny.folder, folder)
    return folder


@pytest.fixture
def copied(tiny: Tiny, tmp_path: Path) -> Path:
    """A tiny model to break."""
    folder = tmp_path / "copied"
    shutil.copytree(tiny.folder, folder)
    return folder
