"""Runs a command beside a throw-away OpenSearch node with the k-NN plugin, made by Maven.

    python tests/opensearch/node.py run python -m pytest tests/contract tests/opensearch

The command finds the node by OPENSEARCH_TEST_ENDPOINT and its directory, whose process `stop` and
`start` end and begin again, by OPENSEARCH_TEST_NODE. Needs mvn, a JDK 17 to 23 (24 has no security
manager, which OpenSearch 2 needs) and, where root calls, setpriv. Traps stepped around here:

- Maven's k-NN zip has no native libraries: with the engines faiss (the default) and nmslib the
  node halts at the index's first refresh. Every knn_vector field must name the engine lucene.
- The plugins beside k-NN (HTTP, painless, analyzers, delete by query) come as bare jars: they need
  a descriptor and a security policy, and to lie in `modules`, each without the others' jars.
- OpenSearch refuses to run as root: it runs as `nobody` then, who must be able to read all
  directories. Where one above the repository is closed to him, they move to a temporary place.
- Memory stays unlocked (a lock needs a ulimit), and the disk watermarks are off, since a disk
  that is 95 % full would make every index read-only.
- JNA unpacks a library into java.io.tmpdir, so that this is a directory of the node's own.
"""

# ruff: noqa: S603, S607 -- every command is spelled out here, by names every machine has

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
BUILD = HERE.parents[1] / "build" / "opensearch"
HEAP = "768m"
HEALTHY_WITHIN = 180
"""Seconds from start to a healthy node; about 15 on an idle machine."""
STOPPED_WITHIN = 60

_RUNTIME = "permission java.lang.RuntimePermission"
# Module -> plugin class, what it extends, permissions, jars.
MODULES = {
    "transport-netty4": (
        "org.opensearch.transport.Netty4Plugin",
        "",
        (
            f'{_RUNTIME} "getClassLoader"',
            f'{_RUNTIME} "setContextClassLoader"',
            'permission java.net.SocketPermission "*", "accept,connect"',
            'permission java.io.FilePermission "/proc/sys/net/core/somaxconn", "read"',
            'permission java.util.PropertyPermission "sun.nio.ch.bugLevel", "write"',
        ),
        ("netty-*", "transport-netty4-*"),
    ),
    "lang-painless": (
        "org.opensearch.painless.PainlessPlugin",
        "",
        (f'{_RUNTIME} "createClassLoader"', f'{_RUNTIME} "getClassLoader"'),
        ("lang-painless-*", "*-painless-spi-*", "antlr4-*", "asm-*"),
    ),
    "analysis-common": (
        "org.opensearch.analysis.common.CommonAnalysisPlugin",
        "lang-painless",
        (),
        ("analysis-common-*",),
    ),
    "reindex": (
        "org.opensearch.index.reindex.ReindexPlugin",
        "",
        (),
        (
            "reindex-client-*",
            "*-rest-client-*",
            "*-ssl-config-*",
            "http*",
            "commons-codec-*",
            "commons-logging-*",
        ),
    ),
}


