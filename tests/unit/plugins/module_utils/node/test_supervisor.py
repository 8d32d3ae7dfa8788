# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The supervisor as a separate process, with real signals, pidfds and HTTP, and a fake Docker."""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Beside, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ..conftest import FakeDocker, FakeProc, Starter

DRIVER = """
import sys
import time
release, docker, proc, key, ready, idle = sys.argv[1:]
from pathlib import Path
from inference.core import docker_api, systemd
from inference.engine import adapters, prepare
from inference.engine.probe import probe
from inference.node import events, supervisor
from inference.engine.release import Release
supervisor.PROBE_INTERVAL = 0.05
supervisor.STATUS_INTERVAL = 0.1
object.__setattr__(adapters.get().stop, "kill_grace", 0)
supervisor.EXIT_CODE_TIMEOUT = 0.3
supervisor.IDLE_TIMEOUT = {"silent": 0.3}.get(idle, 9)
sys.exit(supervisor.Supervisor(
    Release.from_json(Path(release).read_text()), docker_api.Docker(Path(docker)), systemd.Notifier(), key,
    proc=Path(proc), on_ready=Path(ready).touch,
    is_idle={"yes": lambda: not time.sleep(0.2), "no": lambda: False, "silent": lambda: time.sleep(60)}[idle],
).run())
"""

LIMIT = 10.0
"""Seconds within which each condition must hold."""


class Supervised:
    """A running supervisor, and its messages to systemd."""

    def __init__(self, starter: Starter, arguments: Sequence[object], directory: Path) -> None:
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(directory / "notify"))
        self.notify.settimeout(0.05)
        self.ready_file = directory / "ready"
        self.messages: list[str] = []
        self.began = time.monotonic()
        self._log = directory / "log"
        self.process = starter.start(DRIVER, arguments, self._log, NOTIFY_SOCKET=str(directory / "notify"))

    def listen(self) -> None:
        with contextlib.suppress(TimeoutError):
            self.messages.append(self.notify.recv(4096).decode())

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < deadline, (self.messages, self.process.poll())
            self.listen()

    @property
    def ready(self) -> bool:
        return any("READY=1" in message for message in self.messages)

    def notified(self, text: str) -> bool:
        return any(text in message for message in self.messages)

    def ended(self) -> tuple[int, str]:
        """The exit code and the log. Reads the remaining messages to systemd first."""
        self.until(lambda: self.process.poll() is not None)
        # The socket keeps what was sent before the end.
        self.notify.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.listen()
        assert self.process.returncode is not None
        return self.process.returncode, self._log.read_text()


@pytest.fixture
def supervise(docker: FakeDocker, starter: Starter, short_tmp: Path, port: int) -> Iterator[Callable[..., Supervised]]:
    started: list[Supervised] = []

    def start(
        engine: dict[str, Any],
        *,
        start_timeout: int = 60,
        drain_timeout: int = 5,
        key: str = "",
        proc: str = "/proc",
        idle: str = "no",
        warm_up: Sequence[dict[str, Any]] = (),
    ) -> Supervised:
        docker.create("vllm-main", **{"port": port, **engine})
        instance = Instance(name="main", model="tiny-a", port=port, accelerator="cpu")
        settings = Settings(start_timeout=start_timeout, drain_timeout=drain_timeout)
        release = short_tmp / "release.json"
        beside = Beside(warm_up=warm_up)
        made = render(instance, [], StoredModel("/m", "r"), "i", settings, beside=beside, number=3)
        release.write_text(made.release.to_json())
        arguments = (release, docker.path, proc, key, short_tmp / "ready", idle)
        started.append(Supervised(starter, arguments, short_tmp))
        return started[-1]

    yield start
    for supervised in started:
        supervised.process.kill()
        supervised.process.wait()
        supervised.notify.close()


Supervise = Callable[..., Supervised]


def test_an_engine_is_ready_after_its_first_answer_and_drained_at_sigterm(
    supervise: Supervise, docker: FakeDocker
) -> None:
    run = supervise({"load_seconds": 0.4})
    run.until(lambda: run.ready)
    loading = [message for message in run.messages if "EXTEND_TIMEOUT_USEC=60000000" in message]
    assert any("STATUS=loading tiny-a: the engine does not listen" in message for message in loading)
    assert any("of 60 s)" in message for message in loading)
    assert run.ready_file.exists()
    run.process.send_signal(signal.SIGTERM)
    code, log = run.ended()
    assert code == 0
    assert docker.processes["vllm-main"].wait(1) == 0, "the engine must end by SIGTERM, not by SIGKILL"
    assert run.notified("STATUS=draining")
    assert "ready after" in log
    assert log.rstrip().endswith("stopped")


