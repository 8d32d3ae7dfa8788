# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs of a node the role nvidia_driver answers for, as Ansible reads its variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def read(root: Path) -> dict[str, Any]:
    """The role's variables on a machine with this bus."""
    names = {"driver": "__nvidia_driver_gpus", "cuda": "__nvidia_driver_cuda_gpus", "wanted": "__nvidia_driver_wanted"}
    said = {key: f"{{{{ {name} }}}}" for key, name in names.items()}
    facts = {"baremetal.inference.gpu_facts": {"gather_subset": ["min"], "root": str(root)}}
    write = {"ansible.builtin.copy": {"content": "{{ said | to_json }}", "dest": f"{root}/said", "mode": "0600"}}
    play = {
        "name": "Read",
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(ROOT / f"roles/nvidia_driver/{name}/main.yml") for name in ("defaults", "vars")],
        "vars": {"said": said, "ansible_python_interpreter": sys.executable},
        "tasks": [{"name": "Look", **facts}, {"name": "Say", **write}],
    }
    (root / "play.yml").write_text(json.dumps([play]))
    done = subprocess.run(
        ["ansible-playbook", "-i", "localhost,", "-c", "local", str(root / "play.yml")],
        check=False,
        text=True,
        capture_output=True,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache"),
            "ANSIBLE_LOCAL_TEMP": str(root / "tmp"),
            "ANSIBLE_REMOTE_TEMP": str(root / "tmp"),
        },
        cwd=root,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((root / "said").read_text())
    return {
        "driver": [gpu["pci_bus_id"] for gpu in found["driver"]],
        "cuda": int(found["cuda"]),
        "wanted": str(found["wanted"]).strip() == "True",
    }


def test_cuda_must_find_the_gpus_that_are_its_own(tmp_path: Path) -> None:
    plug(tmp_path, GIVEN, "vfio-pci")
    plug(tmp_path, TAKEN, "nvidia")
    plug(tmp_path, EXCLUDED, "nvidia", excluded=True)
    # No driver has it, so that the module should have taken it.
    plug(tmp_path, NEW, None)
    assert read(tmp_path) == {"driver": [TAKEN, NEW, EXCLUDED], "cuda": 2, "wanted": True}


def test_a_node_whose_gpus_are_all_given_away_wants_no_driver(tmp_path: Path) -> None:
    plug(tmp_path, GIVEN, "vfio-pci")
    assert read(tmp_path) == {"driver": [], "cuda": 0, "wanted": False}
