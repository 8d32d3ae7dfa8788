# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make setup` says on a machine that lacks something: the exact commands to run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NEEDED = ("bash", "env", "dirname", "mkdir", "ln", "sha256sum", "cut", "cat", "touch", "python3", "rm", "sleep", "tail")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A checkout with its tools installed, and a PATH with nothing but what every machine has."""
    for name in ("tests/tools/setup", "requirements.txt"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in NEEDED:
        (binaries / name).symlink_to(str(shutil.which(name)))
    venv = tmp_path / ".cache/venv"
    venv.mkdir(parents=True)
    digest = subprocess.check_output(["sha256sum", str(tmp_path / "requirements.txt")], text=True).split()[0]
    (venv / ".ready").write_text(digest)
    return tmp_path


def provide(machine: Path, name: str, script: str) -> None:
    path = machine / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def setup(machine: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(machine / "bin"), "HOME": str(machine), "SETUP_SYSTEM_PATH": ""}
    command = [str(machine / "bin/bash"), str(machine / "tests/tools/setup"), "all"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def test_a_user_without_docker_gets_the_command(machine: Path) -> None:
    provide(machine, "id", 'if [ "$1" = -un ]; then echo ada; else echo 1000; fi')
    provide(machine, "apt-get", "exit 1")
    result = setup(machine)
    assert result.returncode != 0
    assert "sudo apt-get install --no-install-recommends docker.io" in result.stderr


def test_a_user_whose_engine_does_not_answer_gets_the_commands(machine: Path) -> None:
    provide(machine, "id", 'if [ "$1" = -un ]; then echo ada; else echo 1000; fi')
    for name in ("docker", "dockerd", "iptables", "mmdebstrap", "ssh", "rsync"):
        provide(machine, name, "exit 1")
    result = setup(machine)
    assert result.returncode != 0
    assert "sudo systemctl start docker" in result.stderr
    assert "sudo usermod --append --groups docker ada" in result.stderr


def test_a_machine_without_apt_gets_the_list(machine: Path) -> None:
    provide(machine, "id", "echo 0")
    result = setup(machine)
    assert result.returncode != 0
    assert "Install the equivalents of: docker.io" in result.stderr


def test_an_old_python_is_named(machine: Path) -> None:
    (machine / ".cache/venv/.ready").unlink()
    provide(machine, "python3", 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac')
    result = setup(machine)
    assert result.returncode != 0
    assert "Python 3.11 or newer is needed, found: Python 3.9.2" in result.stderr
    assert os.path.exists(machine / ".cache/ansible_collections/baremetal/inference")