def test_the_key_is_sent_to_the_engine_and_never_shown(supervise: Supervise) -> None:
    run = supervise({"key": "s3cret-key"}, key="s3cret-key")
    run.until(lambda: run.ready)
    run.process.terminate()
    _code, log = run.ended()
    assert "s3cret" not in log + "".join(run.messages)


def test_an_engine_that_refuses_the_key_is_not_ready(supervise: Supervise) -> None:
    run = supervise({"key": "s3cret-key"}, key="other")
    run.until(lambda: run.notified("HTTP 401"))
    assert not run.ready


@pytest.mark.parametrize(("code", "expected"), [(0, 1), (3, 3)])
def test_an_engine_that_dies_before_it_is_ready_fails_the_start(supervise: Supervise, code: int, expected: int) -> None:
    """vLLM gives exit code 0 if its core has died. Then the start fails as well, and the message has the reason."""
    run = supervise({"exit_after": 0.4, "code": code})
    status, log = run.ended()
    assert status == expected
    assert "ended before it was ready" in log
    assert ("(exit code 0: vLLM also returns 0 if its engine core has died)" if code == 0 else "(exit code 3)") in log
    assert not run.ready


def test_an_engine_that_dies_of_its_first_completion_is_never_ready(supervise: Supervise) -> None:
    run = supervise({"die_on_completion": True})
    status, log = run.ended()
    assert status == 1
    assert "ended before it was ready" in log
    assert not run.ready
    assert not run.ready_file.exists()


def test_the_exit_code_of_an_engine_that_served_is_passed_on(supervise: Supervise, docker: FakeDocker) -> None:
    run = supervise({})
    run.until(lambda: run.ready)
    docker.processes["vllm-main"].kill()
    began = time.monotonic()
    status, log = run.ended()
    assert time.monotonic() - began < 1
    assert status == 137
    assert "ended by itself after serving" in log and "(exit code 137)" in log
    assert run.notified("STATUS=the engine ended by itself")


def test_the_memory_limit_of_a_killed_engine_is_reported(supervise: Supervise, docker: FakeDocker) -> None:
    run = supervise({})
    run.until(lambda: run.ready)
    docker.out_of_memory = 9 << 30
    docker.processes["vllm-main"].kill()
    status, log = run.ended()
    words = "(exit code 137: killed by the kernel because memory ran out; the container's limit is 9.0 GiB)"
    assert status == 137 and words in log and run.notified(words)


@pytest.mark.parametrize("engine", [{"load_seconds": 60, "ignore_term": True}, {"completion_seconds": 60}])
def test_a_stop_while_the_engine_loads_takes_less_than_a_second(
    supervise: Supervise, docker: FakeDocker, engine: dict[str, Any], port: int
) -> None:
    """In the first case, the engine ignores SIGTERM; in the second, a probe is under way."""
    run = supervise(engine)
    run.until(lambda: run.notified("loading tiny-a"))
    if "completion_seconds" in engine:
        run.until(lambda: _connected(port))
    began = time.monotonic()
    run.process.terminate()
    status, log = run.ended()
    assert time.monotonic() - began < 1
    assert status == 0
    assert docker.processes["vllm-main"].wait(1) == -signal.SIGKILL
    assert "stopped before it was ready" in log


