# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of a gang as processes of this machine: each has its own supervisor, Docker and address on 127.0.0.0/8."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ...conftest import FakeDocker, Started, Starter

SILENCE = 1.5
"""Seconds of silence in these tests. The true limit is tested with a simulated clock."""

LIMIT = 10.0
"""Seconds within which each condition must hold."""

DRIVER = """
import json, sys
root, release, docker, gang, silence, idle = sys.argv[1:]
from pathlib import Path
from inference.core import docker_api, systemd
from inference.core.paths import Paths
from inference.engine.gang.members import Gang
from inference.engine.release import Release
from inference.node import supervisor
from inference.node.gang import channel, follows, leads, link, messages, record
supervisor.PROBE_INTERVAL = 0.05
supervisor.EXIT_CODE_TIMEOUT = 0.3
leads.STATUS_INTERVAL = follows.STATUS_INTERVAL = 0.2
leads.IDLE_INTERVAL = leads.GATEWAYS_NOTICE = leads.POLL = follows.TURN = 0.1
leads.PROOF_INTERVAL = follows.OFFER_INTERVAL = 0.1
follows.REFUSED_RETRY = follows.CREATE_RETRY = channel.RETRY = 0.1
channel.Dialer.want.__defaults__ = (0.1,)
link.SILENCE, link.BEAT, link.HELLO_LIMIT = float(silence), 0.2, 1.0
paths, gang = Paths(Path(root)), Gang.from_dict(json.loads(gang))
release = Release.from_json(Path(release).read_text())
secret = Path(root) / "gang.key"
api, notifier = docker_api.Docker(Path(docker)), systemd.Notifier()
say = lambda text: print(text, file=sys.stderr, flush=True)
notes = record.Record(paths, gang, say)
class Own:
    def __init__(self): self.current = 0
    def unmoved(self): return ""
    def arrived(self): say("is accepted")
    def offers(self): return messages.Offers(release.number, self.current, release.number, "3:aaaaaaaaaaaa")
    def prove(self, proof): self.current = release.number
    def move(self, wanted):
        (Path(root) / "moved").write_text(wanted.digest)
        return "has no such release"
if gang.rank:
    sys.exit(follows.Follows(
        gang, release, api, notifier, secret, notes, create=lambda: api.remove(release.container), leave_limit=8.0,
        own=Own(),
    ).run())
drained = Path(root) / "drained"
side = leads.Leads(
    gang, secret, notes, notifier, is_idle=lambda: idle == "yes",
    proof=lambda: messages.Prove("", 0) if (Path(root) / "proven").exists() else None,
    drain=drained.write_text, undrain=lambda: drained.unlink(missing_ok=True),
)
sys.exit(supervisor.Supervisor(release, api, notifier, gang=side, is_idle=lambda: idle == "yes").run())
"""


class Machine(FakeDocker):
    """A Docker that can start a removed container again, so a test needs no new `docker create`."""

    def answer(self, method: str, path: str) -> tuple[int, object]:
        if method == "DELETE":
            for process in self.processes.values():
                process.kill()
                process.wait()
            self.processes.clear()
            return 204, None
        return super().answer(method, path)


class Unit:
    """The supervisor of one member, as systemd runs it."""

    def __init__(self, directory: Path, starter: Starter, gang: Gang, port: int, *, engine: dict[str, Any]) -> None:
        self.gang = gang
        self.directory = directory
        self.starter = starter
        self.paths = Paths(directory)
        self.secret = directory / "gang.key"
        self.idle = "yes"
        self.messages: list[str] = []
        self.process: Started | None = None
        self.docker = Machine(directory, starter)
        if gang.rank:
            self.docker.create("vllm-big", never_listens=True)
        else:
            self.docker.create("vllm-big", port=port, names=["big", "tiny-a"], model="big", **engine)
        self.docker.up()
        self.secret.write_text("0123456789abcdef\n")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(directory / "notify"))
        self.notify.settimeout(0.02)
        instance = Instance(name="big", model="tiny-a", port=port, accelerator="cpu")
        rendered = render(instance, [], StoredModel("/m", "r"), "i", Settings(drain_timeout=5), number=3)
        (directory / "release.json").write_text(rendered.release.to_json())

    def start(self) -> None:
        """Start the unit. Its container is fresh."""
        self.docker.answer("DELETE", "")
        files = (self.directory, self.directory / "release.json", self.docker.path)
        arguments = (*files, json.dumps(self.gang.to_dict()), SILENCE, self.idle)
        self.messages.clear()
        notify = str(self.directory / "notify")
        self.process = self.starter.start(DRIVER, arguments, self.directory / "log", NOTIFY_SOCKET=notify)

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(encoding="utf-8")

    @property
    def running(self) -> bool:
        """Whether the engine runs."""
        process = self.docker.processes.get("vllm-big")
        return process is not None and process.poll() is None

    @property
    def state(self) -> GangState | None:
        return gangs.read(self.paths, "big")

    @property
    def phase(self) -> str:
        state = self.state
        return state.state if state else ""

    @property
    def code(self) -> int | None:
        return self.process.poll() if self.process else None

    def notified(self, text: str) -> bool:
        """Whether systemd has got a message with a text."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.messages.append(self.notify.recv(4096).decode())
        return any(text in message for message in self.messages)

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def kill_engine(self) -> None:
        self.docker.processes["vllm-big"].kill()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.docker.close()
        self.notify.close()


def until(condition: Callable[[], bool], limit: float = LIMIT, report: Callable[[], object] = lambda: "") -> float:
    """Wait for a condition, and return how long it took, in seconds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit, report()
        time.sleep(0.02)
    return time.monotonic() - began


def members(size: int) -> tuple[Member, ...]:
    return tuple(Member(f"gpu-{rank}", rank, f"127.0.0.{rank + 1}") for rank in range(size))
