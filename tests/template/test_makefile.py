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


@pytest.fixture
def checkout(tmp_path):
    """A folder set up like ours, where sam, aws and docker only note what they are told."""
    for name in ("Makefile", "samconfig.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in (".venv-sam/bin", ".aws-sam/build", "functions/embedding", "tools"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".aws-sam/build/template.yaml").write_text("Resources: {}\n")
    (tmp_path / "functions/embedding/Dockerfile").write_text("FROM scratch\n")
    (tmp_path / ".venv-sam/.uv").touch()
    (tmp_path / ".venv-sam/.sam").touch()
    for tool, answer in TOOLS.items():
        script = tmp_path / tool
        script.write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >> "{tmp_path}/told"\n{answer}\n')
        script.chmod(0o755)
    return tmp_path


REGISTRY = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
TOOLS = {
    ".venv-sam/bin/sam": "",
    "tools/docker": "",
    "tools/aws": f"""
case "$*" in
  *describe-repositories*) [ -e "$0.made" ] || exit 254; echo {REGISTRY}/kb-embedding ;;
  *create-repository*) touch "$0.made"; echo {REGISTRY}/kb-embedding ;;
  *describe-images*) [ -e "$0.pushed" ] || exit 254 ;;
  *get-login-password*) touch "$0.pushed"; echo secret ;;
esac""",
}


def told_by(checkout: Path, *arguments: str) -> list[str]:
    """What sam, aws and docker were told by this call of make."""
    (checkout / "told").write_text("")
    stamps = ["UV_STAMP=.uv", "SAM_STAMP=.venv-sam/.sam"]
    tools = [f"AWS={checkout}/tools/aws", f"DOCKER={checkout}/tools/docker"]
    answer = make("-C", str(checkout), *stamps, *tools, *arguments)
    assert (answer.returncode, answer.stderr) == (0, "")
    return (checkout / "told").read_text().splitlines()


def fingerprint(told: list[str]) -> str:
    """The fingerprint that `sam deploy` was given."""
    (found,) = re.findall(r"CodeFingerprint=([0-9a-f]{40})$", told[-1])
    return str(found)


EXISTING = "EmbeddingFunctionArn=arn:aws:lambda:eu-west-1:123456789012:function:embedder"


def test_deploying_with_an_existing_embedding_function_needs_no_docker(checkout):
    told = told_by(checkout, "deploy", f"PARAMETERS=Language=en {EXISTING}", "STACK=team")
    assert [line.split()[:2] for line in told] == [["sam", "build"], ["sam", "deploy"]]
    assert "--stack-name team" in told[1]
    assert f"--parameter-overrides Architecture=arm64  Language=en {EXISTING} " in told[1]


def test_deploying_builds_and_pushes_the_image_once(checkout):
    first = told_by(checkout, "deploy", "ARCHITECTURE=x86_64")
    image = re.findall(r"EmbeddingImageUri=(\S+)", first[-1])[0]
    assert re.fullmatch(rf"{REGISTRY}/kb-embedding:[0-9a-f]{{40}}", image)
    steps = [line.split()[:3] for line in first]
    assert steps[:4] + sorted(steps[4:6]) + steps[6:] == [  # the password goes through a pipe
        ["sam", "build", "--region"],
        ["aws", "ecr", "describe-repositories"],
        ["aws", "ecr", "create-repository"],
        ["aws", "ecr", "describe-images"],
        ["aws", "ecr", "get-login-password"],
        ["docker", "login", "--username"],
        ["docker", "build", "--platform"],
        ["docker", "push", image],
        ["sam", "deploy", "--stack-name"],
    ]
    assert f"linux/amd64 --tag {image} functions/embedding" in first[6]
    again = told_by(checkout, "deploy", "ARCHITECTURE=x86_64")
    assert [line for line in again if line.startswith("docker")] == []
    assert fingerprint(again) == fingerprint(first)


def test_another_image_gets_another_tag(checkout):
    told_by(checkout, "image")
    first = (checkout / ".aws-sam/embedding-image").read_text()
    (checkout / "functions/embedding/app.py").write_text("model = 2\n")
    told_by(checkout, "image")
    assert (checkout / ".aws-sam/embedding-image").read_text() != first


def test_a_new_artifact_or_parameter_gives_a_new_fingerprint(checkout):
    told = [told_by(checkout, "deploy", f"PARAMETERS={EXISTING}") for _ in range(2)]
    assert fingerprint(told[0]) == fingerprint(told[1])
    other_value = told_by(checkout, "deploy", f"PARAMETERS={EXISTING} Language=en")
    (checkout / ".aws-sam/build/layer.py").write_text("changed = True\n")
    other_code = told_by(checkout, "deploy", f"PARAMETERS={EXISTING}")
    prints = {fingerprint(each) for each in (told[0], other_value, other_code)}
    assert len(prints) == 3


def test_an_image_without_docker_is_refused_in_words(checkout):
    answer = make("-C", str(checkout), "image", "AWS=true", "DOCKER=no-such-docker")
    assert answer.returncode != 0
    assert answer.stderr.splitlines()[0] == (
        "no-such-docker is needed for the embedding image; an existing embedding function needs"
        " none: PARAMETERS=EmbeddingFunctionArn=..."
    )


def test_continuous_integration_runs_the_commands_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    described = dict(DESCRIBED.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    lines = script.read_text(encoding="utf-8").splitlines()
    called = [line.removeprefix("make ") for line in lines if line.startswith("make ")]
    assert {"lint", "test", "validate"} <= set(called) <= described.keys()
