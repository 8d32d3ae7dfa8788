# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make setup` does and prints on a machine that lacks something: the exact commands to run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NEEDED = (
    *("bash", "env", "dirname", "mkdir", "ln", "sha256sum", "cut", "cat", "touch", "python3", "rm", "sleep", "tail"),
    *("sort", "grep", "awk", "readlink"),
)
FOR_TESTS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mkfs.ext4": "e2fsprogs",
    "chromium-headless-shell": "chromium-headless-shell",
}
ENGINE_HERE = """case "$1" in context) echo unix:///var/run/docker.sock;; info) exit 0;; esac"""
ENGINE_SILENT = """case "$1" in context) echo unix:///var/run/docker.sock;; *) exit 1;; esac"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A checkout with its tools installed, and a PATH with what every machine has, and the programs of FOR_TESTS."""
    for name in ("tests/tools/setup", "requirements.txt"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in NEEDED:
        (binaries / name).symlink_to(str(shutil.which(name)))
    provide(tmp_path, "uname", "echo x86_64")
    for name in FOR_TESTS:
        provide(tmp_path, name)
    # The virtual environment's Python: it would build the images.
    venv = tmp_path / ".cache/venv"
    (venv / "bin").mkdir(parents=True)
    script = venv / "bin/python"
    script.write_text('#!/bin/sh\necho "built: $*"\n')
    script.chmod(0o755)
    (venv / ".ready").write_text(subprocess.check_output(["sha256sum", "requirements.txt"], cwd=tmp_path, text=True))
    return tmp_path


def provide(machine: Path, name: str, script: str = "exit 1") -> None:
    """A command of the machine."""
    path = machine / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def become(machine: Path, user: str) -> None:
    """Set the current user: root may install packages, others may not."""
    provide(machine, "id", f'if [ "$1" = -un ]; then echo {user}; else echo {0 if user == "root" else 1000}; fi')
    # apt-get installs the command docker.
    arrives = f'case "$*" in *docker.io*) cp {machine}/docker {machine}/bin/;; esac'
    provide(machine, "apt-get", f'echo "$*" >>{machine}/apt.log\n{arrives}')


def setup(machine: Path, mode: str = "all", **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(machine / "bin"), "HOME": str(machine), "SETUP_SYSTEM_PATH": "", **more}
    command = [str(machine / "bin/bash"), str(machine / "tests/tools/setup"), mode]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def installed(machine: Path) -> str:
    """The packages that apt-get got as arguments."""
    log = (machine / "apt.log").read_text()
    return log.rpartition("--no-install-recommends ")[2].strip()


def fresh_python(machine: Path) -> None:
    """A Python as Debian's installer leaves it, without the package python3-venv; no tools yet."""
    (machine / ".cache/venv/.ready").unlink()
    provide(machine, "python3", 'case "$*" in *ensurepip*) exit 1;; *venv*) echo "made: $*"; exit 7;; esac')


def test_root_gets_the_missing_packages(machine: Path) -> None:
    become(machine, "root")
    fresh_python(machine)
    (machine / "docker").write_text(f"#!/bin/sh\n{ENGINE_HERE}\n")
    (machine / "docker").chmod(0o755)
    (machine / "bin/cp").symlink_to(str(shutil.which("cp")))
    result = setup(machine)
    assert installed(machine) == "docker.io iptables mmdebstrap openssh-client python3-venv rsync"
    assert "made: -m venv .cache/venv" in result.stdout


def test_debian_13_has_the_command_docker_in_a_package_of_its_own(machine: Path) -> None:
    become(machine, "ada")
    provide(machine, "apt-cache", "echo Package: docker-cli")
    for name in ("dockerd", "iptables", "mmdebstrap", "ssh", "rsync", "newuidmap"):
        provide(machine, name)
    assert "sudo apt-get install --no-install-recommends docker-cli\n" in setup(machine).stderr


def test_only_the_tests_need_the_virtual_machine_and_the_browser(machine: Path) -> None:
    become(machine, "root")
    provide(machine, "docker", ENGINE_HERE)
    for name in ("mmdebstrap", "ssh", "rsync"):
        provide(machine, name)
    for name in FOR_TESTS:
        (machine / "bin" / name).unlink()
    assert setup(machine, "demo").returncode == 0
    assert not (machine / "apt.log").exists()
    assert setup(machine, "all").returncode == 0
    assert installed(machine) == " ".join(sorted(FOR_TESTS.values()))


def test_unit_tests_need_no_docker_and_missing_packages_are_reported_first(machine: Path) -> None:
    become(machine, "ada")
    result = setup(machine, "unit")
    assert result.returncode != 0
    assert "sudo apt-get install --no-install-recommends systemd\n" in result.stderr
    provide(machine, "systemd-analyze")
    result = setup(machine, "unit")
    assert (result.returncode, result.stdout) == (0, "built: images/build promtool\n"), result.stderr


def test_the_mode_tools_needs_only_python3_venv(machine: Path) -> None:
    become(machine, "root")
    fresh_python(machine)
    setup(machine, "tools")
    assert installed(machine) == "python3-venv"


def test_a_user_who_is_not_root_gets_all_commands_at_once(machine: Path) -> None:
    become(machine, "ada")
    fresh_python(machine)
    result = setup(machine)
    assert result.returncode != 0
    packages = "docker.io iptables mmdebstrap openssh-client python3-venv rsync uidmap"
    shown = [line.strip() for line in result.stderr.splitlines() if line.startswith("  ")]
    assert shown[:2] == ["sudo apt-get update", f"sudo apt-get install --no-install-recommends {packages}"]
    assert shown[2].startswith("echo ada:")
    assert shown[3:] == [
        "sudo systemctl start docker",
        "sudo usermod --append --groups docker ada",
        "newgrp docker",
    ]
    assert not (machine / "apt.log").exists()


def test_a_user_with_a_docker_engine_need_not_install_docker(machine: Path) -> None:
    become(machine, "ada")
    provide(machine, "docker", ENGINE_HERE)
    for name in ("ssh", "rsync"):
        provide(machine, name)
    result = setup(machine)
    assert "sudo apt-get install --no-install-recommends mmdebstrap uidmap\n" in result.stderr
    assert "group" not in result.stderr


def test_a_user_whose_docker_engine_does_not_answer_gets_the_commands_that_start_it(machine: Path) -> None:
    become(machine, "ada")
    provide(machine, "docker", ENGINE_SILENT)
    for name in ("dockerd", "iptables", "mmdebstrap", "ssh", "rsync", "newuidmap"):
        provide(machine, name)
    result = setup(machine)
    assert result.returncode != 0
    assert "sudo systemctl start docker" in result.stderr
    assert "sudo usermod --append --groups docker ada" in result.stderr
    assert "apt-get" not in result.stderr


def test_a_machine_without_apt_gets_the_list_of_packages(machine: Path) -> None:
    provide(machine, "id", "echo 0")
    result = setup(machine)
    assert result.returncode != 0
    assert "Install the equivalents of: mmdebstrap openssh-client rsync docker-cli docker.io iptables." in result.stderr


def test_an_old_python_is_refused(machine: Path) -> None:
    become(machine, "root")
    (machine / ".cache/venv/.ready").unlink()
    provide(machine, "python3", 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac')
    result = setup(machine)
    assert result.returncode != 0
    assert "Python 3.11 or newer is needed, found: Python 3.9.2" in result.stderr
    assert (machine / ".cache/ansible_collections/baremetal/inference").is_symlink()


def test_a_processor_other_than_amd64_is_refused(machine: Path) -> None:
    become(machine, "root")
    provide(machine, "uname", "echo aarch64")
    assert "amd64 only, this is: aarch64" in setup(machine).stderr


@pytest.mark.parametrize("endpoint", ["tcp://build.example:2376", "ssh://ada@build.example"])
def test_a_remote_docker_engine_is_refused(machine: Path, endpoint: str) -> None:
    become(machine, "root")
    for name in ("mmdebstrap", "ssh", "rsync"):
        provide(machine, name)
    provide(machine, "docker", f"case $1 in context) echo {endpoint};; esac")
    result = setup(machine)
    assert result.returncode != 0
    assert f"must run on this machine, found: {endpoint}" in result.stderr
    (machine / "bin/docker").unlink()
    assert f"found: {endpoint}" in setup(machine, DOCKER_HOST=endpoint).stderr


@pytest.mark.parametrize(
    "system", ["Docker Desktop [name=seccomp]", "Debian GNU/Linux 13 [name=seccomp name=rootless]"]
)
def test_a_docker_engine_whose_containers_cannot_be_reached_is_refused(machine: Path, system: str) -> None:
    become(machine, "root")
    for name in ("mmdebstrap", "ssh", "rsync"):
        provide(machine, name)
    provide(machine, "docker", f"case $1 in context) echo unix:///run/x.sock;; info) echo '{system}';; esac")
    result = setup(machine)
    assert result.returncode != 0
    assert "Docker's system-wide engine" in result.stderr


@pytest.mark.parametrize(
    ("mode", "parts"), [("demo", "node engine models registry"), ("checks", "controller promtool"), ("all", "all")]
)
def test_a_machine_that_has_everything_gets_the_images_of_the_mode(machine: Path, mode: str, parts: str) -> None:
    become(machine, "root")
    for name in ("mmdebstrap", "ssh", "rsync"):
        provide(machine, name)
    provide(machine, "docker", ENGINE_HERE)
    result = setup(machine, mode)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"built: images/build {parts}\n"
    assert not (machine / "apt.log").exists()
