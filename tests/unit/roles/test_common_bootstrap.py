# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first script of a run refuses machines that the collection does not support, before it installs anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml

# No test here runs Ansible.
pytestmark = pytest.mark.once

ROLE = Path(__file__).parents[3] / "roles/common"


@pytest.fixture
def script(tmp_path: Path) -> str:
    """The checks at the beginning of the script, on a machine with Debian 12."""
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    known = yaml.safe_load((ROLE / "vars/main/release.yml").read_text())
    known = {
        name: jinja2.Template(value).render(known) if isinstance(value, str) else value for name, value in known.items()
    }
    whole = jinja2.Template((ROLE / "templates/bootstrap.sh.j2").read_text().partition("\nmissing=\n")[0])
    return whole.render(known, inventory_hostname="gpu-1").replace("/etc/os-release", str(tmp_path / "os-release"))


def run(script: str, tmp_path: Path, machine: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine whose kernel reports this architecture."""
    (tmp_path / "uname").write_text(f"#!/bin/sh\necho {machine}\n")
    (tmp_path / "uname").chmod(0o755)
    return subprocess.run(
        ["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )


def test_an_arm64_machine_is_refused_with_the_reason(script: str, tmp_path: Path) -> None:
    found = run(script, tmp_path, "aarch64")
    assert found.returncode == 1
    for words in (
        "gpu-1 is aarch64. Supported: x86_64 (amd64).",
        "processor and GPU share (GH200",
        "Remove the machine",
    ):
        assert words in found.stderr


def test_an_unsupported_version_of_debian_is_refused_with_the_reason(script: str, tmp_path: Path) -> None:
    system = tmp_path / "os-release"
    system.write_text(system.read_text().replace("12", "11").replace("bookworm", "bullseye"))
    found = run(script, tmp_path, "x86_64")
    assert found.returncode == 1
    assert "gpu-1 runs Debian GNU/Linux 11 (bullseye). Supported: Debian 12 and 13." in found.stderr


def test_a_supported_machine_passes(script: str, tmp_path: Path) -> None:
    assert run(script, tmp_path, "x86_64").returncode == 0
