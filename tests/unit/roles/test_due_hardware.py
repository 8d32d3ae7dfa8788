# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes the roles docker and nvidia_driver change a node. Each machine of a play is one case; none is changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from .conftest import ROOT, Stage

Cases = Mapping[str, dict[str, dict[str, Any]]]
"""By machine: the answers of its modules that differ from the usual ones."""


def due(
    stage: Stage, role: str, usual: dict[str, dict[str, Any]], cases: Cases, *options: str, **variables: str
) -> set[str]:
    """The machines on which a role is due after its preflight. `variables`: those of each machine."""
    preflight = {"name": f"baremetal.inference.{role}", "tasks_from": "preflight"}
    said = {"name": "Say", "ansible.builtin.debug": {"msg": f"{{{{ inventory_hostname }}}}={{{{ {role}_due }}}}"}}
    tasks = [{"name": "Check", "ansible.builtin.include_role": preflight}, said]
    seen = [({"module": module}, answer) for module, answer in usual.items()]
    seen += [
        ({"module": module, "on": host}, answer) for host, case in cases.items() for module, answer in case.items()
    ]
    hosts = "\n".join(f"{host} {variables.get(host, '')}" for host in cases)
    done, output = stage.run([{"name": "See", "hosts": "all", "tasks": tasks}], hosts, *options, seen=seen)
    assert done and re.findall(r"changed=([^0]\d*)", output) == [], output
    answers = dict(re.findall(r'"msg": "(\w+)=(\w+)"', output))
    assert set(answers) == set(cases), output
    return {host for host, answer in answers.items() if answer == "True"}


NOTHING: dict[str, Any] = {key: [] for key in ("installed", "removed", "held", "released", "diff")}
CDI: dict[str, Any] = {"refresh_reason": None, "specs": [{"path": "/a", "stale": None}], "conflicts": []}


def containers(cdi: dict[str, Any], *lost: str) -> dict[str, Any]:
    """The answer of gpu_facts about specifications and containers."""
    return {"ansible_facts": {"cdi": {**CDI, **cdi}, "container_gpus": {"lost": list(lost)}}}


def engine(due: bool = False, gpus: bool = True, driver: bool = True, waits: str = "") -> dict[str, Any]:
    """What docker_daemon answers."""
    found = {"gpus": gpus, "driver_loaded": driver, "gpu_request": "cdi", "cdi_problem": ""}
    return {"due": due, "restart_required": bool(waits), "restart_reasons": [waits], "engine": found}


@pytest.mark.once
def test_differences_of_daemon_packages_cdi_and_containers_make_docker_due(staged: Callable[..., Stage]) -> None:
    usual = {"docker_daemon": engine(), "apt_packages": NOTHING, "gpu_facts": containers({})}
    waits = {"docker_daemon": engine(gpus=False, waits="bip is new")}
    idle: Cases = {"plain": {"docker_daemon": engine(gpus=False)}, "gpus": {}, "waits": waits}
    absent = containers({"refresh_reason": "no specification", "conflicts": [{"device": "x", "paths": []}]})
    idle = {**idle, "driver": {"docker_daemon": engine(driver=False), "gpu_facts": absent}}
    wrong: Cases = {
        "daemon": {"docker_daemon": engine(due=True, gpus=False)},
        "driverless": {"docker_daemon": engine(driver=False), "apt_packages": {**NOTHING, "installed": ["x"]}},
        **{key: {"apt_packages": {**NOTHING, key: ["x"]}} for key in NOTHING},
        "refresh": {"gpu_facts": containers({"refresh_reason": "another driver"})},
        "stale": {"gpu_facts": containers({"specs": [{"path": "/a", "stale": "another driver"}]})},
        "conflicts": {"gpu_facts": containers({"conflicts": [{"device": "x", "paths": []}]})},
        "lost": {"gpu_facts": containers({}, "main")},
    }
    stage = staged(usual)
    assert due(stage, "docker", usual, {**idle, **wrong}) == set(wrong)
    assert stage.calls(module="gpu_facts", on="plain") == []
    assert all(call["check_mode"] for call in stage.calls() if call["module"] != "gpu_facts")
    output = " ".join((stage.home / "output").read_text().split())
    assert output.count("docker.service waits") == 1 and "waits: docker.service waits for a restart, because" in output
    assert "containers run: bip is new." in output and "driver: no NVIDIA driver is loaded" in output


