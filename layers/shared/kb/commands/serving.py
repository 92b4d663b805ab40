"""kb serve: the whole system on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from kb.commands.screen import console


def serve(
    folder: Annotated[Path, typer.Option(help="Folder of Markdown to serve.")] = Path(
        "knowledge_base_seed"
    ),
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 8000,
) -> None:
    """Start the whole system here and serve a folder.

    Until Ctrl-C. Files added, changed or deleted meanwhile are taken in as they are saved.

    Example: kb serve --folder ./docs --port 8000
    """
    from kb.local.serve import serve as serve_folder

    serve_folder(folder, port, console())
