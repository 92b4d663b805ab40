"""Makes all that `sam local` needs, and keeps it until Ctrl-C.

    python -m tests.sam_local.set_up

`sam local` is then called by hand, in another shell, as the README says.
"""

# ruff: noqa: S603 -- the commands are this repository's own

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from samtranslator.yaml_helper import yaml_parse

from tests.opensearch.node import NodeFailed
from tests.sam_local.cloud import ENVIRONMENT, ROOT, Cloud, cloud
from tests.sam_local.engine import NoEngine, engine

PLACE = ROOT / "build" / "sam-local"
BUILD = ROOT / ".aws-sam" / "sam-local" / "build"
TEMPLATE = BUILD / "local.json"
"""Named in samconfig.toml."""
SAM = ROOT / ".venv-sam" / "bin" / "sam"
MACHINE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"


class SetUpFailed(Exception):
    """A command failed; the message has its last words."""


@contextmanager
def ready() -> Iterator[Cloud]:
    """Engine, images, functions and cloud. Raises NoEngine, NodeFailed, OSError, SetUpFailed."""
    # A terminated run leaves by the same door as a finished one, so that what it started goes too.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with engine(PLACE) as found:
            if found.is_own:
                script = Path(__file__).with_name("base_image.sh")
                _run(str(script), str(PLACE / "base"))
            make_functions()
            with cloud(found.gateway) as running:
                yield running
    finally:
        signal.signal(signal.SIGTERM, before)


def make_functions() -> None:
    """`sam build` for this machine, and a template for `sam local` beside what is built."""
    values = {
        "BUILD": BUILD.relative_to(ROOT),
        "ARCHITECTURE": MACHINE,
        # Said too, since a make that called us has exported its own, for AWS.
        "LAYER_PLATFORM": f"{'aarch64' if MACHINE == 'arm64' else MACHINE}-manylinux_2_28",
    }
    given = [f"{name}={value}" for name, value in values.items()]
    _run("make", "--no-print-directory", "build", *given)
    template = yaml_parse((BUILD / "template.yaml").read_text(encoding="utf-8"))
    template["Parameters"]["Architecture"]["Default"] = MACHINE
    # It hands a function no variable that the template does not declare, whatever env.json says.
    declared = template["Globals"]["Function"]["Environment"]["Variables"]
    for name in ENVIRONMENT:
        declared.setdefault(name, "")
    TEMPLATE.write_text(json.dumps(template, default=str), encoding="utf-8")


def _run(*command: str) -> None:
    tools = os.pathsep.join((str(ROOT / ".venv" / "bin"), os.environ["PATH"]))  # uv
    program = shutil.which(command[0], path=tools) or command[0]
    environment = os.environ | {"PATH": tools}
    done = subprocess.run(
        [program, *command[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetUpFailed(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def main() -> int:
    """Say where things are, and wait."""
    try:
        with ready() as running:
            print(f"sam local can be called until Ctrl-C; the cloud is at {running.gateway}")
            print(f"documents go to s3://{ENVIRONMENT['KNOWLEDGE_BUCKET']}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except (NoEngine, NodeFailed, OSError, SetUpFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
