"""A Docker engine: the one that answers, else one of our own, stopped and deleted at the end."""

# ruff: noqa: S603 -- every command is spelled out here

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STARTED_WITHIN = 60
"""Seconds; a few on an idle machine."""
STOPPED_WITHIN = 60


class NoEngine(Exception):
    """No Docker engine answers and none can be started; the message says why."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A Docker engine that answers at DOCKER_HOST, or where `docker` looks for one."""

    is_own: bool
    """Started for this run: it has no images yet."""

    @property
    def gateway(self) -> str:
        """Address under which containers reach this machine."""
        form = "{{(index .IPAM.Config 0).Gateway}}"
        return _docker("network", "inspect", "bridge", "--format", form)


@contextmanager
def engine(folder: Path) -> Iterator[Engine]:
    """The engine that answers; for root, where none does, one with its data below `folder`.

    Raises NoEngine.
    """
    docker, daemon = shutil.which("docker"), shutil.which("dockerd")
    if docker is None:
        raise NoEngine("docker is not installed")
    if _answers():
        yield Engine(is_own=False)
        return
    if os.geteuid() != 0 or daemon is None:
        raise NoEngine("no Docker engine answers, and only root with dockerd can start one")
    folder.mkdir(parents=True, exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="engine-", dir=folder))
    # Elsewhere, since addresses of sockets are short.
    running = Path(tempfile.mkdtemp(prefix="kb-engine-"))
    log = folder / "dockerd.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                daemon,
                f"--data-root={data}",
                f"--exec-root={running}",
                f"--pidfile={running / 'pid'}",
                # Containers reach this machine, and this machine them, without any of its rules.
                *("--iptables=false", "--ip6tables=false", "--ip-forward=false"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches the caller alone, who stops it
        )
    try:
        _await(process, log)
        yield Engine(is_own=True)
    finally:
        _stop(process)
        for place in (data, running):
            shutil.rmtree(place, ignore_errors=True)


def _await(process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.monotonic() + STARTED_WITHIN
    while not _answers():
        if process.poll() is not None or time.monotonic() > give_up:
            said = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise NoEngine(f"dockerd does not start here: {said[-1][:300]}")
        time.sleep(0.2)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOPPED_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answers() -> bool:
    try:
        return bool(_docker("version", "--format", "{{.Server.Version}}"))
    except subprocess.CalledProcessError:
        return False


def _docker(*arguments: str) -> str:
    done = subprocess.run(
        [shutil.which("docker") or "docker", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
