# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of the Docker engine, and the node tool's library with the paths that it has on a node."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import InstanceFacts
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

MODULE_UTILS = Path(__file__).resolve().parents[4] / "plugins/module_utils"
FAKE_ENGINE = Path(__file__).with_name("fake_engine.py").read_text()


def instance_facts(name: str, model: str = "large", release: int | None = 1, **more: Any) -> dict[str, Any]:
    """An instance that serves, as the module engine_facts returns it."""
    facts: dict[str, Any] = {"serving": True, "running": True, "swapping": False, "drained_by": "", "drain_reason": ""}
    return InstanceFacts(name, model, release, **{**facts, "load_seconds": None, **more}).to_dict()


@cache
def _rendered(name: str, port: int, dtype: str, number: int) -> Rendered:
    instance = Instance(name=name, model="tiny-a", port=port, accelerator="nvidia", gpus=("0", "1"))
    stored = StoredModel("/mnt/models/tiny-a/ab12cd34ef56", "ab12cd34ef56")
    return render(instance, ["--dtype", dtype], stored, "image", Settings(), flags={"dtype": dtype}, number=number)


def stage(paths: Paths, name: str, port: int, dtype: str = "float32") -> None:
    """Stage the next release of an instance."""
    rendered = partial(_rendered, name, port, dtype)
    releases.stage(paths, name, rendered(0).release.id, rendered, pytest.fail)


class Started:
    """A program of starter.py: what subprocess.Popen has for tests."""

    def __init__(self, starter: Starter, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._starter = starter
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        # The starter reports an exit status only once.
        with self._lock:
            if self.returncode is None:
                self.returncode = self._starter.ask(self.pid)
            return self.returncode

    def wait(self, timeout: float = 60) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise TimeoutError(f"process {self.pid} has not ended after {timeout} s")
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Starter:
    """Starts fake engines, and programs that import the node tool's library as `inference`. Several threads may ask."""

    def __init__(self, library: Path) -> None:
        self._command = [sys.executable, "-I", str(Path(__file__).with_name("starter.py")), str(library)]
        self._server: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, asked: object) -> Any:
        with self._lock:
            if self._server is None:
                self._server = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert self._server.stdin and self._server.stdout
            pickle.dump(asked, self._server.stdin)
            self._server.stdin.flush()
            return pickle.load(self._server.stdout)

    def start(self, code: str, arguments: Sequence[object], errors: Path, **environment: str) -> Started:
        """Start a program of this code. Its error output is added to a file."""
        errors.touch()
        given = (code, [str(each) for each in arguments], {**os.environ, **environment}, str(errors))
        return Started(self, self.ask(given))

    def close(self) -> None:
        if self._server is not None:
            assert self._server.stdin and self._server.stdout
            self._server.stdin.close()
            self._server.wait()
            self._server.stdout.close()


