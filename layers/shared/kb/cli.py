"""The `kb` command."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kb.errors import KbError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Graded knowledge lookup for agents.",
)


@app.callback()
def _about() -> None:
    """Graded knowledge lookup for agents."""


@app.command()
def serve(
    folder: Annotated[Path, typer.Option(help="Folder of Markdown to serve.")] = Path(
        "knowledge_base_seed"
    ),
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 8000,
) -> None:
    """Start the whole system on this machine and serve a folder until Ctrl-C.

    Example: kb serve --folder ./docs --port 8000
    """
    from rich.console import Console

    from kb.local.serve import serve as serve_folder

    serve_folder(folder, port, Console())


def main() -> None:
    """Run the command; what went wrong is one line on stderr and exit code 1."""
    try:
        app()
    except KbError as error:
        print(f"kb: {error}", file=sys.stderr)
        sys.exit(1)
