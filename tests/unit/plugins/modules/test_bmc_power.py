# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module bmc_power against a Redfish service over HTTPS that simulates a machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.modules import bmc_power

sys.path.insert(0, str(Path(__file__).parents[4] / "molecule/shared"))

from redfish import Machine, serve

RunModule = Callable[..., dict[str, Any]]

PASSWORD = "p:ss wörd 4711"


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def service(machine: Machine, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The service's address, and the authority of its certificate."""
    with serve(machine, PASSWORD, tmp_path) as where:
        yield where


def run_program(**params: Any) -> dict[str, Any]:
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


def test_the_power_is_read_and_predicted_and_refusals_are_named(
    machine: Machine, service: tuple[str, Path], run_module: RunModule
) -> None:
    given = {"address": service[0], "user": "admin", "password": PASSWORD, "ca_path": str(service[1])}
    asked = run_program(**given)
    assert (asked["changed"], asked["state"]) == (False, "on")
    predicted = run_program(**given, action="cycle", _ansible_check_mode=True)
    assert predicted["changed"] and machine.orders == []

    def call(**changes: Any) -> dict[str, Any]:
        """The module in this process, because the start of another process takes longer than the call."""
        answer = run_module(bmc_power, **{**given, **changes})
        assert PASSWORD not in json.dumps(answer, ensure_ascii=False)
        return answer

    assert "refuses" in call(password="wrong")["msg"]
    assert "certificate" in call(ca_path=None)["msg"]
    assert call(ca_path=None, validate_certs=False)["state"] == "on"