GPU = {"pci_bus_id": "0000:1b:00.0", "name": "H100", "architecture": "Hopper", "excluded": False, "driver": "nvidia"}
DRIVER = {"debian": 12, "packages": {}, "kernels": [], "secure_boot": {"enabled": None}, "runfile": None, "held_by": []}
PLAN: dict[str, Any] = {key: [] for key in ("install", "optional", "remove", "own_holds", "remove_first", "hold")}
PLAN |= {"version": "1", "uninstall_runfile": False, "install_runfile": False, "sign": True}
ALWAYS = "nvidia_driver_install=always"
CARDS: dict[str, Any] = {"changes": [], "diff": [], "reboot_reason": "", "unanswered": ""}
ECC = {"gpu_settings": {**CARDS, "reboot_reason": "GPU 0: ecc is on, and off after the next reset"}}
NOUVEAU = {"nvidia_driver_facts": {"reboot_reason": "nouveau has the GPUs"}}


def bus(*gpus: dict[str, Any]) -> dict[str, Any]:
    """The answer of gpu_facts about the PCI bus."""
    return {"ansible_facts": {"gpus": list(gpus), "nvswitches": [], "nvswitch_managers": []}}


WELL: dict[str, dict[str, Any]] = {
    "gpu_facts": bus(GPU),
    "nvidia_driver_facts": {
        "ansible_facts": {"nvidia_driver": DRIVER},
        "due": False,
        "reboot_reason": "",
        "plan": PLAN,
    },
    "gpu_settings": CARDS,
    "nvidia_driver_signing": {"actions": []},
    "apt_packages": NOTHING,
}
"""What the modules answer on a node whose driver is as declared."""
DECLARED = {"nvidia_driver_gpu_settings": {"power_limit_w": 500}}


def test_differences_of_driver_gpu_settings_and_signature_make_the_driver_due(staged: Callable[..., Stage]) -> None:
    usual = WELL
    unanswered = {**CARDS, "unanswered": "no driver"}
    bare = {"gpu_facts": bus(), "gpu_settings": unanswered}
    idle: Cases = {"none": bare, "always": bare, "well": {}, "signed": {}, "reboot": ECC, "waits": NOUVEAU}
    wrong: Cases = {
        "changes": {"gpu_settings": {**CARDS, "changes": [{}]}},
        "diff": {"gpu_settings": {**CARDS, "diff": [{}]}},
        "unanswered": {"gpu_settings": unanswered},
        "differs": {"nvidia_driver_facts": {"due": True}},
        "unsigned": {"nvidia_driver_signing": {"actions": ["signed nvidia for this kernel"]}},
        "new": {"nvidia_driver_facts": {"due": True}},
    }
    own_key = dict.fromkeys(("signed", "unsigned", "new"), "nvidia_driver_mok_password=of-the-site")
    stage = staged(usual)
    declared = ("--extra-vars", json.dumps(DECLARED))
    assert due(stage, "nvidia_driver", usual, {**idle, **wrong}, *declared, always=ALWAYS, **own_key) == set(wrong)
    looked = {call["on"]: call["existing"] for call in stage.calls(module="nvidia_driver_signing", check_mode=True)}
    assert looked == {"signed": True, "unsigned": True, "new": False}, "new has no driver to sign yet"
    assert stage.calls(module="nvidia_driver_facts", on="none") == []
    asked = {call["on"]: call["apply"] for call in stage.calls(module="gpu_settings")}
    assert (asked["well"], asked["waits"]) == (True, False), "a driver that waits for a reboot cannot be asked"
    without = stage.calls(module="nvidia_driver_facts", on="always")[1]["compare"]
    assert (without["load"], without["ask_cuda"], without["boot_units"]) == (False, False, [])
    directories = [file["path"] for file in without["files"] if file.get("state") == "directory"]
    assert all(path.endswith(".service.d") for path in directories) and directories, "drop-ins of units"
    assert "gpu-settings" not in str(without["files"]), "no GPU, nothing to set"
    assert {(call["on"], call["check_mode"]) for call in stage.calls(module="apt_packages")} == {
        ("differs", True),
        ("new", True),
    }
    _facts, call = stage.calls(module="nvidia_driver_facts", on="well")
    asked = call["compare"]
    assert asked["decision"]["problems"] == [] and asked["decision"]["plan"]["branch"] == 535
    assert (asked["load"], asked["ask_cuda"], call["devices"]) == (True, True, 1)
    names = [file["path"].rpartition("/")[2] for file in asked["files"] if file.get("state") is None]
    assert names == [
        "inference-nvidia.conf",
        "inference-nouveau.conf",
        "inference-nvidia-devices.service",
        "10-inference.conf",
        "inference-gpu-settings.service",
    ]
    assert asked["files"][0]["text"].splitlines()[1:] == ["nvidia", "nvidia-uvm"]


