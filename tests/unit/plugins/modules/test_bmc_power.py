# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module bmc_power against a Redfish service over HTTPS that plays a machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "molecule/shared"))

from redfish import Machine, serve

PASSWORD = "p:ss wörd 4711"


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def service(machine: Machine, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The service's address, and the authority of its certificate."""
    with serve(machine, PASSWORD, tmp_path) as where:
        yield where


def run_module(**params: Any) -> dict[str, Any]:
    """The module as Ansible starts it: its parameters on standard input."""
    name = "ansible_collections.baremetal.inference.plugins.modules.bmc_power"
    arguments = {"ANSIBLE_MODULE_ARGS": {"_ansible_tmpdir": "/tmp", "_ansible_remote_tmp": "/tmp", **params}}
    code = (
        "import sys, json; from ansible.module_utils import basic; basic._ANSIBLE_ARGS = sys.stdin.buffer.read();"
        f"basic._ANSIBLE_PROFILE = 'legacy'; import runpy; runpy.run_module({name!r}, run_name='__main__')"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, input=json.dumps(arguments), capture_output=True, text=True, check=False)
    assert PASSWORD not in done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_module(machine: Machine, service: tuple[str, Path]) -> None:
    given = {"address": service[0], "user": "admin", "password": PASSWORD, "ca_path": str(service[1])}
    asked = run_module(**given)
    assert (asked["changed"], asked["state"]) == (False, "on")
    predicted = run_module(**given, action="cycle", _ansible_check_mode=True)
    assert predicted["changed"] and machine.orders == []
    assert "refuses" in run_module(**{**given, "password": "wrong"})["msg"]
    assert "certificate" in run_module(**{**given, "ca_path": None})["msg"]
    assert run_module(**{**given, "ca_path": None, "validate_certs": False})["state"] == "on"
