"""`make` tells what it can do."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make") or ""
DESCRIBED = re.compile(r"^([a-z][a-z-]*):.*## (.+)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not MAKE, reason="make is not installed")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own Makefile
        [MAKE, "--no-print-directory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_target_that_has_a_description():
    described = DESCRIBED.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    shown = [line.split(maxsplit=2)[1:] for line in make("help").stdout.splitlines()]
    assert shown == [[target, description] for target, description in described]
    assert {"help", "run", "test", "lint", "validate", "clean"} <= {row[0] for row in shown}


def test_make_alone_shows_the_help_on_one_screen():
    answer = make()
    assert answer.stdout == make("help").stdout
    assert len(answer.stdout.splitlines()) <= 24
    assert max(map(len, answer.stdout.splitlines())) <= 80


def test_a_machine_without_a_fitting_python_is_told_so_in_one_line(tmp_path):
    for name in ("Makefile", "pyproject.toml", "layers/dependencies/requirements.txt"):
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    answer = make("-C", str(tmp_path), "run", "PYTHONS=python2 no-such-python")
    assert answer.returncode != 0
    assert answer.stdout == ""
    assert answer.stderr.splitlines()[0] == (
        "Python 3.11 or newer with its venv module is needed; tried python2 no-such-python."
    )
    assert not (tmp_path / ".venv").exists()


def test_continuous_integration_runs_the_commands_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    described = dict(DESCRIBED.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    lines = script.read_text(encoding="utf-8").splitlines()
    called = [line.removeprefix("make ") for line in lines if line.startswith("make ")]
    assert {"lint", "test", "validate"} <= set(called) <= described.keys()