def test_a_reboot_that_waits_is_reported_although_no_role_is_due(staged: Callable[..., Stage]) -> None:
    """The run is in check mode, so that no flag of this machine is written."""
    plays = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    (serve,) = [play for play in plays if play["name"] == "Make the nodes serve"]
    check = {"ansible.builtin.include_role": {"name": "baremetal.inference.nvidia_driver", "tasks_from": "preflight"}}
    others = ("common", "docker", "model_store", "vllm", "recovery", "monitoring")
    variables = json.dumps({**{f"{role}_due": False for role in others}, **DECLARED, "ansible_become": False})
    seen = [({"module": module}, answer) for module, answer in WELL.items()]
    seen += [({"module": module, "on": "ecc"}, answer) for module, answer in ECC.items()]
    seen += [({"module": module, "on": "nouveau"}, answer) for module, answer in NOUVEAU.items()]
    stage = staged(WELL)
    play = {**serve, "tasks": [check, *serve["tasks"]]}
    hosts = "[inference]\nwell\necc\nnouveau"
    done, said = stage.run([play], hosts, "--check", "--extra-vars", variables, seen=seen)
    assert done, said
    reports = re.findall(r"(\w+): a reboot is due: ([^.]*)\. Nothing reboots by itself", said)
    assert dict(reports) == {"ecc": ECC["gpu_settings"]["reboot_reason"], "nouveau": "nouveau has the GPUs"}
    assert {call["module"] for call in stage.calls(check_mode=False)} <= {"gpu_facts", "nvidia_driver_facts"}


@pytest.mark.once
def test_a_driver_without_a_gpu_is_reported_although_nothing_is_due(staged: Callable[..., Stage]) -> None:
    bare = {"gpu_facts": bus()}
    check = {"ansible.builtin.include_role": {"name": "baremetal.inference.nvidia_driver", "tasks_from": "preflight"}}
    seen = [({"module": module}, answer) for module, answer in {**WELL, **bare}.items()]
    play = {"name": "See", "hosts": "all", "tasks": [{"name": "Check", **check}]}
    for mode in ((), ("--check",)):
        done, said = staged(WELL).run([play], f"always {ALWAYS}\nauto", *mode, seen=seen)
        assert done, said
        hosts = re.findall(r"(\w+): the driver is installed, but the PCI bus has no NVIDIA GPU", " ".join(said.split()))
        assert hosts == ["always"], said
