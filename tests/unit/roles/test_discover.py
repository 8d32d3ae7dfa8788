# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook discover, on machines whose facts are our own samples, and the site's refusal of open questions."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.drivers import KEY_URLS
from ansible_collections.baremetal.inference.plugins.module_utils.models.config import facts

ROOT = Path(__file__).parents[3]

PUBLISHED = ROOT / "tests/unit/plugins/module_utils/models/data/models.json"

HOSTS = """
gpu ansible_host=10.0.0.11
user said="uid=1000 login=admin python=/usr/bin/python3"
bare said="uid=0 login=root python="
"""

GOOD = "uid=0 login=admin python=/usr/bin/python3"

GPU = {
    "index": None,
    "product": "L40S",
    "architecture": "Ada Lovelace",
    "compute_capability": "8.9",
    "pci_bus_id": "0000:1a:00.0",
    "reported": False,
    "excluded": False,
}

SYSTEM = {
    "hostname": "gpu-01",
    "machine_id": "1" * 32,
    "boot_id": "boot",
    "architecture": "x86_64",
    "debian": 12,
    "addresses": [{"device": "eno1", "address": "10.0.0.11"}],
}

DISK = {"path": "/dev/disk/by-id/nvme-a", "size": 10**12, "model": "", "nvme": True, "obstacles": []}