class NodeFailed(Exception):
    """The node cannot be built, started or stopped; the message says where to look."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node's directory and port; its process is found by the pid file in that directory."""

    directory: Path
    port: int

    @classmethod
    def create(cls) -> Self:
        """A node not started yet, without data, on a port that is free now."""
        place = BUILD
        place.mkdir(parents=True, exist_ok=True)
        if not _as_node_user("test", "-x", str(place)):
            place = Path(tempfile.mkdtemp(prefix="opensearch-"))
            place.chmod(0o755)
        home = _home(place)
        directory = Path(tempfile.mkdtemp(prefix="node-", dir=place))
        directory.chmod(0o755)
        for name in ("config", "data", "logs", "tmp"):
            (directory / name).mkdir()
        (directory / "home").symlink_to(home)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        _write_configuration(directory, port)
        (directory / "port").write_text(str(port))
        if os.geteuid() == 0:
            for path in (directory, *directory.rglob("*")):
                if not path.is_symlink():
                    shutil.chown(path, _node_user())
        return cls(directory, port)

    @classmethod
    def at(cls, directory: Path) -> Self:
        """The node that was created in this directory."""
        return cls(directory, int((directory / "port").read_text()))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """Its process, or None where it does not run or its id is another program's by now."""
        try:
            pid = int((self.directory / "pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if str(self.directory).encode() in command else None

    def start(self) -> None:
        """Start it on the data it has where it does not run; return once it is healthy."""
        if self.pid is not None:
            return
        home = (self.directory / "home").resolve()
        flags = (
            f"-Xms{HEAP}",
            f"-Xmx{HEAP}",
            "-Djava.security.manager=allow",
            "-Djava.locale.providers=SPI,COMPAT",
            "-Dfile.encoding=UTF-8",
            f"-Djava.io.tmpdir={self.directory / 'tmp'}",
            "-Djna.nosys=true",
            "-Dlog4j.shutdownHookEnabled=false",
            "-Dlog4j2.disable.jmx=true",
            f"-Dopensearch.path.home={home}",
            f"-Dopensearch.path.conf={self.directory / 'config'}",
            "-Dopensearch.distribution.type=tar",
        )
        command = [
            *_user_prefix(),
            _java(),
            *flags,
            *("-cp", f"{home / 'lib'}/*", "org.opensearch.bootstrap.OpenSearch"),
        ]
        log = self.directory / "logs" / "node.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=self.directory / "tmp",  # for crash dumps
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the caller alone, who stops the node
            )
        (self.directory / "pid").write_text(str(process.pid))
        give_up = time.monotonic() + HEALTHY_WITHIN
        while not self._healthy():
            if process.poll() is not None:
                lines = log.read_text(errors="replace").splitlines()
                tail = [line for line in lines if not line.lstrip().startswith("at ")][-15:]
                raise NodeFailed("the node died while starting:\n" + "\n".join(tail))
            if time.monotonic() > give_up:
                self.stop()
                raise NodeFailed(f"not healthy within {HEALTHY_WITHIN} s: {log}")
            time.sleep(0.3)

    def stop(self) -> None:
        """Stop its process, if there is one; the data stays."""
        pid = self.pid
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        give_up = time.monotonic() + STOPPED_WITHIN
        while self.pid is not None:
            if time.monotonic() > give_up:
                os.kill(pid, signal.SIGKILL)
                give_up += STOPPED_WITHIN
            _reap(pid)
            time.sleep(0.1)

    def remove(self) -> None:
        """Stop it and delete its data; the program files stay where they can be used again."""
        self.stop()
        place = self.directory.parent
        shutil.rmtree(self.directory if place == BUILD else place)

    def _healthy(self) -> bool:
        url = f"{self.endpoint}/_cluster/health?wait_for_status=yellow&timeout=2s"
        try:
            with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310
                return bool(json.load(response)["status"] in ("yellow", "green"))
        except (OSError, ValueError):
            return False


def _reap(pid: int) -> None:
    # A child of ours stays in /proc until it is waited for; a child of another is not ours to wait.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _home(place: Path) -> Path:
    """The program files, fetched and laid out once for each state of this recipe."""
    recipe = POM.read_bytes() + Path(__file__).read_bytes()
    home = place / f"home-{hashlib.sha256(recipe).hexdigest()[:8]}"
    if home.exists():
        return home
    if shutil.which("mvn") is None:
        raise NodeFailed("mvn is not installed")
    new = Path(tempfile.mkdtemp(prefix="new-", dir=place))
    log = place / "mvn.log"
    with log.open("wb") as output:
        made = subprocess.run(
            ["mvn", "-B", "-q", "-f", str(POM), f"-Ddist={new}", "package"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
    if made.returncode:
        raise NodeFailed(f"mvn failed, see {log}")
    found = re.search(r"<opensearch.version>(.+?)</opensearch.version>", POM.read_text())
    if found is None:
        raise NodeFailed(f"{POM} names no opensearch.version")
    for name, module in MODULES.items():
        _make_module(new, name, found[1], *module)
    (new / "bin").mkdir()
    for path in (new, *new.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        new.rename(home)
    except OSError:  # another run was faster
        shutil.rmtree(new)
    return home


def _make_module(
    home: Path,
    name: str,
    version: str,
    plugin: str,
    extended: str,
    permissions: tuple[str, ...],
    jars: tuple[str, ...],
) -> None:
    module = home / "modules" / name
    module.mkdir(parents=True)
    (module / "plugin-descriptor.properties").write_text(
        f"name={name}\ndescription={name}\nclassname={plugin}\nextended.plugins={extended}\n"
        f"version={version}\nopensearch.version={version}\njava.version=11\ncustom.foldername=\n"
        "has.native.controller=false\n"
    )
    if permissions:
        grants = "".join(f"  {permission};\n" for permission in permissions)
        (module / "plugin-security.policy").write_text(f"grant {{\n{grants}}};\n")
    for pattern in jars:
        for jar in (home / "lib").glob(pattern):
            jar.rename(module / jar.name)


def _write_configuration(directory: Path, port: int) -> None:
    (directory / "config" / "opensearch.yml").write_text(
        "cluster.name: test\nnode.name: test\ndiscovery.type: single-node\n"
        f"network.host: 127.0.0.1\nhttp.port: {port}\n"
        f"path.data: {directory / 'data'}\npath.logs: {directory / 'logs'}\n"
        "bootstrap.memory_lock: false\n"
        "cluster.routing.allocation.disk.threshold_enabled: false\n"
    )
    (directory / "config" / "log4j2.properties").write_text(
        "appender.c.type=Console\nappender.c.name=c\nappender.c.layout.type=PatternLayout\n"
        "appender.c.layout.pattern=[%d][%-5p][%c{1.}] %m%n\n"
        "rootLogger.level=info\nrootLogger.appenderRef.c.ref=c\n"
    )


def _java() -> str:
    homes = [os.environ.get("OPENSEARCH_JAVA_HOME"), os.environ.get("JAVA_HOME")]
    candidates = [str(Path(home) / "bin" / "java") for home in homes if home] + ["java"]
    for java in candidates:
        if shutil.which(java) is None:
            continue
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        found = re.search(r'version "(\d+)', said.stderr)
        if found and 17 <= int(found[1]) <= 23:
            return java
    raise NodeFailed("no JDK 17 to 23: put one on the path or name it in OPENSEARCH_JAVA_HOME")


def _node_user() -> str:
    return os.environ.get("OPENSEARCH_USER", "nobody")


def _user_prefix() -> list[str]:
    if os.geteuid() != 0:
        return []
    user = _node_user()
    group = subprocess.run(["id", "-g", user], capture_output=True, text=True, check=True).stdout
    return ["setpriv", f"--reuid={user}", f"--regid={group.strip()}", "--clear-groups"]


def _as_node_user(*command: str) -> bool:
    return subprocess.run([*_user_prefix(), *command], check=False).returncode == 0


def _run(command: list[str]) -> int:
    node = Node.create()
    # A terminated run leaves by the same door as a finished one, so that the node goes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        node.start()
        print(f"OpenSearch at {node.endpoint}, process {node.pid}", flush=True)
        environment = {
            **os.environ,
            "OPENSEARCH_TEST_ENDPOINT": node.endpoint,
            "OPENSEARCH_TEST_NODE": str(node.directory),
        }
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        node.remove()


def main() -> int:
    """Run a command beside a node of its own, or stop or start a node that runs for one."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("run").add_argument("command", nargs=argparse.REMAINDER)
    for action in ("stop", "start"):
        actions.add_parser(action).add_argument("directory", type=Path)
    asked = parser.parse_args()
    try:
        match asked.action:
            case "run":
                return _run(asked.command)
            case "stop":
                Node.at(asked.directory).stop()
            case "start":
                Node.at(asked.directory).start()
    except NodeFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
