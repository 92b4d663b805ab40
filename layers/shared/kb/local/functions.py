"""The Lambda functions' own handlers, called in this process as Lambda calls them."""

import importlib.util
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kb

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
CHECKOUT = Path(kb.__file__).parents[3]
"""The repository: template.yaml and functions/ stand in it, not in the package."""


@dataclass(frozen=True, slots=True)
class Context:
    """What handlers get beside the event."""

    function_name: str
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))


def handler_of(function: str) -> Handler:
    """`handler` of functions/<function>/app.py; settings must stand in the environment by then."""
    path = CHECKOUT / "functions" / function / "app.py"
    spec = importlib.util.spec_from_file_location(f"{function}_app", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler
