"""Options that several commands share."""

from typing import Annotated

import typer

LOCAL_URL = "http://127.0.0.1:8000"
"""Where `kb serve` answers by default."""

Url = Annotated[str, typer.Option("--url", envvar="KB_URL", help="Address of the API.")]
ApiKey = Annotated[
    str,
    typer.Option(
        "--api-key",
        envvar="KB_API_KEY",
        show_default=False,
        help="Key of the API; kb serve needs none.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Stack = Annotated[
    str,
    typer.Option(
        envvar="KB_STACK",
        show_default=False,
        help="Deployed stack, whose ingest function's environment names the rest.",
    ),
]
