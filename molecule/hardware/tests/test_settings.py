# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of GPUs on a node with a fake nvidia-smi. All other parts are real, also the unit at boot."""

from __future__ import annotations

import base64
import json
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import on_deb12, on_deb13
from node import PROJECT, Node, changed_tasks, changes
from nvidia_packages import NEW

FAKE = PROJECT / "tests/unit/plugins/module_utils/hardware/gpu_settings/fake_nvidia_smi.py"
PARTS = runpy.run_path(str(FAKE))
HOME = "/root/gpus"
# The files of an H100 on the PCI bus.
BUS = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}
UNIT = "inference-gpu-settings.service"

WANTED: dict[str, Any] = {
    "nvidia_driver_gpu_settings": {"power_limit_w": 500, "gpu_clocks_mhz": [210, 1600]},
    "nvidia_driver_gpu_overrides": [{"gpu": 1, "mig_mode": True, "mig_devices": ["3g.40gb", "3g.40gb"]}],
    "__nvidia_driver_nvidia_smi": f"{HOME}/nvidia-smi",
}


def put(node: Node, gpus: list[dict[str, Any]]) -> None:
    """Give the node these GPUs."""
    node.run(f"echo {shlex.quote(json.dumps({'gpus': gpus}))} >{HOME}/gpus.json")


def cards(node: Node) -> list[dict[str, Any]]:
    """The settings of the GPUs."""
    gpus: list[dict[str, Any]] = json.loads(node.run(f"cat {HOME}/gpus.json"))["gpus"]
    return gpus


@pytest.fixture(autouse=True)
def two_gpus(node: Node, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the node two GPUs with default settings. After the test, remove them and the role's records."""
    monkeypatch.setattr(node, "playbook", str(PROJECT / "molecule/hardware/settings.yml"))
    text = base64.b64encode(b"#!/usr/bin/python3\n" + FAKE.read_bytes()).decode()
    node.run(f"mkdir -p {HOME}; echo {text} | base64 -d >{HOME}/nvidia-smi; chmod 755 {HOME}/nvidia-smi")
    put(node, [PARTS["gpu"](number) for number in range(2)])
    yield
    node.run(
        f"systemctl disable --now {UNIT}; systemctl reset-failed {UNIT};"
        f" rm -rf {HOME} /etc/systemd/system/{UNIT} /etc/inference/gpu-settings.json /run/inference/gpu-clocks.json"
        " /run/reboot-required* /dev/nvidiactl; systemctl daemon-reload",
        check=False,
    )


@on_deb13
def test_check_mode_predicts_the_changes_and_a_second_run_has_none(node: Node, tmp_path: Path) -> None:
    before = cards(node)
    foreseen, _output = changed_tasks(node, tmp_path, "--check", **WANTED)
    assert cards(node) == before
    done, output = changed_tasks(node, tmp_path, **WANTED)
    assert {task for task in done - foreseen if not task.endswith("Settings | Enable the unit")} == set(), output
    assert [card["limit"] for card in cards(node)] == [500, 500]
    assert [one["profile"] for one in cards(node)[1]["instances"]] == ["3g.40gb", "3g.40gb"]
    assert changes(node.site(**WANTED)) == 0


@on_deb12
def test_a_boot_restores_the_settings_before_the_engines_start(node: Node) -> None:
    node.site(**WANTED)
    gpus = cards(node)
    wanted = json.loads(json.dumps(gpus))
    PARTS["reboot"](gpus)
    put(node, gpus)
    node.run(f"rm -r /run/inference; touch /dev/nvidiactl; systemctl start {UNIT}")
    assert cards(node) == wanted
    assert node.run(f"systemctl is-enabled {UNIT}") == "enabled"
    order = node.run(f"systemctl show --value --property=Before {UNIT}").split()
    assert {"docker.service", "inference.target", "nvidia-cdi-refresh.service"} <= set(order)
    assert node.run(f"systemd-analyze verify --man=no {UNIT} 2>&1 | grep {UNIT}", check=False) == ""


@pytest.mark.full
def test_without_a_driver_systemd_skips_the_unit(node: Node) -> None:
    node.site(**WANTED)
    node.run(f"rm -f /dev/nvidiactl; systemctl start {UNIT}")
    assert node.run(f"systemctl show --value --property=ConditionResult {UNIT}") == "no"
    assert node.run(f"systemctl is-failed {UNIT}", check=False) != "failed"


@pytest.mark.full
def test_a_card_that_fails_at_boot_is_reported(node: Node) -> None:
    node.site(**WANTED)
    put(node, [PARTS["gpu"](0, failing=["-pl"]), PARTS["gpu"](1)])
    assert "fail" in node.run(f"touch /dev/nvidiactl; systemctl start {UNIT} 2>&1", check=False)
    assert "GPU 0 (0000:1b:00.0): power_limit_w" in node.run(f"journalctl --unit={UNIT} --output=cat")
    assert cards(node)[1]["limit"] == 500


@pytest.mark.full
def test_a_setting_that_waits_for_a_reset_requests_a_reboot(node: Node) -> None:
    output = node.site(nvidia_driver_gpu_settings={"ecc": False}, __nvidia_driver_nvidia_smi=f"{HOME}/nvidia-smi")
    assert "ecc is on, and becomes off at the next reset" in " ".join(output.split())
    assert "inference-nvidia-driver" in node.run("cat /run/reboot-required.pkgs")


@pytest.mark.full
def test_settings_that_are_no_longer_declared_stay_until_the_next_boot(node: Node) -> None:
    node.site(**WANTED)
    set_by_us = cards(node)
    again = node.site(__nvidia_driver_nvidia_smi=f"{HOME}/nvidia-smi")
    assert changes(again) == 1 and cards(node) == set_by_us
    node.run(f"touch /dev/nvidiactl; systemctl stop {UNIT}; systemctl start {UNIT}")
    assert node.run(f"systemctl show --value --property=ConditionResult {UNIT}") == "no"


@on_deb12
def test_mistakes_are_refused_before_the_first_change(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "playbook", Node.playbook)
    wrong = {"power_limit_w": 900, "mig_mode": True, "mig_devices": ["3g.20gb"]}
    card = f"{HOME}/sys/bus/pci/devices/0000:1b:00.0"
    node.run(f"mkdir -p {card}; " + "; ".join(f"echo {value} >{card}/{key}" for key, value in BUS.items()))
    machine: dict[str, Any] = {
        "nvidia_driver_version": NEW,
        "__nvidia_driver_root": HOME,
        "__nvidia_driver_nvidia_smi": f"{HOME}/nvidia-smi",
    }
    output = node.site(check=False, nvidia_driver_gpu_settings=wrong, **machine)
    said = " ".join(output.replace("\\n", " ").split())
    assert changes(output) == 0
    assert "nothing was changed" in said and "the card allows 200 to 700 W" in said and "no profile 3g.20gb" in said
