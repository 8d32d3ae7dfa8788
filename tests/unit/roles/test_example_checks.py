# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of the playbook site run on the example inventory, filled in, on recorded machines.

Modules are stand-ins: tests/unit/inventories tests the example with the modules' libraries. Here, Ansible evaluates
each variable of the example, and the roles' specifications check its type.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..inventories.test_example import EXAMPLE, HERE, gpus
from .conftest import ROOT, Stage
from .test_common_due import AS_DECLARED, DEBIAN
from .test_due import SOUND
from .test_due_hardware import NOTHING, WELL, engine
from .test_due_services import SOUND as SERVICE

# The scenario `rolling` makes these checks with the newest ansible-core.
pytestmark = pytest.mark.once

HOSTS = """
[inference]
gpu1 inference_address=192.0.2.11
[gateway]
gw1 inference_address=192.0.2.21
[monitoring]
gw1
"""

COMMON = ("apt_sources", "admin_accounts", "ssh_server", "system_settings", "disks", "firewall")
SERVICES = (
    *("gateway", "gateway_certificate", "gateway_facts"),
    *("monitoring_exporters", "monitoring_logs", "monitoring_server", "backup"),
)
ANSWERS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(COMMON, AS_DECLARED),
    **WELL,
    **dict.fromkeys(SERVICES, SERVICE),
    **SOUND,
    "apt_packages": {**NOTHING, **AS_DECLARED},
    "docker_daemon": engine(),
    "node_facts": {"left": []},
}
"""What the modules answer on machines that are as declared."""


def fill_in(kind: str, home: Path) -> None:
    """Write the example's variables with the answers beside the inventory of a stage, and keys of package sources."""
    shutil.copytree(EXAMPLE / "group_vars", home / "group_vars")
    for name, values in yaml.safe_load((HERE / f"{kind}.yml").read_text()).items():
        path = home / name
        path.with_name(f"zz_{path.name}").write_text(json.dumps(values))
    driver = home / "group_vars/inference/driver.yml"
    driver.write_text(driver.read_text().replace("/srv/keys", str(home)))
    for name in ("nvidia.asc", "nvidia-container-toolkit.asc"):
        (home / name).write_text("-----BEGIN PGP PUBLIC KEY BLOCK-----\n")


# The second machine differs in few values, which tests/unit/inventories checks without Ansible.
@pytest.mark.parametrize("kind", ["hgx-h100", pytest.param("pcie-l40s", marks=pytest.mark.full)])
def test_every_check_of_site_accepts_the_filled_example(staged: Callable[..., Stage], kind: str) -> None:
    plays = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    (checks,) = [play for play in plays if play["name"] == "Check everything before anything changes"]
    stage = staged([path.stem for path in (ROOT / "plugins/modules").glob("*.py")])
    fill_in(kind, stage.home)
    switches = [{"pci_bus_id": "0000:07:00.0"}] if kind == "hgx-h100" else []
    machine = {"gpus": gpus(kind, recorded=False), "nvswitches": switches, "nvswitch_managers": [], **DEBIAN}
    seen = [({"module": module}, answer) for module, answer in ANSWERS.items()]
    seen.append(({"module": "gpu_facts"}, {"ansible_facts": machine}))
    done, said = stage.run([{**checks, "become": False}], HOSTS, seen=seen)
    assert done, said
    asked = {(call["on"], call["module"]) for call in stage.calls()}
    node = (*COMMON, "nvidia_driver_facts", "docker_daemon", "engine_plan", "backup")
    other = ("firewall", "gateway", "gateway_certificate", "monitoring_server", "backup")
    assert {("gpu1", name) for name in node} | {("gw1", name) for name in other} <= asked
    compared = [call["compare"] for call in stage.calls(module="nvidia_driver_facts") if "compare" in call]
    (decision,) = [one["decision"] for one in compared]
    assert decision["problems"] == [] and decision["plan"]["branch"] == 580
    assert any("fabricmanager" in package for package in decision["plan"]["install"]) == bool(switches)
    assert stage.calls(check_mode=False, module="apt_sources") == []
