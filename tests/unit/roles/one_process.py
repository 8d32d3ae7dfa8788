# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play's tasks run in the process of the play, and modules in copies of one process.

Ansible forks a process for each task and host. Each process compiles its imports again: with stand-ins for modules,
this takes half of a play's time. Here, the process of the play runs a task for one host after another, when Ansible
begins to wait for the results. So, as with forks, a task on one host does not see the result of another host.
Modules without a stand-in run in copies of module_server.py.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from ansible.executor.process import worker
from ansible.plugins import strategy
from ansible.plugins.connection import local
from ansible.utils.display import Display


class OneProcess(worker.WorkerProcess):
    """A worker whose task waits until the strategy waits for results."""

    waiting: ClassVar[list[OneProcess]] = []
    queue: Any = None
    """The queue of results and messages, while a task runs."""
    _host: Any
    _task: Any
    _play_context: Any

    def start(self) -> None:
        # A task changes its own copies, as in a process of its own. A task only reads the blocks and roles around:
        # to copy these, too, would take a sixth of a play's time.
        around = self._task._parent
        self._task, self._play_context = self._task.copy(exclude_parent=True), self._play_context.copy()
        self._task._parent = around
        self.waiting.append(self)

    def work(self) -> None:
        """Run the task, and put its result into the queue."""
        variables, groups = self._host.vars, self._host.groups
        OneProcess.queue = self._final_q
        try:
            self.run()
        finally:
            OneProcess.queue = None
            self._host.vars, self._host.groups = variables, groups

    def _detach(self) -> None:
        """Keep the process's own input and output."""


def _queue(_display: Display) -> Any:
    """Messages of a task go through the queue. Another thread prints them."""
    return OneProcess.queue if threading.current_thread() is threading.main_thread() else None


def use() -> None:
    """Run all tasks in this process from now on."""
    # A worker checks standard output for text of its task, and sets signal handlers. Both are for a process of its own.
    worker.sys = SimpleNamespace(stdout=io.StringIO(), stderr=io.StringIO())
    worker.signal = SimpleNamespace(signal=lambda *_given: None, SIGINT=None, SIGTERM=None)
    Display.set_queue = lambda _display, _queue: None
    Display._final_q = property(_queue, lambda _display, _queue: None)
    strategy.WorkerProcess = OneProcess
    wait = strategy.StrategyBase._wait_on_pending_results

    def work_and_wait(self: strategy.StrategyBase, iterator: Any) -> Any:
        while OneProcess.waiting:
            OneProcess.waiting.pop(0).work()
        return wait(self, iterator)

    strategy.StrategyBase._wait_on_pending_results = work_and_wait
    _serve_modules()


def _serve_modules() -> None:
    """Let module_server.py run modules, if a task runs on this machine with Ansible's default settings."""
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("module_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    run_again = local.Connection.exec_command
    by_default = f"/bin/sh -c '{sys.executable} && sleep 0'"

    def run(connection: Any, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        if cmd != by_default or not in_data or b"_ANSIBALLZ_WRAPPER" not in in_data:
            found: tuple[int, bytes, bytes] = run_again(connection, cmd, in_data, sudoable)
            return found
        assert server.stdin and server.stdout
        pickle.dump((in_data, os.getcwd(), dict(os.environ)), server.stdin)
        server.stdin.flush()
        answer: tuple[int, bytes, bytes] = pickle.load(server.stdout)
        return answer

    local.Connection.exec_command = run
