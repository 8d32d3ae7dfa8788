# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH session of a process, read from a directory in the form of /proc."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import ssh_session
from ansible_collections.baremetal.inference.plugins.module_utils.debian.ssh_session import Login, login

ME = pwd.getpwuid(os.getuid()).pw_name
Process = Callable[..., None]


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    monkeypatch.setattr(ssh_session, "PROC", tmp_path)

    def make(pid: int, parent: int, connection: str = "", name: str = "sh") -> None:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / f"{pid}/stat").write_text(f"{pid} ({name}) S {parent} 1 1\n")
        environ = f"A=b\0SSH_CONNECTION={connection}\0C=d" if connection else "A=b\0"
        (tmp_path / f"{pid}/environ").write_text(environ)

    return make


def test_the_oldest_ancestor_with_ssh_connection_decides(process: Process) -> None:
    """A process below sudo or su may have another connection in its environment, or none."""
    process(10, 1, name="sshd) S 7 (x")
    process(20, 10, "192.0.2.7 40000 192.0.2.1 22")
    process(25, 20)
    process(30, 25, "198.51.100.1 1 192.0.2.1 22")
    assert login(30) == Login(ME, "192.0.2.7", 22)


def test_a_process_outside_ssh_sessions_has_no_login(process: Process) -> None:
    process(10, 1)
    assert login(10) is None


@pytest.mark.parametrize("connection", ["192.0.2.7", "192.0.2.7 40000 192.0.2.1 ssh"])
def test_a_value_of_ssh_connection_that_no_ssh_server_sets_is_ignored(process: Process, connection: str) -> None:
    process(20, 1, connection)
    assert login(20) is None


def test_a_process_that_has_ended_ends_the_search(process: Process) -> None:
    process(20, 10, "192.0.2.7 40000 192.0.2.1 22")
    assert login(20) == Login(ME, "192.0.2.7", 22), "its parent has ended"
    assert login(99) is None


def test_a_process_whose_environment_cannot_be_read_is_passed_over(process: Process, tmp_path: Path) -> None:
    """A process may end between the opening and the reading of the file."""
    process(10, 1, "192.0.2.7 40000 192.0.2.1 22")
    process(20, 10)
    (tmp_path / "20/environ").unlink()
    (tmp_path / "20/environ").mkdir()
    assert login(20) == Login(ME, "192.0.2.7", 22)
