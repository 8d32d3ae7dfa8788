# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI specifications: their content, and whether it matches the machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import cdi
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.models import Gpu, MigDevice
from ansible_collections.baremetal.inference.plugins.modules import gpu_facts

DRIVER = "571.20.03"
OLD = "535.7.01"
UUID = "GPU-0a0b0c0d-1111-4222-8333-444455556666"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
HOOK = "/usr/bin/nvidia-cdi-hook"


def spec(driver: str = DRIVER, names: tuple[str, ...] = ("0", UUID, "all"), **more: Any) -> dict[str, Any]:
    """A specification of the form that nvidia-ctk writes."""
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [
            {"name": name, "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0", "permissions": "rw"}]}}
            for name in names
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": "/dev/nvidiactl"}],
            "hooks": [{"hookName": "createContainer", "path": HOOK, "args": ["nvidia-cdi-hook", "update-ldcache"]}],
            "mounts": [
                {"hostPath": f"{LIBRARIES}/libcuda.so.{driver}", "containerPath": f"{LIBRARIES}/libcuda.so.{driver}"},
                {"hostPath": f"{LIBRARIES}/libnvidia-ml.so.{driver}", "containerPath": "/x"},
            ],
        },
        **more,
    }


class Machine:
    """A machine with a loaded driver and all files that its specification names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for path in ("dev/nvidia0", "dev/nvidiactl", HOOK, f"{LIBRARIES}/libcuda.so.{DRIVER}"):
            self.file(path)
        self.file(f"{LIBRARIES}/libnvidia-ml.so.{DRIVER}")

    def file(self, path: str, text: str = "") -> Path:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def spec(self, path: str, content: dict[str, Any]) -> None:
        self.file(path, json.dumps(content) if path.endswith("json") else yaml.safe_dump(content))

    def facts(self, *gpus: Gpu) -> dict[str, Any]:
        return cdi.facts(self.root, DRIVER, [asdict(gpu) for gpu in gpus])

    def stale(self) -> dict[str, str]:
        return {entry["path"]: entry["stale"] for entry in self.facts()["specs"] if entry["stale"]}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_json_and_yaml_have_the_same_result(dump: Callable[[Any], str]) -> None:
    path = "/etc/cdi/x.json" if dump is json.dumps else "/etc/cdi/x.yaml"
    found = cdi.parse(dump(spec()), path)
    assert found.error == ""
    assert (found.kind, found.version, found.devices) == ("nvidia.com/gpu", "0.5.0", ("0", UUID, "all"))
    assert found.driver_versions == (DRIVER,)
    assert found.files == (HOOK, f"{LIBRARIES}/libcuda.so.{DRIVER}", f"{LIBRARIES}/libnvidia-ml.so.{DRIVER}")
    assert [node.path for node in found.nodes] == ["/dev/nvidiactl", "/dev/nvidia0"]


def test_the_name_of_a_mig_device_is_not_a_number() -> None:
    text = "kind: nvidia.com/gpu\ndevices:\n- name: 1:0\n- name: 0\n"
    assert cdi.parse(text, "/etc/cdi/x.yaml").devices == ("1:0", "0")


@pytest.mark.parametrize(
    ("text", "path", "error"),
    [
        ("{", "/etc/cdi/x.json", "cannot be read"),
        ("a: [", "/etc/cdi/x.yaml", "cannot be read"),
        ("&a [*a]", "/etc/cdi/x.yaml", "cannot be read"),
        ("[]", "/etc/cdi/x.json", "is not a CDI specification"),
        ('{"kind": ""}', "/etc/cdi/x.json", "is not a CDI specification"),
        ("", "/etc/cdi/x.yaml", "is not a CDI specification"),
    ],
)
def test_an_unreadable_text_is_an_error(text: str, path: str, error: str) -> None:
    assert error in cdi.parse(text, path).error


def test_without_python3_yaml_only_json_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdi, "HAS_YAML", False)
    assert "install it (apt-get install python3-yaml)" in cdi.parse(yaml.safe_dump(spec()), "/etc/cdi/x.yaml").error
    assert cdi.parse(json.dumps(spec()), "/etc/cdi/x.json").error == ""


@given(st.integers(0, 700), st.integers(0, 700), st.text(max_size=5), st.sampled_from(["json", "yaml"]))
def test_mangled_text_is_never_an_exception(start: int, length: int, other: str, ending: str) -> None:
    text = json.dumps(spec()) if ending == "json" else yaml.safe_dump(spec())
    found = cdi.parse(text[:start] + other + text[start + length :], f"/etc/cdi/x.{ending}")
    assert bool(found.error) != bool(found.kind)


def test_a_specification_that_matches_the_machine_stays(machine: Machine) -> None:
    machine.spec(cdi.OWN, spec())
    machine.spec("/etc/cdi/other.json", {"cdiVersion": "0.6.0", "kind": "example.com/nic", "devices": [{"name": "n"}]})
    facts = machine.facts(Gpu(index=0, uuid=UUID, reported=True))
    assert facts["refresh_reason"] is None
    assert facts["driver_version"] == DRIVER
    assert facts["conflicts"] == []
    assert facts["devices"] == ["example.com/nic=n", *(f"nvidia.com/gpu={name}" for name in ("0", UUID, "all"))]
    assert [(one["path"], one["stale"], one["missing_paths"]) for one in facts["specs"]] == [
        ("/etc/cdi/other.json", None, []),
        (cdi.OWN, None, []),
    ]


def other_uuid(machine: Machine) -> None:
    machine.spec(cdi.OWN, spec(names=("0", "GPU-deadbeef")))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda machine: (machine.root / cdi.OWN.lstrip("/")).unlink(), "is not there"),
        (lambda machine: machine.spec(cdi.OWN, spec(OLD)), f"is for the driver {OLD}, but {DRIVER} is loaded"),
        (lambda machine: (machine.root / "dev/nvidiactl").unlink(), "names missing files or devices: /dev/nvidiactl"),
        (lambda machine: machine.file(cdi.OWN, "kind: ["), "cannot be read"),
        (lambda machine: machine.spec(cdi.OWN, spec(kind="x.com/gpu")), "is of the kind x.com/gpu"),
        (other_uuid, f"lacks {UUID}"),
        (lambda machine: machine.spec(cdi.OWN, spec(names=("0", UUID, "GPU-gone"))), "has removed devices: GPU-gone"),
    ],
)
def test_each_difference_is_a_reason_to_write_our_specification_again(
    machine: Machine, change: Callable[[Machine], Any], reason: str
) -> None:
    machine.spec(cdi.OWN, spec())
    change(machine)
    assert reason in machine.facts(Gpu(index=0, uuid=UUID, reported=True))["refresh_reason"]
    # This file is never moved away, because its service replaces it.
    assert machine.stale() == {}


@pytest.mark.parametrize("path", ["/dev/a\0b", "/dev/" + "a" * 300])
def test_a_path_that_cannot_exist_is_missing(machine: Machine, path: str) -> None:
    nodes = [{"path": path, "major": 1, "minor": 3}]
    machine.spec("/etc/cdi/ours.json", spec(containerEdits={"deviceNodes": nodes}))
    (found,) = machine.facts()["specs"]
    assert (found["missing_paths"], found["renumbered"]) == ([path], [])


def test_old_numbers_of_a_device_node_are_a_reason_to_write_our_specification_again(machine: Machine) -> None:
    """The numbers of nvidia-uvm may change at each boot. /dev/null is in its place, with the numbers 1 and 3."""
    (machine.root / "dev/nvidia-uvm").symlink_to("/dev/null")
    for minor, expected in ((3, None), (4, "has old numbers of these devices: /dev/nvidia-uvm")):
        nodes = [{"path": "/dev/nvidia-uvm", "major": 1, "minor": minor}]
        machine.spec(cdi.OWN, spec(containerEdits={"deviceNodes": nodes}))
        assert machine.facts()["refresh_reason"] == (f"{cdi.OWN} {expected}" if expected else None)


def test_in_mig_mode_our_specification_must_have_all_mig_devices(machine: Machine) -> None:
    gpu = Gpu(index=0, uuid=UUID, reported=True, mig_mode="enabled", mig_devices=[MigDevice(index=0, uuid="MIG-1")])
    machine.spec(cdi.OWN, spec(names=("0:0", "MIG-1", "all")))
    assert machine.facts(gpu)["refresh_reason"] is None
    # The toolkit may also name the GPU itself.
    machine.spec(cdi.OWN, spec(names=("0", UUID, "0:0", "MIG-1", "all")))
    assert machine.facts(gpu)["refresh_reason"] is None
    gpu.mig_devices.append(MigDevice(index=1, uuid="MIG-2"))
    assert "lacks MIG-2" in machine.facts(gpu)["refresh_reason"]
    # A GPU that the driver does not list is in no specification.
    assert machine.facts(Gpu(index=None, uuid="GPU-9"))["refresh_reason"] is None


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("/etc/cdi/nvidia.yaml", spec(), "would not change with the driver, because no service updates it"),
        ("/etc/cdi/nvidia-gpus.json", spec(names=("pair",)), "because no service updates it"),
        ("/etc/cdi/nvidia.yaml", spec(OLD), f"is for the driver {OLD}"),
        ("/etc/cdi/ours.yaml", spec(OLD, names=("pair",)), f"is for the driver {OLD}"),
        ("/etc/cdi/ours.json", spec(names=("pair",), containerEdits={"hooks": [{"path": "/gone"}]}), "devices: /gone"),
        ("/var/run/cdi/ours.json", spec(names=("0",)), "has a device of the same name as another file"),
    ],
)
def test_a_stale_file_must_be_moved_away(machine: Machine, path: str, content: dict[str, Any], reason: str) -> None:
    """Without the file, nothing is stale or in conflict."""
    machine.spec(cdi.OWN, spec())
    machine.spec(path, content)
    assert list(machine.stale()) == [path]
    assert reason in machine.stale()[path]
    (machine.root / path.lstrip("/")).unlink()
    assert machine.stale() == {}
    assert machine.facts()["conflicts"] == []
    assert (machine.root / cdi.OWN.lstrip("/")).exists()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        # Files of other kinds, with any name and content.
        ("/etc/cdi/nvidia.yaml", spec(OLD, kind="nvidia.com/gds")),
        ("/etc/cdi/nvidia-nic.json", {"kind": "example.com/nic", "devices": []}),
        # A file that matches the machine, with a device name that no other file has.
        ("/etc/cdi/ours.yaml", spec(names=("pair",))),
        # Programs ignore files whose names end with .yml.
        ("/etc/cdi/nvidia.yml", spec(OLD)),
    ],
)
def test_other_files_are_not_stale(machine: Machine, path: str, content: dict[str, Any]) -> None:
    machine.spec(cdi.OWN, spec())
    machine.spec(path, content)
    assert machine.stale() == {}


def test_an_unreadable_file_stays_with_its_error(machine: Machine) -> None:
    machine.file("/etc/cdi/nvidia.yaml", "kind: [")
    assert machine.stale() == {}
    assert "cannot be read" in machine.facts()["specs"][0]["error"]


def test_a_device_that_two_files_of_one_directory_have_is_in_conflict(machine: Machine) -> None:
    """Files of two directories do not conflict: the later directory wins."""
    machine.spec(cdi.OWN, spec(names=("0", "1")))
    machine.spec("/etc/cdi/ours.json", spec(names=("0",)))
    assert machine.facts()["conflicts"] == []
    machine.spec("/var/run/cdi/ours.json", spec(names=("0",)))
    facts = machine.facts()
    assert facts["conflicts"] == [{"device": "nvidia.com/gpu=0", "paths": [cdi.OWN, "/var/run/cdi/ours.json"]}]
    assert facts["devices"] == ["nvidia.com/gpu=1"]


def test_a_node_without_specifications_has_a_reason_to_write_ours(tmp_path: Path) -> None:
    facts = cdi.facts(tmp_path, None, [])
    assert facts == {
        "devices": [],
        "conflicts": [],
        "driver_version": None,
        "refresh_reason": f"{cdi.OWN} is not there",
        "specs": [],
    }


def test_each_fact_of_cdi_is_documented(machine: Machine) -> None:
    machine.spec(cdi.OWN, spec())
    returned = yaml.safe_load(gpu_facts.RETURN)["ansible_facts"]["contains"]["cdi"]["contains"]
    facts = machine.facts()
    assert set(facts) == set(returned)
    assert set(facts["specs"][0]) == set(returned["specs"]["contains"])
