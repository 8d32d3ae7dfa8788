# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs of a node the driver and CUDA must find, by the variables of the role nvidia_driver."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

# To save time, CI leaves out these tests with newer versions of ansible-core. `controllers --all` runs them there, too.
pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]
GIVEN, TAKEN, EXCLUDED, NEW = (f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61"))


def plug(root: Path, address: str, driver: str | None, excluded: bool = False) -> None:
    device = root / "sys/bus/pci/devices" / address
    device.mkdir(parents=True)
    for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200")):
        (device / name).write_text(text)
    if driver:
        (device / "driver").symlink_to(f"../../drivers/{driver}")
    if excluded:
        information = root / "proc/driver/nvidia/gpus" / address / "information"
        information.parent.mkdir(parents=True)
        information.write_text("GPU Excluded:\t Yes\n")


def test_only_gpus_of_vfio_pci_need_no_driver_and_cuda_does_not_find_excluded_gpus(
    tmp_path: Path, staged: Callable[[Sequence[str]], Any]
) -> None:
    mixed, given = tmp_path / "mixed", tmp_path / "given"
    plug(mixed, GIVEN, "vfio-pci")
    plug(mixed, TAKEN, "nvidia")
    plug(mixed, EXCLUDED, "nvidia", excluded=True)
    # No driver has this GPU: the NVIDIA driver should have taken it.
    plug(mixed, NEW, None)
    plug(given, GIVEN, "vfio-pci")
    names = {"driver": "__nvidia_driver_gpus", "cuda": "__nvidia_driver_cuda_gpus", "wanted": "__nvidia_driver_wanted"}
    said = {key: f"{{{{ {name} }}}}" for key, name in names.items()}
    facts = {"baremetal.inference.gpu_facts": {"gather_subset": ["min"], "root": "{{ root }}"}}
    write = {"ansible.builtin.copy": {"content": "{{ said | to_json }}", "dest": "{{ root }}/said", "mode": "0600"}}
    play = {
        "name": "Read",
        "hosts": "all",
        "vars_files": [str(ROOT / f"roles/nvidia_driver/{name}/main.yml") for name in ("defaults", "vars")],
        "vars": {"said": said},
        "tasks": [{"name": "Look", **facts}, {"name": "Say", **write}],
    }
    done, output = staged([]).run([play], f"mixed root={mixed}\ngiven root={given}")
    assert done, output
    assert read(mixed) == {"driver": [TAKEN, NEW, EXCLUDED], "cuda": 2, "wanted": True}
    assert read(given) == {"driver": [], "cuda": 0, "wanted": False}


def read(root: Path) -> dict[str, Any]:
    """The role's variables on a machine with this bus."""
    found = json.loads((root / "said").read_text())
    return {
        "driver": [gpu["pci_bus_id"] for gpu in found["driver"]],
        "cuda": int(found["cuda"]),
        "wanted": str(found["wanted"]).strip() == "True",
    }