class FakeDocker:
    """Answers the few calls that the node tool makes, on a socket. Its containers are processes of this machine."""

    def __init__(self, directory: Path, starter: Starter) -> None:
        self.path = directory / "docker.sock"
        self.engines: dict[str, str] = {}
        """The options of each container's engine (fake_engine.py), as JSON."""
        self.processes: dict[str, Started] = {}
        self.images: set[str] = set()
        self.removed: list[str] = []
        self.start_error = ""
        self.out_of_memory = 0
        """The memory limit, in bytes, at which the kernel has killed containers; 0 if they end otherwise."""
        self._starter = starter
        self._errors = directory / "engines.log"
        self._server: socketserver.BaseServer | None = None

    def create(self, name: str, **engine: Any) -> None:
        """A container that would run the fake engine."""
        self.engines[name] = json.dumps(engine)

    def up(self) -> None:
        """Let the engine answer, or answer again."""
        docker = self

        class Handler(BaseHTTPRequestHandler):
            def reply(self, status: int, body: object = None) -> None:
                data = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                # A supervisor that a test has killed has closed the connection.
                with contextlib.suppress(BrokenPipeError):
                    self.wfile.write(data)

            def handle_call(self) -> None:
                self.reply(*docker.answer(self.command, self.path))

            do_GET = do_POST = do_DELETE = handle_call

            def address_string(self) -> str:
                return "socket"

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        self.path.unlink(missing_ok=True)
        self._server = socketserver.ThreadingUnixStreamServer(str(self.path), Handler)
        # With the default interval, each down() would wait for 0.5 s.
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """Stop answering. The containers continue, as with live-restore."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self.path.unlink(missing_ok=True)
            self._server = None

    def close(self) -> None:
        self.down()
        for process in self.processes.values():
            process.kill()
            process.wait()

    def answer(self, method: str, path: str) -> tuple[int, object]:
        if path == "/_ping":
            return 200, None
        if found := re.fullmatch(r"/images/(.*)/json", path):
            return (200, {}) if found[1] in self.images else (404, {"message": "No such image"})
        found = re.fullmatch(r"/containers/([^/?]+)(?:/(\w+))?(?:\?.*)?", path)
        assert found, path
        name, verb = found[1], found[2]
        if name not in self.engines:
            return 404, {"message": f"No such container: {name}"}
        if method == "DELETE":
            self.removed.append(name)
            del self.engines[name]
            return 204, None
        if verb == "start":
            if self.start_error:
                return 500, {"message": self.start_error}
            if name in self.processes:
                return 304, None
            self.processes[name] = self._starter.start(FAKE_ENGINE, [self.engines[name]], self._errors)
            return 204, None
        process = self.processes.get(name)
        code = process.poll() if process else 0
        running = process is not None and code is None
        # Docker reports an end by a signal as 128 + the signal's number.
        code = 128 - code if code is not None and code < 0 else code
        state = {"Running": running, "Pid": process.pid if process and running else 0, "ExitCode": code or 0}
        state["OOMKilled"] = bool(self.out_of_memory)
        return 200, {"Name": f"/{name}", "State": state, "HostConfig": {"Memory": self.out_of_memory}}


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A directory whose path fits into a socket's address (108 bytes)."""
    directory = Path(tempfile.mkdtemp(prefix="inferctl-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def docker(short_tmp: Path, starter: Starter) -> Iterator[FakeDocker]:
    fake = FakeDocker(short_tmp, starter)
    fake.up()
    yield fake
    fake.close()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds the package `inference`, as /usr/local/lib does on a node."""
    directory = tmp_path_factory.mktemp("lib")
    (directory / "inference").symlink_to(MODULE_UTILS)
    return directory


@pytest.fixture(scope="session")
def starter(library: Path) -> Iterator[Starter]:
    started = Starter(library)
    yield started
    started.close()


class FakeProc:
    """A directory that looks like /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "net").mkdir(parents=True)
        self.lines: list[str] = []

    def listen(self, port: int, inode: int, address: str = "0100007F") -> None:
        """A listening socket; the address is as the kernel writes it (127.0.0.1)."""
        self.lines.append(f"   0: {address}:{port:04X} 00000000:0000 0A 0:0 00:0 0 0 0 {inode} 1 0 100 0 0 10 0")
        (self.root / "net/tcp").write_text("\n".join(["header", *self.lines]) + "\n")

    def process(self, pid: int, namespace: int, inode: int | None = None, cgroup: str = "/") -> None:
        """A process in a PID namespace, holding a socket."""
        directory = self.root / str(pid)
        for name in ("fd", "ns"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        (directory / "ns/pid").unlink(missing_ok=True)
        (directory / "ns/pid").symlink_to(f"pid:[{namespace}]")
        (directory / "cmdline").write_bytes(b"python3\0-m\0server\0")
        (directory / "cgroup").write_text(f"0::{cgroup}\n")
        for number, target in enumerate(["/dev/null", *([f"socket:[{inode}]"] if inode is not None else [])]):
            (directory / "fd" / str(number)).unlink(missing_ok=True)
            (directory / "fd" / str(number)).symlink_to(target)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "proc")