def answers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What the modules return on the machine gpu, and on the controller."""
    config = json.loads(PUBLISHED.read_text())["qwen3-8b"]["config"]
    return [
        ({"module": "host_facts"}, {"system": SYSTEM, "disks": [DISK]}),
        ({"module": "gpu_facts"}, {"ansible_facts": {"gpus": [GPU], "nvswitches": []}}),
        ({"module": "rdma_facts"}, {"ansible_facts": {"rdma_devices": []}}),
        ({"module": "model_facts"}, {"facts": {"wanted": facts.from_config(config).to_dict()}, "unknown": {}}),
    ]


def plays() -> list[dict[str, Any]]:
    """The plays of the playbook, with another first command, and without the Internet."""
    look, write = yaml.safe_load((ROOT / "playbooks/discover.yml").read_text(encoding="utf-8"))
    (login,) = [task["block"][0] for task in look["tasks"] if task["name"] == "Try the login"]
    login["ansible.builtin.raw"] = f"echo {{{{ said | default('{GOOD}') }}}}"
    for number, task in enumerate(write["tasks"]):
        if "ansible.builtin.get_url" in task:
            write["tasks"][number] = {"name": task["name"], "ansible.builtin.debug": {"msg": "fails"}}
    # The machines are this one: its own interpreter runs the modules.
    del look["vars"], write["vars"]["ansible_python_interpreter"]
    return [look, write]


@pytest.fixture
def stage(staged: Callable[..., Any]) -> Any:
    return staged(["host_facts", "gpu_facts", "rdma_facts", "model_facts"])


# The test of check mode runs the same tasks with the newest ansible-core.
@pytest.mark.once
def test_discover_writes_an_inventory_and_a_line_for_each_machine_with_a_fault(stage: Any, tmp_path: Path) -> None:
    out = tmp_path / "mysite"
    variables = json.dumps({"out": str(out), "serve": "controller:/srv/Qwen3-8B", "ansible_become": False})
    done, said = stage.run(plays(), HOSTS, "--extra-vars", variables, seen=answers())
    assert done, said
    # Only the machine with root and Python was inspected.
    assert {call["on"] for call in stage.calls(module="host_facts")} == {"gpu"}
    assert "user: is left out: the login has the uid 1000" in said
    assert "bare: is left out: has no Python: apt-get install python3" in said
    # The report has a command for each key that the controller could not fetch.
    for name, url in KEY_URLS.items():
        assert (f"curl -fLo {out}/group_vars/all/keys/{name} {url}" in said) == (name != "nvidia-debian13.asc"), said
    hosts = yaml.safe_load((out / "hosts.yml").read_text())["all"]
    assert hosts["children"]["inference"]["hosts"] == {"gpu-01": {"ansible_host": "10.0.0.11"}}
    common = yaml.safe_load((out / "group_vars/inference/main.yml").read_text())
    assert common["instances"] == [{"name": "main", "model": "qwen3-8b", "port": 5005, "gpus": 1}]
    vault = out / "group_vars/all/vault.yml"
    assert vault.stat().st_mode & 0o777 == 0o600
    secrets = yaml.safe_load(vault.read_text())
    assert not [value for value in secrets.values() if value in said]
    asked = yaml.safe_load((out / "group_vars/all/decide.yml").read_text())["decide"]
    assert [text for text in asked if "nvme-a" in text]

    # A second run writes nothing, and the report names what has changed.
    before = {path: path.read_text() for path in out.rglob("*.yml")}
    later = [*answers(), ({"module": "host_facts"}, {"system": SYSTEM, "disks": []})]
    done, said = stage.run(plays(), HOSTS, "--extra-vars", variables, seen=later)
    assert done and "gpu-01: disks: /dev/disk/by-id/nvme-a is gone (blank)" in said, said
    assert {path: path.read_text() for path in out.rglob("*.yml")} == before


def test_discover_refuses_to_start_without_a_directory(stage: Any) -> None:
    done, said = stage.run(plays(), HOSTS, "--extra-vars", '{"ansible_become": false}', seen=answers())
    assert not done and "out: is required" in said


def test_check_mode_writes_nothing(stage: Any, tmp_path: Path) -> None:
    variables = json.dumps({"out": str(tmp_path / "mysite"), "ansible_become": False})
    done, said = stage.run(plays(), HOSTS, "--check", "--extra-vars", variables, seen=answers())
    assert done and not (tmp_path / "mysite").exists(), said


def declared(variable: tuple[str, Any]) -> str:
    """A variable in the line of a host."""
    name, value = variable
    return f"{name}={shlex.quote(value if isinstance(value, str) else repr(value))}"


def test_the_site_refuses_open_questions_and_wrong_variables(stage: Any) -> None:
    site = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    (play,) = [one for one in site if one["name"] == "Check everything before anything changes"]
    (task,) = [one for one in play["tasks"] if "ansible.builtin.fail" in one]
    refused: dict[str, tuple[str, dict[str, Any]]] = {
        # By host: the words of its refusal, and its variables.
        "open": ("these questions are open. Answer each", {"decide": ["common_disks (here): which?"]}),
        "renamed": ("vllm_update_force is now called update_force", {"vllm_update_force": True}),
        "placeholder": (
            "placeholder: vllm_api_key: is a placeholder",
            {"vllm_api_key": "{{ vaulted }}", "vaulted": "change-me-7f31"},
        ),
        "twice": (
            "twice: gang_key: is the same secret as vllm_api_key",
            {"vllm_api_key": "long-7f31", "gang_key": "long-7f31"},
        ),
        "short": ("(portal): has fewer than 8 characters", {"gateway_keys": [{"name": "portal", "key": "-7f31"}]}),
        # Without this check, Ansible ends the run later: 'engine_image' is undefined.
        "imageless": ("imageless: engine_image: not set", {"instances": [{"name": "main"}], "models": {}}),
        "modelless": ("modelless: engine_image, models: not set", {"instances": [{"name": "main"}]}),
    }
    served = {"instances": [{"name": "main"}], "models": {}, "engine_image": "vllm"}
    accepted: dict[str, dict[str, Any]] = {
        "answered": {"decide": []},
        "null": {"decide": None},
        "plain": {},
        "engineless": {"instances": None},
        "served": served,
    }
    variables = {**{name: given for name, (_words, given) in refused.items()}, **accepted}
    hosts = "\n".join(" ".join([name, *map(declared, given.items())]) for name, given in variables.items())
    _done, said = stage.run([{"hosts": "all", "tasks": [task]}], hosts)
    failures = dict(re.findall(r"fatal: \[(\w+)\]: FAILED! => (.*?)(?= fatal: | PLAY RECAP)", said))
    assert failures.keys() == refused.keys(), said
    for name, (words, _given) in refused.items():
        assert words in failures[name], (name, said)
    assert "7f31" not in said
    passed = re.findall(r"(\w+) : ok=\d+ changed=0 unreachable=0 failed=0", said)
    assert sorted(passed) == sorted(accepted), said