def _connected(port: int) -> bool:
    """Whether a client is connected to the port: 01 is ESTABLISHED in /proc/net/tcp."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_an_engine_that_ignores_sigterm_is_killed_after_the_drain_time(
    supervise: Supervise, docker: FakeDocker
) -> None:
    run = supervise({"ignore_term": True}, drain_timeout=1)
    run.until(lambda: run.ready)
    run.process.terminate()
    run.until(lambda: run.notified("STATUS=draining"))
    # A second SIGTERM must not shorten the drain.
    run.process.terminate()
    began = time.monotonic()
    status, log = run.ended()
    assert time.monotonic() - began > 0.7
    assert status == 0
    assert "still there 1 s after SIGTERM: killed" in log
    assert docker.processes["vllm-main"].wait(1) == -signal.SIGKILL


def test_an_idle_engine_is_killed_without_the_drain_time(supervise: Supervise, docker: FakeDocker) -> None:
    run = supervise({"ignore_term": True}, drain_timeout=60, idle="yes")
    run.until(lambda: run.ready)
    run.process.terminate()
    began = time.monotonic()
    status, log = run.ended()
    assert status == 0
    # The supervisor acts as soon as it knows that the engine is idle.
    assert time.monotonic() - began < 5
    assert run.notified("STATUS=draining: it is drained and has no requests")
    assert "killed" not in log and log.rstrip().endswith("stopped")
    assert docker.processes["vllm-main"].wait(1) == -signal.SIGKILL


def test_an_idle_engine_is_not_killed_while_a_client_is_connected(
    supervise: Supervise, docker: FakeDocker, port: int
) -> None:
    run = supervise({"ignore_term": True}, drain_timeout=60, idle="yes")
    run.until(lambda: run.ready)
    with socket.create_connection(("127.0.0.1", port)):
        run.process.terminate()
        run.until(lambda: run.notified("STATUS=draining: it is drained and has no requests"))
        time.sleep(1.2)
        assert docker.processes["vllm-main"].poll() is None
    assert run.ended()[0] == 0
    assert docker.processes["vllm-main"].wait(1) == -signal.SIGKILL


def test_an_engine_that_does_not_report_whether_it_is_idle_may_finish_its_requests(
    supervise: Supervise, docker: FakeDocker
) -> None:
    run = supervise({}, idle="silent")
    run.until(lambda: run.ready)
    run.process.terminate()
    assert run.ended()[0] == 0
    assert run.notified("STATUS=draining: requests in flight may take up to 5 s")
    assert docker.processes["vllm-main"].wait(1) == 0


def test_the_supervisor_goes_on_while_dockerd_is_down(supervise: Supervise, docker: FakeDocker) -> None:
    run = supervise({})
    run.until(lambda: run.ready)
    docker.down()
    time.sleep(0.3)
    assert run.process.poll() is None
    docker.up()
    time.sleep(0.2)
    assert run.process.poll() is None
    # The supervisor notices a death without dockerd.
    docker.down()
    docker.processes["vllm-main"].kill()
    status, log = run.ended()
    assert status == 1
    assert "exit code unknown: dockerd does not report it" in log


def test_the_start_waits_for_dockerd(supervise: Supervise, docker: FakeDocker) -> None:
    docker.down()
    run = supervise({})
    run.until(lambda: run.notified("waiting for dockerd"))
    docker.up()
    run.until(lambda: run.ready)


def test_an_error_of_docker_is_logged(supervise: Supervise, docker: FakeDocker) -> None:
    docker.start_error = "unresolvable CDI devices nvidia.com/gpu=7"
    run = supervise({})
    status, log = run.ended()
    assert status == 1
    assert "unresolvable CDI devices nvidia.com/gpu=7" in log


def test_an_engine_that_loads_too_long_is_killed(supervise: Supervise, docker: FakeDocker) -> None:
    run = supervise({"never_listens": True, "ignore_term": True}, start_timeout=1)
    status, log = run.ended()
    assert status == 1
    assert "not ready after 1 s" in log
    assert "does not listen" in log
    assert docker.processes["vllm-main"].wait(1) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"status": 500}, "/v1/completions answers HTTP 500"),
        ({"model": "tiny-b"}, "answers for model 'tiny-b' instead of 'main'"),
        ({"tokens": 0}, "does not answer exactly one token"),
        ({"names": ["tiny-a"]}, "/v1/models lacks main"),
    ],
)
def test_an_engine_that_answers_wrongly_is_not_ready(supervise: Supervise, engine: dict[str, Any], words: str) -> None:
    run = supervise(engine)
    run.until(lambda: run.notified(words))
    for _attempt in range(4):
        run.listen()
    assert not run.ready
    assert run.process.poll() is None


def test_warm_up_prompts_come_before_the_engine_is_ready(supervise: Supervise) -> None:
    run = supervise({}, warm_up=[{"prompt": "Hello"}, {"prompt": "Bye"}])
    run.until(lambda: run.ready)
    assert run.notified("warmed up by 2 prompts in ")
    run.process.terminate()
    status, log = run.ended()
    assert status == 0 and "warmed up by 2 prompts in " in log


def test_a_warm_up_prompt_that_can_never_be_answered_fails_the_start(supervise: Supervise, docker: FakeDocker) -> None:
    run = supervise({"chat_status": 400}, warm_up=[{"messages": [{"role": "user", "content": "Hello"}]}])
    status, log = run.ended()
    assert status == 1 and not run.ready
    assert "warm-up prompt 1 of 1: /v1/chat/completions answers HTTP 400" in log
    assert docker.processes["vllm-main"].wait(1) == -signal.SIGKILL


def test_another_process_on_the_port_does_not_make_the_engine_ready(
    supervise: Supervise, docker: FakeDocker, proc: FakeProc, port: int
) -> None:
    """The answers of a process count only if it is in the container."""
    run = supervise({}, proc=str(proc.root))
    proc.listen(port, inode=777)
    proc.process(999_999, namespace=2, inode=777)
    run.until(lambda: run.notified("is taken by another process: pid 999999 (python3 -m server)"))
    assert not run.ready
    proc.process(docker.processes["vllm-main"].pid, namespace=2)
    run.until(lambda: run.ready)
